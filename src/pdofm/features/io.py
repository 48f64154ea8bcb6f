"""Features in files: safetensors with a readable header. Reading one runs no code.

The header holds a JSON tree of families and settings; arrays are stored under their path in that tree
(``parts.0.first_bias``). A file can only describe families of this package, with exactly the fields that they have.
"""

import json
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

import jax
import numpy as np

from pdofm.archives import write
from pdofm.domain import Regions
from pdofm.domain.files import describe, is_described, restored
from pdofm.errors import FeaturesError, FileError, PdofmError
from pdofm.features.base import MOST_FEATURES, Features, families

FORMAT = "pdofm-features-1"
"""The format, by which `load` recognises a file of `save`; a change that older versions cannot read increases the
number."""

SHIPPED = Path(__file__).parent.parent / "data"
"""The folder of the trained features that come with the package."""

MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, PdofmError)
"""What rebuilding features from a file that was tampered with may raise."""

LONGEST = 200
"""Characters of the longest setting in a file."""

PRECISIONS = (np.float16, np.float32, np.float64)
"""The precisions that arrays are stored in, in ascending order."""


def save(path: str | PathLike, features: Features) -> None:
    """Write features to a safetensors file, from which `load` restores them bit by bit. Equal features give equal
    files."""
    if not isinstance(features, Features):
        hint = " The path comes first: save(path, features)." if isinstance(path, Features) else ""
        raise FeaturesError(f"save() writes Features; got {type(features).__name__}.{hint}")
    arrays: dict[str, np.ndarray] = {}
    tree = encode(features, "", arrays)
    header = {
        "family": type(features).__name__,
        "size": str(features.size),
        "box": json.dumps([np.asarray(features.lower).tolist(), np.asarray(features.upper).tolist()]),
        "tree": json.dumps(tree),
    }
    write(path, serialised(FORMAT, header, arrays))


def serialised(kind: str, header: dict[str, str], arrays: dict[str, np.ndarray]) -> bytes:
    """The content of a safetensors file of this package; equal arguments give equal bytes."""
    from safetensors.numpy import save as serialise

    from pdofm.version import __version__

    return _in_order(serialise(arrays, metadata={"format": kind, "pdofm": __version__, **header}))


def _in_order(file: bytes) -> bytes:
    """A safetensors file with sorted metadata. The library writes them in any order."""
    start = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:start])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # arrays start at multiples of 8
    return len(text).to_bytes(8, "little") + text + file[start:]


def shipped() -> list[str]:
    """The names of the trained features that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.safetensors"))


def load(path: str | PathLike) -> Features:
    """Read features from a file that `save` wrote, or by name from those that come with the package.

    ``load("poisson-2d")`` and ``load("poisson-3d")`` are 500 features each, trained for many solutions of Poisson's
    equation. They are defined on the box [-1, 1]^d; ``load(…).on(domain)`` moves them to the box of a domain.
    """
    header, arrays = read(path)
    if header.get("format") != FORMAT:
        raise FeaturesError(
            f"{str(path)!r} is a safetensors file, but not of format {FORMAT!r} (its header says "
            f"{header.get('format')!r}). Give a file that pdofm.save wrote."
        )
    try:
        found = decode(json.loads(header["tree"]), arrays)
        if not isinstance(found, Features) or str(found.size) != header["size"]:
            raise ValueError("the header and the arrays disagree")
        check(found)
        return found
    except MALFORMED as error:
        raise FeaturesError(f"{str(path)!r} does not describe features of this package: {error!r}.") from error


def read(path: str | PathLike) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The header and the arrays of a safetensors file, or of features that come with the package, by name. No array is
    larger than the file: the library checks that before it reads them."""
    from safetensors import SafetensorError, safe_open

    if not isinstance(path, str | PathLike):
        raise FileError(f"load() takes the path of a file, or a name; got {type(path).__name__}.")
    if str(path) in shipped() and not Path(path).exists():
        path = SHIPPED / f"{path}.safetensors"
    if not Path(path).is_file():
        raise FileError(
            f"There is no file {str(path)!r}. Give the path of a file that pdofm.save wrote, or a name of features "
            f"that come with the package: {', '.join(shipped())}."
        )
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError) as error:
        raise FileError(
            f"{str(path)!r} is not a complete safetensors file ({error}). It may be truncated, or of another kind; "
            "write it again with pdofm.save."
        ) from error


def encode(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON tree of a value. Its arrays are added to `arrays`, under their path."""
    if isinstance(value, Features):
        family = type(value).__name__
        if families().get(family) is not type(value):
            raise FeaturesError(f"{family} cannot be saved. Save features of the families of this package.")
        if value.unsaved:
            raise FeaturesError(f"{family} cannot be saved. {value.unsaved}")
        inside = {f.name: encode(getattr(value, f.name), f"{path}{f.name}.", arrays) for f in fields(value)}
        return {"family": family, "fields": inside}
    if isinstance(value, tuple):
        return {"tuple": [encode(item, f"{path}{i}.", arrays) for i, item in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if isinstance(value, Regions):
        if not is_described(value.whole):
            raise FeaturesError(
                f"The features cannot be saved: numbers alone do not describe the shape of the regions {value.names}. "
                "Save the values that you need instead."
            )
        return {"regions": describe(value.whole)}
    if callable(value):
        raise FeaturesError(
            "A function (the lifting of hard conditions) cannot be saved: a file must not run code. Save the inner "
            "features and wrap them again after loading."
        )
    name = path.rstrip(".")
    arrays[name] = _smallest(np.asarray(value, order="C"))
    return {"array": name, "host": isinstance(value, np.ndarray)}


def _smallest(array: np.ndarray) -> np.ndarray:
    """The array in the lowest precision that represents it exactly; weights that were rounded then take less space."""
    if array.dtype == np.float64:
        with np.errstate(over="ignore"):
            for precision in PRECISIONS:
                if np.array_equal(array.astype(precision).astype(np.float64), array):
                    return array.astype(precision)
    return array


def decode(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value that `encode` described."""
    if "family" in tree:
        family = families().get(tree["family"])
        if family is None or family.unsaved:
            raise ValueError(f"unknown family {tree['family']!r}")
        declared = [f.name for f in fields(family)]
        if sorted(declared) != sorted(tree["fields"]):
            raise ValueError(f"{family.__name__} has the fields {declared}, the file has {sorted(tree['fields'])}")
        features = object.__new__(family)
        for name in declared:
            object.__setattr__(features, name, decode(tree["fields"][name], arrays))
        check = getattr(features, "__check_init__", None)
        if check is not None:
            check()
        return features
    if "regions" in tree:
        return restored(tree["regions"]).materials
    if "tuple" in tree:
        return tuple(decode(item, arrays) for item in tree["tuple"])
    if "array" in tree:
        array = arrays[tree["array"]]
        if array.dtype not in (*PRECISIONS, np.int64) or not np.isfinite(array).all():
            raise ValueError(f"the array {tree['array']!r} is {array.dtype}, or has values that are not finite")
        if array.dtype != np.int64:
            array = array.astype(np.float64)
        return array if tree["host"] else jax.device_put(array)
    value = tree["value"]
    if not (value is None or isinstance(value, bool | int | float | str)) or len(str(value)) > LONGEST:
        raise ValueError("a setting is neither a number nor a word")
    if isinstance(value, int | float) and not abs(value) <= MOST_FEATURES:
        raise ValueError(f"the setting {value} is too large")
    return value


def check(features: Features) -> None:
    """Raise unless features from a file are defined on a box, and their arrays fit together."""
    lower, upper = np.asarray(features.lower), np.asarray(features.upper)
    if lower.ndim != 1 or lower.shape != upper.shape or not len(lower) or not (lower < upper).all():
        raise ValueError("the corners of the box are not those of a box")
    features.check_arrays()
