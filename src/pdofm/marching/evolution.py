"""The answer of a march: a solution that consists of slabs."""

import math
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from jax.core import Tracer

from pdofm.features import Features
from pdofm.features.slabs import BEYOND, Slabs
from pdofm.marching.arrays import Points
from pdofm.marching.run import Piece, Run
from pdofm.solving.called import points_of
from pdofm.solving.files import Kind, register
from pdofm.solving.solution import Solution


@dataclass(frozen=True, slots=True)
class SlabInfo:
    """One slab of a solution.

    Attributes:
        start, end: its times.
        features: the number of functions of x, per component.
        stages: the degree of the polynomials in time.
        tail: the size of the last coefficients in space and time, relative to the solution.
        steps: the number of iterations.
    """

    start: float
    end: float
    features: int
    stages: int
    tail: float
    steps: int


@dataclass(frozen=True, eq=False)
class Evolution(Solution):
    """The solution of a space-time problem by `march`: a `Solution` with the slabs that it was found in.

    Where the march ended early, because of an interrupt or because the solution ceased to exist, values at later times
    are NaN; ``slabs[-1].end`` is the last time reached. After the end of the domain they are NaN as well, with a
    warning.

    Attributes:
        slabs: the slabs.
        spectral_radius: by what factor small errors grow, in the long run, over a slab like the last one. Computed
            where functions on the whole domain are used, whose stability is not known beforehand; otherwise NaN.
    """

    slabs: tuple[SlabInfo, ...] = ()
    spectral_radius: float = math.nan

    def __call__(self, *points: Any) -> Any:
        self._warn_of_late(points, 3)
        return super().__call__(*points)

    def _derivatives(self, points: tuple[Any, ...], axes: Iterable[int]) -> np.ndarray:
        self._warn_of_late(points, 4)
        return super()._derivatives(points, axes)

    def _warn_of_late(self, points: tuple[Any, ...], level: int) -> None:
        """Point out times after the domain, at which there are no slabs; `level` is the stack level of the user."""
        if any(isinstance(each, Tracer) for each in points):
            return
        start, end = (float(corner[-1]) for corner in (self.problem.domain.lower, self.problem.domain.upper))
        latest = float(np.max(points_of(self.problem, points)[0][:, -1], initial=start))
        if latest > end + BEYOND * (end - start):
            warnings.warn(
                f"The solution was marched to t = {end:g}, and is asked for at t = {latest:g}: values after its end "
                f"are NaN. State the problem on SpaceTime(space, {latest:g}), and march to that time.",
                stacklevel=level,
            )

    def __repr__(self) -> str:
        if not self.slabs:
            return super().__repr__()
        lengths = [slab.end - slab.start for slab in self.slabs]
        sizes = [slab.features for slab in self.slabs]
        verdict = "converged" if self.converged else f"NOT CONVERGED: {self.reason}"
        head = (
            f"Evolution of {self.problem.name!r}: {len(self.slabs)} slabs of length {min(lengths):.1e} to "
            f"{max(lengths):.1e}, {self.space} with {min(sizes)} to {max(sizes)} functions of x"
        )
        if math.isfinite(self.spectral_radius):
            verdict += f"; spectral radius of the last slab {self.spectral_radius:.6g}"
        seconds = ", ".join(f"{phase} {s:.2f}" for phase, s in self.stats.seconds.items())
        return f"{head}\n  estimated relative error {self.error_estimate:.1e}, {verdict}\n  seconds: {seconds}"


def _written(evolution: Evolution) -> dict[str, Any]:
    return {
        "slabs": [asdict(slab) for slab in evolution.slabs],
        "spectral_radius": evolution.spectral_radius,
    }


def _read(solution: Solution, more: dict[str, Any]) -> Evolution:
    known = {field.name: getattr(solution, field.name) for field in fields(Solution)}
    slabs = tuple(SlabInfo(**slab) for slab in more["slabs"])
    return Evolution(**known, slabs=slabs, spectral_radius=float(more["spectral_radius"]))


register(Kind(Evolution, _written, _read))


def slabs_of(run: Run) -> Slabs:
    """The space of the slabs that a run has found."""
    spaces: list[Features] = []
    numbers, last = [], None
    for piece in run.pieces:
        if piece.space is not last:
            spaces.append(piece.space.features)
            last = piece.space
        numbers.append(len(spaces) - 1)
    times = [*(run.time_at(piece.position) for piece in run.pieces), run.ends_of(run.pieces[-1])[1]]
    return Slabs(times, spaces, numbers, run.scheme.stages)


def coefficients_of(run: Run, path: Path | None = None) -> np.ndarray:
    """The coefficients of a run in its slabs, shape (N, C): in memory or, with a path, in a file that is mapped."""
    if path is None:
        return np.concatenate([_coefficients(piece) for piece in run.pieces])
    partial = path.with_name(path.name + ".part")
    with partial.open("wb") as file:
        for piece in run.pieces:
            file.write(np.ascontiguousarray(_coefficients(piece)).tobytes())
    partial.replace(path)
    return np.memmap(path, np.float64, "r").reshape(-1, run.space.statement.components)


def _coefficients(piece: Piece) -> np.ndarray:
    """The coefficients of a slab as `Slabs` has them, shape (m, C)."""
    by_time = piece.space.coefficients(np.asarray(piece.coefficients))
    return np.moveaxis(by_time, 0, 1).reshape(-1, piece.space.statement.components)


def values_of(run: Run, points: Points) -> np.ndarray:
    """The values of a run at points of space-time, shape (n, C), slab by slab."""
    begins = np.array([run.time_at(piece.position) for piece in run.pieces])
    owner = np.clip(np.searchsorted(begins, points[:, -1], side="right") - 1, 0, None)
    found = np.empty((len(points), run.space.statement.components))
    for number in np.unique(owner).tolist():
        piece, here = run.pieces[number], owner == number
        one = Slabs(run.ends_of(piece), [piece.space.features], [0], run.scheme.stages)
        found[here] = one.expand(points[here], [(0,) * points.shape[1]], _coefficients(piece))[0]
    return found


def described(run: Run) -> tuple[SlabInfo, ...]:
    """The slabs of a run in numbers."""
    stages = run.scheme.stages
    found = []
    for piece in run.pieces:
        size = piece.space.size // piece.space.statement.components
        found.append(SlabInfo(*run.ends_of(piece), size, stages, piece.tail, piece.steps))
    return tuple(found)
