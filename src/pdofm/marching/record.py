"""The record of a march in a file: one entry per slab, appended; a killed march goes on from the last whole entry.

An entry holds the slab and everything that the next one depends on: the state, the space, the length to try, and where
the matrices in use were linearised. So a march that goes on computes the same bits as one that was never interrupted.
The coefficients of a slab are left in the file and read when they are needed, so that memory does not grow with the
number of slabs.

An entry is the length and the checksum of what follows, the length of a header in JSON, the header, which has the shape
of each array, and the arrays, all of them float64.
"""

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pdofm.calculus.symbol import random_jet, symbol_of
from pdofm.domain import Part
from pdofm.errors import SolveError
from pdofm.features import Features
from pdofm.marching.run import Piece, Run
from pdofm.marching.slab import Matrices
from pdofm.marching.spaces import Space
from pdofm.marching.statement import Statement
from pdofm.problem.data import values_at

MAGIC = b"pdofm march 3\n"
"""The first bytes of a file; the number is that of the format."""

HEAD = struct.Struct("<QI")
"""What precedes an entry: its length, and its checksum."""

INNER = struct.Struct("<I")
"""What an entry begins with: the length of its header."""

STATE = ("position", "level", "rejected", "time_tail", "waiting", "patience", "is_trial", "is_limited")
"""What an entry keeps of a run."""

DAMAGE = (LookupError, TypeError, ValueError, AttributeError, RecursionError, struct.error)
"""What reading a record raises that is not one."""

PROBES = 16
"""Points per term at which problems are compared."""


@dataclass(frozen=True, slots=True)
class OnDisk:
    """An array of float64 in a file, read whenever it is asked for by `numpy.asarray`."""

    path: Path
    at: int
    shape: tuple[int, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = np.fromfile(self.path, np.float64, math.prod(self.shape), offset=self.at).reshape(self.shape)
        return found if dtype is None else found.astype(dtype)


Entry = tuple[dict[str, Any], dict[str, OnDisk]]


def fingerprint(statement: Statement, tol: float, features: Features | None = None) -> str:
    """What a problem asks at a few points, the tolerance, and what given features are there."""
    problem = statement.problem
    digest = hashlib.sha256(f"{problem.name} {tol!r} {statement.domain!r}".encode())
    if features is not None:
        digest.update(features.jets(statement.domain.space.sample(PROBES), [(0,) * features.dim]).tobytes())
    for term in problem.terms:
        if isinstance(term.on, Part):
            z, normals = term.on.sample(PROBES)
        else:
            z = problem.domain.sample(PROBES) if term.on is None else problem.given_points(term)
            normals = np.zeros_like(z)
        symbol = symbol_of(term.lhs, problem.layout, problem.domain.dim, problem.domain.dim - 1)
        jet = random_jet(len(symbol.indices(z, normals[:, :-1])), len(z), statement.components)
        found = symbol.linearise(z, normals[:, :-1], jet)
        digest.update(term.name.encode() + (b"" if found is None else found.left.tobytes()))
        digest.update(values_at(problem.right_side(term), problem.layout, z, normals[:, :-1]).tobytes())
    return digest.hexdigest()[:16]


class Record:
    """The file of a march; without a path nothing is kept."""

    def __init__(self, path: Path | None, statement: Statement, tol: float, features: Features | None = None):
        self._path = path
        self._entries: dict[tuple[int, int], list[Entry]] = {}
        if path is None:
            return
        own = fingerprint(statement, tol, features)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(MAGIC)
            self._append({"fingerprint": own}, {})
            return
        self._read(path, own)

    @property
    def beside(self) -> Path | None:
        """The file for the coefficients of the solution, if anything is recorded."""
        return None if self._path is None else self._path.with_name(self._path.name + ".slabs")

    def attempt(self, run: int) -> int:
        """The space, by its number, in which a run was last."""
        return max((attempt for number, attempt in self._entries if number == run), default=0)

    def _read(self, path: Path, own: str) -> None:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise SolveError(
                    f"{str(path)!r} is not a record of march, or one of another version. Delete it, or name another "
                    "file."
                )
        try:
            entries = list(_entries(path))
            numbers = [(int(header["run"]), int(header["attempt"])) for (header, _), _ in entries[1:]]
        except DAMAGE as error:
            raise _damaged(path, error) from error
        if entries and entries[0][0][0].get("fingerprint") != own:
            raise SolveError(
                f"The record {str(path)!r} belongs to another problem or tolerance. Delete it, or name another file."
            )
        # What a killed march left unfinished is cut off.
        with path.open("r+b") as file:
            file.truncate(entries[-1][1] if entries else len(MAGIC))
        if not entries:
            self._append({"fingerprint": own}, {})
        for number, (entry, _) in zip(numbers, entries[1:], strict=True):
            self._entries.setdefault(number, []).append(entry)

    def _append(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, OnDisk]:
        """Append an entry; the arrays as they are in the file now."""
        assert self._path is not None
        text = json.dumps({"header": header, "shapes": {name: each.shape for name, each in arrays.items()}}).encode()
        parts = [INNER.pack(len(text)), text, *(np.asarray(each, np.float64).tobytes() for each in arrays.values())]
        content = b"".join(parts)
        with self._path.open("ab") as file:
            at = file.tell() + HEAD.size
            file.write(HEAD.pack(len(content), zlib.crc32(content)) + content)
        return _placed(self._path, at + INNER.size + len(text), {name: each.shape for name, each in arrays.items()})

    def add(self, number: int, attempt: int, run: Run) -> None:
        """Append the last slab of a run, and its state."""
        if self._path is None:
            return
        piece, matrices = run.pieces[-1], run.matrices
        header = {
            "run": number,
            "attempt": attempt,
            "piece": [piece.position, piece.level, piece.tail, piece.steps],
            "space": piece.space.description,
            "next": run.space.description,
            "state": [getattr(run, name) for name in STATE],
            "linearised": None if matrices is None else matrices.time,
        }
        arrays = {"coefficients": np.asarray(piece.coefficients), "scale": run.scale}
        arrays |= {f"state{k}": each for k, each in enumerate(run.states)}
        if matrices is not None:
            arrays |= {f"at{k}": each for k, each in enumerate(matrices.at)}
        run.pieces[-1] = replace(piece, coefficients=self._append(header, arrays)["coefficients"])

    def restore(self, number: int, attempt: int, run: Run) -> None:
        """Bring a run that is at its start to where the record ends."""
        try:
            self._restore(number, attempt, run)
        except DAMAGE as error:
            assert self._path is not None
            raise _damaged(self._path, error) from error

    def _restore(self, number: int, attempt: int, run: Run) -> None:
        space: Space = run.space
        last = None
        for header, arrays in self._entries.get((number, attempt), ()):
            space = _like(space, header["space"])
            position, level, tail, steps = header["piece"]
            run.pieces.append(Piece(position, level, space, arrays["coefficients"], tail, steps))
            space = run.space = _like(space, header["next"])
            for name, value in zip(STATE, header["state"], strict=True):
                setattr(run, name, value)
            run.scale = np.asarray(arrays["scale"])
            last = arrays, header["linearised"]
        if last is not None:
            arrays, linearised = last
            run.states = [np.asarray(arrays[f"state{k}"]) for k in range(len(run.states))]
            run.matrices = None
            if linearised is not None:
                at = [np.asarray(arrays[f"at{k}"]) for k in range(len(run.states) + 1)]
                run.matrices = Matrices(space, at, linearised)


def _damaged(path: Path, error: Exception) -> SolveError:
    return SolveError(f"The record {str(path)!r} is damaged ({error!r}). Delete it, or name another file.")


def _like(space: Space, description: list) -> Space:
    return space if description == space.description else space.described(description)


def _placed(path: Path, at: int, shapes: Mapping[str, Sequence[int]]) -> dict[str, OnDisk]:
    """Arrays that follow each other in a file."""
    found = {}
    for name, shape in shapes.items():
        found[name] = OnDisk(path, at, tuple(shape))
        at += 8 * math.prod(shape)
    return found


def _entries(path: Path) -> Iterator[tuple[Entry, int]]:
    """The whole entries of a file, and where each of them ends."""
    size, at = path.stat().st_size, len(MAGIC)
    with path.open("rb") as file:
        while at + HEAD.size <= size:
            file.seek(at)
            length, checksum = HEAD.unpack(file.read(HEAD.size))
            body = file.read(length) if length <= size else b""
            if len(body) < length or zlib.crc32(body) != checksum:
                return
            (inner,) = INNER.unpack_from(body)
            described = json.loads(body[INNER.size : INNER.size + inner])
            arrays = _placed(path, at + HEAD.size + INNER.size + inner, described["shapes"])
            at += HEAD.size + length
            yield (described["header"], arrays), at
