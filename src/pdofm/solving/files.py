"""Solutions in files: safetensors with a readable header. Reading one runs no code.

A file holds the features, the coefficients, the names of the unknowns, the domain, the verdict, the statistics and the
record of a search. It does not hold the equation, which is code: a loaded solution is a function that knows how
accurate it is, and can be evaluated, drawn and used in other problems.
"""

import dataclasses
import json
from collections.abc import Callable
from os import PathLike
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np

from pdofm.calculus.parameters import FieldValues
from pdofm.domain import Domain
from pdofm.domain.files import describe, restored
from pdofm.errors import FeaturesError, FileError, ProblemError
from pdofm.features import Features
from pdofm.features import io as features_io
from pdofm.problem.problem import Problem
from pdofm.solving.inferred import Correction, FoundField, Inferred
from pdofm.solving.solution import Solution
from pdofm.solving.stats import Attempt, Residual, Stats
from pdofm.solving.verdict import Evidence, Status, Verdict

INFERRED = ("covariance", "influence")
"""The arrays of a solution with unknown numbers."""

FORMAT = "pdofm-solution-1"
"""The format of a solution, by which `load` recognises it; a change that older versions cannot read increases the
number."""


Reader = Callable[[dict[str, str], dict[str, np.ndarray], str], Any]
"""From the header and the arrays of a file, and what messages call it, to what it describes."""

_readers: dict[str, Reader] = {}


@dataclasses.dataclass(frozen=True)
class Kind:
    """A subclass of `Solution` that knows more than every solution does.

    Attributes:
        of: the subclass.
        written: what it knows besides, as numbers, texts, and lists and dictionaries of them.
        read: the solution with what `written` gave.
    """

    of: type[Solution]
    written: Callable[[Any], dict[str, Any]]
    read: Callable[[Solution, dict[str, Any]], Solution]


_kinds: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Let `save` and `load` keep what solutions of a subclass know."""
    _kinds[kind.of.__name__] = kind


@runtime_checkable
class HasContent(Protocol):
    """What describes itself as the content of a file."""

    def content(self) -> bytes:
        """The content."""
        ...


def reader(kind: str) -> Callable[[Reader], Reader]:
    """Register a function that reads files of a format."""

    def register(function: Reader) -> Reader:
        _readers[kind] = function
        return function

    return register


def save(path: Any, what: Any) -> None:
    """Write features, a solution or a reduced family to a safetensors file, from which `load` restores them bit by bit.

    Equal objects give equal files. The equation of a solution is not saved, because it is code.
    """
    if isinstance(what, Solution):
        features_io.write(path, content(what))
        return
    if isinstance(what, HasContent) and not isinstance(what, Features):
        features_io.write(path, what.content())
        return
    if not isinstance(what, Features) and not isinstance(path, Features | Solution):
        raise FeaturesError(
            f"save() writes features or a solution; got {type(what).__name__}. Of one of many solutions, save its "
            ".features, and its .coefficients with numpy.save."
        )
    if isinstance(path, Features | Solution):
        raise FileError("The path comes first: save(path, what).")
    features_io.save(path, what)


def load(path: str | PathLike) -> Any:
    """Read features or a solution from a file that `save` wrote, or features by name from those that come with the
    package.

    ``load("poisson-2d")`` and ``load("poisson-3d")`` are 500 features each, trained for many solutions of Poisson's
    equation. They are defined on the box [-1, 1]^d; ``load(…).on(domain)`` moves them to the box of a domain.

    A loaded solution evaluates to the same bits, is drawn, differentiated and used in other problems as before. It does
    not know its equation.
    """
    header, arrays = features_io.read(path)
    if header.get("format") in _readers:
        return _readers[header["format"]](header, arrays, repr(str(path)))
    if header.get("format") != FORMAT:
        return features_io.load(path)
    return _solution(header, arrays, repr(str(path)))


def content(solution: Solution) -> bytes:
    """A solution as the content of a file."""
    coefficients = np.asarray(solution.coefficients)
    arrays: dict[str, np.ndarray] = {"coefficients": np.ascontiguousarray(coefficients)}
    numbers, fields = {}, {}
    if isinstance(solution, Inferred):
        numbers = {name: [value, *solution.intervals[name]] for name, value in solution.numbers.items()}
        arrays |= {name: np.ascontiguousarray(getattr(solution, name)) for name in INFERRED}
        fields = {name: _field_content(name, each, arrays) for name, each in solution.fields.items()}
    tree = features_io.encode(solution.features, "features.", arrays)
    layout = solution.problem.layout
    about = {
        "name": solution.problem.name,
        "unknowns": None if layout.unknowns is None else [list(each) for each in layout.unknowns],
        "is_complex": layout.is_complex,
        "numbers": numbers,
        "fields": fields,
        "noise": getattr(solution, "noise", None),
        "domain": describe(solution.problem.domain),
        "column_major": bool(coefficients.flags.f_contiguous and not coefficients.flags.c_contiguous),
        "error_estimate": solution.error_estimate,
        "verdict": _described(solution.verdict),
        "stats": dataclasses.asdict(solution.stats),
        "space": solution.space,
        "attempts": [dataclasses.asdict(attempt) for attempt in solution.attempts],
    }
    name = type(solution).__name__
    if name in _kinds:
        about |= {"kind": name, "more": _kinds[name].written(solution)}
    header = {"features": json.dumps(tree), "solution": json.dumps(about)}
    return features_io.serialised(FORMAT, header, arrays)


def from_content(data: bytes) -> Solution:
    """The solution that `content` described, for pickle."""
    from safetensors.numpy import load as parsed

    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])["__metadata__"]
    return _solution(header, parsed(data), "the pickled solution")


def _solution(header: dict[str, str], arrays: dict[str, np.ndarray], what: str) -> Solution:
    try:
        about = json.loads(header["solution"])
        coefficients = arrays.pop("coefficients")
        inferred, fields = _inferred(about, arrays), _fields(about, arrays)
        features = features_io.decode(json.loads(header["features"]), arrays)
        domain = restored(about["domain"])
        unknowns = None if about["unknowns"] is None else {str(name): int(size) for name, size in about["unknowns"]}
        # Files of the first versions have real unknowns only.
        problem = without_equation(domain, unknowns, str(about["name"]), about.get("is_complex", False))
        expected = (features.size, problem.layout.components)
        if not isinstance(features, Features) or features.dim != domain.dim or coefficients.shape != expected:
            raise ValueError(f"coefficients of shape {coefficients.shape} do not fit the features")
        if coefficients.dtype != np.float64:
            raise ValueError(f"coefficients of type {coefficients.dtype}")
        features_io.check(features)
        if inferred:
            found = {name: FoundField(problem, *each) for name, each in fields.items()}
            inferred["fields"] = found
        ordered = np.asfortranarray(coefficients) if about["column_major"] else coefficients
        found = (Inferred if inferred else Solution)(
            problem,
            features,
            ordered,
            float(about["error_estimate"]),
            _verdict(about["verdict"]),
            _stats(about["stats"]),
            str(about["space"]),
            tuple(Attempt(**attempt) for attempt in about["attempts"]),
            **inferred,
        )
        kind = _kinds.get(about.get("kind"))
        return found if kind is None else kind.read(found, about["more"])
    except features_io.MALFORMED as error:
        raise FeaturesError(f"{what} does not describe a solution of this package: {error!r}.") from error


def without_equation(domain: Domain, unknowns: dict[str, int] | None, name: str, is_complex: bool) -> Problem:
    """A problem of which only domain, unknowns and name are known."""
    return _Kept(domain, _no_equation, unknowns=unknowns, name=name, dtype=complex if is_complex else float)


def _inferred(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What a solution with unknown numbers has besides; nothing for others, and in files of the first versions."""
    numbers = about.get("numbers") or {}
    if not numbers and not about.get("fields"):
        return {}
    values = {str(name): float(value) for name, (value, _, _) in numbers.items()}
    intervals = {str(name): (float(low), float(high)) for name, (_, low, high) in numbers.items()}
    noise = None if about["noise"] is None else float(about["noise"])
    return {"numbers": values, "intervals": intervals, "noise": noise} | {name: arrays.pop(name) for name in INFERRED}


def _field_content(name: str, found: FoundField, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A field as the header describes it; its arrays are added to the others."""
    if callable(found.values.start):
        raise FeaturesError(
            f"The field {name!r} starts at a function, which is code and cannot be saved. Save its values at points, "
            "or start at a number."
        )
    arrays[f"field.{name}.coefficients"] = np.ascontiguousarray(found.coefficients)
    arrays[f"field.{name}.covariance"] = np.ascontiguousarray(found.covariance)
    tree = features_io.encode(found.features, f"field.{name}.features.", arrays)
    return {"start": found.values.start, "positive": found.values.positive, "weight": found.weight, "features": tree}


def _fields(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, tuple[Any, ...]]:
    """What a `FoundField` consists of besides its problem, by name."""
    found = {}
    for name, each in about.get("fields", {}).items():
        coefficients, covariance = (arrays.pop(f"field.{name}.{what}") for what in ("coefficients", "covariance"))
        features = features_io.decode(each["features"], arrays)
        values = FieldValues(float(each["start"]), bool(each["positive"]), Correction(features, coefficients))
        found[str(name)] = values, features, coefficients, covariance, float(each["weight"])
    return found


class _Kept(Problem):
    """What a file knows of the problem of its solution: domain, unknowns and name, but no equation."""

    def __post_init__(self):
        """Nothing is checked: there is no equation and no condition."""

    def __repr__(self) -> str:
        return f"Problem({self.name!r} on {self.domain!r}, from a file, without its equation)"

    def replace(self, **changes: Any) -> Problem:
        raise ProblemError("This problem comes from a file and has no equation. State it again: Problem(domain, …).")


def _no_equation(*args: Any) -> NoReturn:
    raise ProblemError(
        "A solution from a file does not know its equation, which is code. State the problem again to solve it; the "
        "solution itself can be evaluated, drawn, and used in the functions of other problems."
    )


def _described(verdict: Verdict) -> dict[str, Any]:
    evidence = {f.name: getattr(verdict.evidence, f.name) for f in dataclasses.fields(Evidence)}
    evidence["violations"] = dict(evidence["violations"])
    evidence["iteration"] = None if evidence["iteration"] is None else _described(evidence["iteration"])
    return {"status": verdict.status.name, "message": verdict.message, "remedy": verdict.remedy, "evidence": evidence}


def _verdict(tree: dict[str, Any]) -> Verdict:
    evidence = dict(tree["evidence"])
    evidence["iteration"] = None if evidence["iteration"] is None else _verdict(evidence["iteration"])
    return Verdict(Status[tree["status"]], str(tree["message"]), str(tree["remedy"]), Evidence(**evidence))


def _stats(tree: dict[str, Any]) -> Stats:
    residuals = {str(name): Residual(**each) for name, each in tree["residuals"].items()}
    if not all(isinstance(tree[name], int) for name in ("rows", "features", "components", "rank")):
        raise ValueError("counts that are no integers")
    return Stats(**{**tree, "residuals": residuals})
