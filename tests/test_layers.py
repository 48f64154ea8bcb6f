"""Who imports whom: a module imports only those above it in `LAYERS`, and nothing slow before it is needed; tests
import nothing private."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import pdofm

PACKAGE = Path(__file__).parent.parent / "src" / "pdofm"

LAYERS = [
    *("version", "_types", "errors", "arguments", "deprecation", "shown", "metrics", "archives"),
    *("numerics", "domain", "calculus", "problem", "features", "discrete", "solving", "marching"),
    *("training", "adaptive", "questions", "families", "cluster"),
    *("output", "studio", "zoo", "experiments", "challenge", "bench", "runs", "cli", "__init__"),
]

# Applications stand on the public face of the package, like any user's script.
APPLICATIONS = {"experiments", "challenge", "bench", "runs", "cli"}
PUBLIC_ONLY = {"experiments", "challenge", "runs", "cli"}
PUBLIC_MODULES = {"metrics", "plot", "losses", "zoo", "errors", "cluster", "studio"}

# What is solved and what it is solved with: they meet in discrete.
STRANGERS = [{"problem", "features"}]
LAZILY_UPWARD = {
    "numerics": {"cluster"},
    "shown": {"output"},
    "features": {"discrete"},
    "families": {"output"},
    "solving": {"output"},
    "marching": {"output"},
    "domain": {"output"},
}

DRAWING = {"output.plot", "output.domains", "output.surface", "output.sweeps"}
SLOW = (
    *("matplotlib", "shapely", "meshio"),
    *(f"scipy.{name}" for name in ("fft", "interpolate", "optimize", "sparse.linalg", "spatial", "special", "stats")),
)


@dataclass(frozen=True)
class Module:
    name: str  # dotted, below the package: "features.base"; "" for the package itself
    is_package: bool
    tree: ast.Module

    @property
    def layer(self) -> str:
        return self.name.split(".")[0] or "__init__"


@dataclass(frozen=True)
class Import:
    module: Module
    target: str  # absolute dotted name, with the imported name where there is one: "scipy.stats.qmc"
    line: int
    lazy: bool  # inside a function
    type_only: bool  # under `if TYPE_CHECKING:`

    @property
    def layer(self) -> str | None:
        """The layer that is imported, or None for another package."""
        package, *rest = self.target.split(".")
        if package != "pdofm":
            return None
        return rest[0] if rest and is_module(rest[0]) else "__init__"

    def __str__(self) -> str:
        return f"pdofm.{self.module.name}".rstrip(".") + f", line {self.line}: imports {self.target}"


def is_module(name: str) -> bool:
    return name in LAYERS or (PACKAGE / f"{name}.py").exists() or (PACKAGE / name / "__init__.py").exists()


def read_module(name: str, is_package: bool, source: str) -> Module:
    return Module(name, is_package, ast.parse(source))


def read_package() -> list[Module]:
    modules = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        inside = parts[-1] == "__init__"
        modules.append(read_module(".".join(parts[:-1] if inside else parts), inside, path.read_text("utf-8")))
    return modules


def imports(module: Module) -> Iterator[Import]:
    def visit(node: ast.AST, lazy: bool, type_only: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno, lazy, type_only)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Import(module, f"{absolute(module, node)}.{alias.name}", node.lineno, lazy, type_only)
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        guarded = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for child in ast.iter_child_nodes(node):
            yield from visit(child, lazy, type_only or (guarded and child in node.body))

    return visit(module.tree, lazy=False, type_only=False)


def absolute(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    here = ["pdofm", *filter(None, module.name.split("."))]
    base = here[: len(here) - (node.level - module.is_package)]
    return ".".join([*base, *filter(None, [node.module])])


def layer_errors(module: Module) -> Iterator[str]:
    for one in imports(module):
        here, there = module.layer, one.layer
        if there is None or there == here:
            continue
        if {here, there} in STRANGERS:
            yield f"{one}; {here} and {there} never import each other"
        elif there not in LAYERS:
            yield f"{one}; {there} has no place in LAYERS, give it one"
        elif there == "__init__":
            if here not in APPLICATIONS:
                yield f"{one}; only {sorted(APPLICATIONS)} import from the package itself"
        elif here == "__init__":
            if there in APPLICATIONS:
                yield f"{one}; the package does not import its applications"
        elif LAYERS.index(there) > LAYERS.index(here) and not (one.lazy and there in LAZILY_UPWARD.get(here, ())):
            yield f"{one}, which is below {here}"


def public_errors(module: Module) -> Iterator[str]:
    """What an application takes that is not public: modules by import, names by import or by `pf.name`."""
    if module.layer not in PUBLIC_ONLY:
        return
    public = set(getattr(pdofm, "__all__", [])) | PUBLIC_MODULES
    aliases = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            aliases |= {alias.asname or "pdofm" for alias in node.names if alias.name == "pdofm"}
    for one in imports(module):
        _, *names = one.target.split(".")
        if one.layer is None or one.layer in APPLICATIONS or not names:
            continue
        if names[0] not in public or any(name.startswith("_") for name in names) or is_hidden(names):
            yield f"{one}, which is not public"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            dunder = node.attr.startswith("__") and node.attr.endswith("__")
            if node.attr not in public and not dunder:
                yield f"pdofm.{module.name}, line {node.lineno}: uses pdofm.{node.attr}, which is not public"


def is_hidden(names: list[str]) -> bool:
    """True for `pdofm.adaptive.entry.solve`: the first name is public as a function, but here it means the module."""
    return len(names) > 1 and names[0] not in PUBLIC_MODULES


def slow_errors(module: Module) -> Iterator[str]:
    for one in imports(module):
        slow = next((name for name in SLOW if f"{one.target}.".startswith(f"{name}.")), None)
        if slow is None or one.type_only:
            continue
        if not one.lazy:
            yield f"{one} at module level; import {slow} inside the function that needs it"
        elif slow == "matplotlib" and not (
            module.name in DRAWING or (module.layer in APPLICATIONS and "figure" in module.name)
        ):
            yield f"{one}; only output.plot, and the figures of experiments and benchmarks, use matplotlib"


def private_errors(module: Module) -> Iterator[str]:
    """Private names that a test reaches for: attributes of anything but `self`, imports, and names in strings."""
    for node in ast.walk(module.tree):
        names: list[str] = []
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name):
                names = [name]
            case ast.Import(names=aliases):
                names = [part for alias in aliases for part in alias.name.split(".")]
            case ast.ImportFrom(module=source, names=aliases):
                names = [*(source or "").split("."), *(alias.name for alias in aliases)]
            case ast.Call(func=function, args=[_, ast.Constant(value=str(name)), *_]):
                if ast.unparse(function).split(".")[-1] in ("getattr", "hasattr", "setattr", "delattr"):
                    names = [name]
            case ast.Constant(value=str(path)) if path.startswith("pdofm.") and path.replace(".", "").isidentifier():
                names = path.split(".")
        for name in names:
            # With an underscore at both ends it is a protocol, such as __init__ or _repr_png_.
            if name.startswith("_") and not name.endswith("_"):
                yield f"{module.name}, line {node.lineno}: uses {name}, which is private; test what it does for others"


LONGEST_FUNCTION, LONGEST_FILE = 60, 350
"""Lines: what fits on a screen, and what can be read in one sitting."""


def length_errors(module: Module, text: str) -> Iterator[str]:
    """A function, or a file, that is too long. A comment right above a function may say why it is."""
    lines = text.splitlines()
    if len(lines) > LONGEST_FILE:
        yield f"{module.name}: {len(lines)} lines; at most {LONGEST_FILE} can be read in one sitting: split it"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            is_explained = start > 1 and lines[start - 2].lstrip().startswith("#")
            if length > LONGEST_FUNCTION and not is_explained:
                yield f"{module.name}, line {node.lineno}: {node.name} has {length} lines; at most {LONGEST_FUNCTION}"


MODULES = read_package()
TESTS = [read_module(path.stem, False, path.read_text("utf-8")) for path in sorted(Path(__file__).parent.glob("*.py"))]


def errors_of(check: Callable[[Module], Iterator[str]], modules: list[Module]) -> list[str]:
    return [error for module in modules for error in check(module)]


def test_every_module_has_a_layer():
    assert {module.layer for module in MODULES} <= set(LAYERS), "Give the others a place in LAYERS."


def test_a_module_imports_only_what_stands_above_it():
    assert errors_of(layer_errors, MODULES) == []


def test_applications_use_public_names_only():
    assert errors_of(public_errors, MODULES) == []


def test_slow_packages_are_imported_where_they_are_used():
    assert errors_of(slow_errors, MODULES) == []


def test_functions_fit_on_a_screen_and_files_can_be_read_in_one_sitting():
    texts = [(path, path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]
    assert [error for p, text in texts for error in length_errors(read_module(p.stem, False, text), text)] == []


def test_tests_use_no_private_names():
    assert errors_of(private_errors, TESTS) == []


def test_importing_pdofm_does_not_load_what_only_some_users_need():
    unwanted = [*SLOW, "typer", "optax", "dask", "distributed"]
    code = f"import sys, pdofm; print([name for name in {unwanted} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# The checks must be able to fail.


@pytest.mark.parametrize(
    ("check", "name", "source", "message"),
    [
        (layer_errors, "errors", "from .metrics import gram", "imports pdofm.metrics.gram, which is below errors"),
        (layer_errors, "errors", "def f():\n    from pdofm import metrics", "line 2: imports pdofm.metrics"),
        (layer_errors, "domain.base", "from ..numerics.sampling import draw", None),
        (layer_errors, "domain.base", "from .csg import Union\nfrom . import csg", None),
        (layer_errors, "metrics", "from .numerics.sampling import draw", "which is below metrics"),
        (layer_errors, "features.base", "from ..domain import Box", None),
        (layer_errors, "features.base", "import pdofm.errors", None),
        (layer_errors, "features.base", "import pdofm", "import from the package itself"),
        (layer_errors, "features.base", "from ..problem import Problem", "never import each other"),
        (layer_errors, "problem.data", "def f():\n    from ..features import Chebyshev", "never import each other"),
        (layer_errors, "solving.solution", "def f():\n    from ..output import plot", None),
        (layer_errors, "solving.solution", "from ..output import plot", "which is below solving"),
        (layer_errors, "solving.solution", "def f():\n    from ..zoo import get", "which is below solving"),
        (layer_errors, "__init__", "from . import metrics", None),
        (layer_errors, "__init__", "from .cli import main", "does not import its applications"),
        (layer_errors, "cli", "import pdofm as pf", None),
        (public_errors, "cli", "from pdofm import metrics\nfrom pdofm.metrics import gram", None),
        (public_errors, "cli", "from pdofm.errors import PdofmError", None),
        (public_errors, "cli", "from pdofm._types import Points", "which is not public"),
        (public_errors, "cli", "from .metrics import _norm", "which is not public"),
        (public_errors, "cli", "import pdofm as pf\npf._secret", "uses pdofm._secret"),
        (public_errors, "experiments.runner", "from .tables import _row\nimport numpy", None),
        (public_errors, "metrics", "from ._types import Points", None),
        (private_errors, "test_it", "from pdofm.metrics import _norm", "line 1: uses _norm"),
        (private_errors, "test_it", "from pdofm._types import Points", "uses _types"),
        (private_errors, "test_it", "import pdofm._types", "uses _types"),
        (private_errors, "test_it", "x = 1\nmodule._blocks(x)", "line 2: uses _blocks"),
        (private_errors, "test_it", "monkeypatch.setattr(module, '_blocks', None)", "uses _blocks"),
        (private_errors, "test_it", "monkeypatch.setattr('pdofm.metrics._norm', None)", "uses _norm"),
        (private_errors, "test_it", "self._x = figure._repr_png_() + module.__name__", None),
        (private_errors, "test_it", "_own = getattr(module, 'blocks')(_own)", None),
        (slow_errors, "sampling", "from scipy.stats import qmc", "at module level"),
        (slow_errors, "sampling", "from scipy import stats", "at module level"),
        (slow_errors, "sampling", "def f():\n    from scipy import stats", None),
        (slow_errors, "sampling", "from scipy import linalg", None),
        (slow_errors, "output.plot", "import matplotlib.pyplot as plt", "at module level"),
        (slow_errors, "output.plot", "def f():\n    import matplotlib.pyplot as plt", None),
        (slow_errors, "experiments.figures", "def f():\n    import matplotlib.pyplot as plt", None),
        (slow_errors, "solution", "def f():\n    import matplotlib", "only output.plot"),
        (slow_errors, "domain.polygon", "if TYPE_CHECKING:\n    import shapely", None),
        (slow_errors, "domain.polygon", "if not TYPE_CHECKING:\n    import shapely", "at module level"),
        (slow_errors, "domain.polygon", "try:\n    import shapely\nexcept ImportError:\n    pass", "at module level"),
    ],
)
def test_the_checks_find_what_they_look_for(check, name, source, message):
    module = read_module("" if name == "__init__" else name, name == "__init__", source)
    found = list(check(module))
    if message is None:
        assert found == []
    else:
        assert len(found) == 1
        assert message in found[0]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f():\n" + "    x = 1\n" * 59, 0),
        ("def f():\n" + "    x = 1\n" * 60, 1),
        ("# It is long, because …\ndef f():\n" + "    x = 1\n" * 60, 0),
        ("x = 1\n" * 351, 1),
    ],
)
def test_what_is_too_long_is_found(text, count):
    assert len(list(length_errors(read_module("example", False, text), text))) == count
