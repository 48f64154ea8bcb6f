"""Files that were changed by accident or by an attacker, made from whole ones by random mutations."""

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

VALUES = (
    0,
    -1,
    1,
    7,
    10**5,
    10**9,
    2**63,
    1e308,
    -1e-308,
    True,
    None,
    "",
    "x" * 10_000,
    [],
    {},
    [[1, 2]],
    {"value": 3},
)
"""What a value of a header is replaced by."""

DTYPES = ("F64", "F32", "F16", "I64", "I32", "U8", "BOOL", "BF16", "Q9")

DEEP = 50_000
"""Levels of lists in each other that a header may claim."""


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """A safetensors file with one to three changes."""
    for _ in range(rng.integers(1, 4)):
        content = MUTATIONS[rng.integers(len(MUTATIONS))](content, rng)
    return content


def parsed(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the arrays."""
    start = 8 + struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:start]), content[start:]


def joined(header: Any, body: bytes) -> bytes:
    """The file with a header and arrays."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def _with_header(change: Callable[[Any, np.random.Generator], Any]) -> Callable[[bytes, np.random.Generator], bytes]:
    def mutation(content: bytes, rng: np.random.Generator) -> bytes:
        try:
            header, body = parsed(content)
            return joined(change(header, rng), body)
        except (
            ValueError,
            KeyError,
            IndexError,
            TypeError,
            AttributeError,
            RecursionError,
            struct.error,
        ):  # an earlier change won
            return content

    return mutation


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    if not content:
        return content
    found = bytearray(content)
    for _ in range(rng.integers(1, 20)):
        found[rng.integers(len(found))] = rng.integers(256)
    return bytes(found)


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content) + 1)]


def _grow(content: bytes, rng: np.random.Generator) -> bytes:
    return content + bytes(int(rng.integers(1, 5000)))


def _length(content: bytes, rng: np.random.Generator) -> bytes:
    return struct.pack("<Q", int(rng.integers(2**62)) >> int(rng.integers(62))) + content[8:]


def _metadata(header: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Change one of the trees in the metadata."""
    about = header["__metadata__"]
    name = sorted(about)[rng.integers(len(about))]
    try:
        tree = json.loads(about[name])
    except ValueError:
        about[name] = str(VALUES[rng.integers(len(VALUES))])
        return header
    about[name] = json.dumps(changed(tree, rng))
    return header


def changed(tree: Any, rng: np.random.Generator) -> Any:
    """A tree with a value replaced, removed or renamed somewhere."""
    places = list(_places(tree))
    if not places:
        return VALUES[rng.integers(len(VALUES))]
    owner, key = places[rng.integers(len(places))]
    choice = rng.integers(4)
    if choice == 0:
        del owner[key]
    elif choice == 1 and isinstance(owner, dict):
        owner[key + "x"] = owner.pop(key)
    elif isinstance(owner[key], int | float) and choice == 2:
        owner[key] = owner[key] * int(10 ** rng.integers(1, 6)) + int(rng.integers(2))
    else:
        owner[key] = VALUES[rng.integers(len(VALUES))]
    return tree


def _places(tree: Any):
    each = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(each):
        yield tree, key
        yield from _places(value)


def _array(header: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Change what the header says of an array."""
    names = sorted(name for name in header if name != "__metadata__")
    about = header[names[rng.integers(len(names))]]
    choice = rng.integers(4)
    if choice == 0:
        about["dtype"] = DTYPES[rng.integers(len(DTYPES))]
    elif choice == 1:
        about["shape"] = [*about["shape"][::-1], 1][: int(rng.integers(1, 4))]
    elif choice == 2:
        about["shape"] = [int(n) * int(10 ** rng.integers(0, 9)) for n in about["shape"]]
    else:
        about["data_offsets"] = rng.integers(0, 2**40, 2).tolist()
    return header


def _missing(header: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    del header[sorted(header)[rng.integers(len(header))]]
    return header


def _nested(header: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    about = header["__metadata__"]
    name = sorted(about)[rng.integers(len(about))]
    about[name] = "[" * DEEP + "]" * DEEP if rng.random() < 0.5 else '{"tuple":[' * DEEP + "]}" * DEEP
    return header


def _numbers(content: bytes, rng: np.random.Generator) -> bytes:
    """Overwrite numbers of the arrays by ones that are not finite, huge or negative."""
    try:
        start = 8 + struct.unpack("<Q", content[:8])[0]
    except struct.error:
        return content
    count = (len(content) - start) // 8
    if count < 1:
        return content
    found = bytearray(content)
    value = (np.nan, np.inf, 1e300, -1e300, 0.0, 1e-300)[rng.integers(6)]
    for at in rng.integers(0, count, rng.integers(1, 5)).tolist():
        found[start + 8 * at : start + 8 * at + 8] = struct.pack("<d", value)
    return bytes(found)


_changes = _with_header(_metadata)
MUTATIONS = (
    *(_changes,) * 6,  # the changes that get furthest
    *(_with_header(_array),) * 2,
    *(_numbers,) * 2,
    _flip,
    _cut,
    _grow,
    _length,
    _with_header(_missing),
    _with_header(_nested),
)
