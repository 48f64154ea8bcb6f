"""One solve with given features: validate, choose what is not given, run a method, wrap the answer."""

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from weakref import WeakKeyDictionary

import numpy as np

from pdofm._types import Key
from pdofm.assemble import Memory, assemble
from pdofm.collocate import Block, collocate
from pdofm.errors import FeaturesError, NonlinearError, ProblemError, SolveError
from pdofm.estimate import UNSEEN, estimate_error, undetermined
from pdofm.evaluate import feature_values
from pdofm.features import Features, NetworkFeatures, check_count, polynomial_degree
from pdofm.methods import Linear, Method, Newton, Outcome, Setting
from pdofm.problem import Problem
from pdofm.sampling import generator
from pdofm.solution import Residual, Solution, Stats

SIZES = {1: 100, 2: 500, 3: 1200}
SIZES_OF_SYSTEMS = {1: 100, 2: 300, 3: 600}
LARGEST_SIZE = 1500

ACCEPTABLE = 1e-2
"""Without a tolerance a solution counts as converged if its estimated relative error is below this: two digits."""


ROUNDING = 1e-15
"""No tolerance below this can be met in float64."""

VIOLATED = 0.05
"""A term whose (scaled) residual at points that were not fitted exceeds this fraction of all data is not solved."""

NOT_DETERMINED = "not determined: there are functions that neither the equation nor the conditions see at the points"

SATISFIED = 1e-8
"""Below this fraction of all data nothing is violated."""


_IMPOSED: WeakKeyDictionary[Problem, set[Hashable]] = WeakKeyDictionary()
"""What features were found to impose just as their problem asks for it."""


def default_features(problem: Problem, size: int | None = None, key: Key = 0) -> Features:
    """The features that `solve` takes by itself: an untrained residual network of that width on the domain's box."""
    if size is None:
        sizes = SIZES if problem.layout.components == 1 else SIZES_OF_SYSTEMS
        size = sizes.get(problem.domain.dim, LARGEST_SIZE)
    return NetworkFeatures(problem.domain, width=size, key=key)


def default_counts(problem: Problem, size: int) -> tuple[int, int]:
    """How many points: four per feature inside; on the boundary four per degree of freedom of polynomials of the same
    dimension there."""
    dim = problem.domain.dim
    degree = polynomial_degree(size, dim)
    on_a_face = prod((degree + i) / i for i in range(1, dim))
    return 4 * size, int(min(4 * 2 * dim * on_a_face, 3 * size))


def fit(
    problem: Problem,
    features: Features | int | None = None,
    *,
    method: Method | None = None,
    points: int | None = None,
    boundary_points: int | None = None,
    sampling: str = "sobol",
    tol: float | None = None,
    key: Key = 0,
    memory: Memory | None = None,
) -> Solution:
    """What `solve` does for given features; never warns, the solution says whether it has converged. `memory` is what
    is known from solving the same problem before."""
    clock = Clock()
    with clock("points"):
        prepared = prepare("solve", problem, features, points, boundary_points, sampling, key, memory)
        held_out = prepared.other_points(prepared.setting.features.size)
        setting = replace(prepared.setting, held_out=held_out)
    features, size = setting.features, setting.features.size
    with clock("assemble"):
        first = Linear() if method is None else method
        system = setting.system(first.start(setting), check=True)
    with clock("solve"):
        try:
            outcome = first.run(setting, system)
        except NonlinearError:
            if method is not None:
                raise
            outcome = Newton().run(setting, system)
    with clock("estimate"):
        unseen = outcome.unseen or setting.system(
            outcome.coefficients, held_out, check=True, fold=False, role="held out"
        )
        estimate = estimate_error(features, outcome, unseen, held_out[0].points)
        free = undetermined(features, outcome.factorization, held_out[0].points)
        estimate = max(estimate, free if free <= UNSEEN else 1.0)
    residuals = {
        name: Residual(_rms(outcome.residual[rows]), _rms((unseen.left - unseen.right)[unseen.rows[name]]))
        for name, rows in outcome.rows.items()
    }
    stats = Stats(
        rows=len(outcome.residual),
        features=size,
        components=problem.layout.components,
        rank=outcome.factorization.rank,
        condition=outcome.factorization.condition,
        residuals=residuals,
        held_out=_rms(unseen.b),
        seconds=clock.seconds,
        steps=outcome.steps,
        finished=outcome.converged,
        undetermined=free,
    )
    data = _rms(unseen.scales * unseen.right)
    violated = {name: _rms(unseen.b[rows]) / data if data > 0 else 0.0 for name, rows in unseen.rows.items()}
    remedy = advice(prepared, estimate, max(violated.values()), free)
    converged, reason = _judge(outcome, estimate, violated, free, tol, remedy)
    return Solution(problem, features, outcome.coefficients, estimate, converged, reason, stats)


@dataclass(frozen=True)
class Prepared:
    """A problem, its features and its points, checked: what solving and factoring start from."""

    setting: Setting
    boundary_points: int
    seed: int

    def other_points(self, interior: int) -> list[Block]:
        """Points that are not fitted: so many inside, and a quarter as many as fitted on the boundary."""
        setting, count = self.setting, max(self.boundary_points // 4, 16)
        return collocate(
            *(setting.problem, max(interior, 64), count), features=setting.features, sampling="random", key=self.seed
        )


def check_problem(caller: str, problem: object) -> None:
    """Refuse what is not a problem, and one that would be solved wrongly."""
    if not isinstance(problem, Problem):
        hint = f"zoo.get({problem!r})" if isinstance(problem, str) else "Problem(…) or zoo.get(…)"
        raise ProblemError(f"{caller}() takes a Problem; got {type(problem).__name__}. Make one with {hint}.")
    if problem.hidden_jump is not None:
        where = f"A coefficient of the operator of {problem.name!r} jumps near {problem.hidden_jump.point.tolist()}"
        if problem.hidden_jump.is_certain:
            raise ProblemError(
                f"{where} inside a derivative, where automatic differentiation does not see the jump: the solution "
                "would be wrong. Use one unknown on each side of the jump, with conditions for the value and the flux "
                "where they meet, or a smooth transition. A jump outside derivatives, as in a(x) * laplacian(u)(x), or "
                "in the source is allowed."
            )
        raise ProblemError(
            f"{where}. Whether that is inside a derivative, where automatic differentiation would not see it, cannot "
            "be told, because derivatives are taken by functions of JAX. Write them with the operators of pdofm: grad, "
            "div, partial, laplacian, hessian."
        )


def prepare(
    caller: str,
    problem: Problem,
    features: Features | int | None,
    points: int | None,
    boundary_points: int | None,
    sampling: str,
    key: Key,
    memory: Memory | None = None,
) -> Prepared:
    """Validate what `caller` was given, choose what was not given, and place the points."""
    check_problem(caller, problem)
    seeds = [int(s) for s in generator(key).integers(2**31, size=3)]
    if isinstance(features, int | np.integer):
        check_count("features", features)
    if features is None or isinstance(features, int | np.integer):
        features = default_features(problem, features, seeds[0])
    if not isinstance(features, Features):
        hint = " Give its .features." if isinstance(getattr(features, "features", None), Features) else ""
        raise FeaturesError(
            f"features must be Features such as NetworkFeatures(domain), or a number; got {type(features).__name__}."
            + hint
        )
    check_fit(problem, features)
    interior, boundary = default_counts(problem, features.size)
    interior = interior if points is None else points
    boundary = boundary if boundary_points is None else boundary_points
    blocks = collocate(problem, interior, boundary, features=features, sampling=sampling, key=seeds[1])
    rows = sum(len(block.points) for block in blocks)
    if rows < features.size:
        raise SolveError(
            f"Fewer rows than features: {rows} points for {features.size} features. Use more points (points=, "
            "boundary_points=) or fewer features."
        )
    setting = Setting(problem, features, blocks, memory=Memory() if memory is None else memory)
    return Prepared(setting, boundary, seeds[2])


def advice(prepared: Prepared, estimate: float = 0.0, violated: float = 1.0, free: float = 0.0) -> str:
    """What to change where the answer is not good enough: points, if there are fewer than usual, else features, and
    the problem itself where nothing is solved, or where all is satisfied and the answer still uncertain."""
    setting = prepared.setting
    usual, _ = default_counts(setting.problem, setting.features.size)
    inside = len(setting.blocks[0].points)
    if inside < usual / 2:
        return f"use more points: {inside} inside for {setting.features.size} features, usual are {usual} (points=)"
    if free > UNSEEN:
        return "add a condition, such as a value at a point, or points"
    if estimate <= ACCEPTABLE:
        return "use more features"
    if violated < SATISFIED:
        return "yet all that the problem asks for is satisfied: it leaves the solution undetermined, add a condition"
    return "use more features, unless the conditions contradict each other or leave the solution undetermined"


def _judge(
    outcome: Outcome, estimate: float, violated: dict[str, float], free: float, tol: float | None, remedy: str
) -> tuple[bool, str]:
    accepted = ACCEPTABLE if tol is None else tol
    if not outcome.converged:
        return False, outcome.reason
    if free > UNSEEN:
        return False, f"it is {NOT_DETERMINED}; {remedy}"
    if accepted < ROUNDING < estimate:
        return False, (
            f"the estimated relative error is {estimate:.1e}; {accepted:g} is beyond what rounding allows in float64"
        )
    if not estimate <= accepted:
        return (
            False,
            f"the estimated relative error {estimate:.1e} is above {accepted:g}; {remedy}",
        )
    worst = max(violated, key=lambda name: violated[name])
    if violated[worst] > VIOLATED:
        return False, (
            f"{worst!r} is violated at points that were not fitted, by {violated[worst]:.0%} of the data; conditions "
            "may contradict each other, or points or features are too few"
        )
    return True, outcome.reason


def check_fit(problem: Problem, features: Features) -> None:
    """Refuse features that are not made for the domain, or impose what the problem does not ask for."""
    domain = problem.domain
    if features.dim != domain.dim:
        raise FeaturesError(
            f"The features are defined in {features.dim} dimensions, the domain {domain!r} has {domain.dim}. "
            "Make features on this domain."
        )
    slack = 1e-9 * domain.size
    lower, upper = np.asarray(features.lower), np.asarray(features.upper)
    if (domain.lower < lower - slack).any() or (domain.upper > upper + slack).any():
        raise FeaturesError(
            f"The domain {domain!r} reaches outside the box of the features, {lower.tolist()} to {upper.tolist()}. "
            "Make features on this domain or on a box that contains it, or move these: features.on(domain)."
        )
    if features.imposes == "value":
        known, key = _IMPOSED.setdefault(problem, set()), features.boundary_key
        if key is None or key not in known:
            _check_imposed(problem, features)
            known.add(key)
    wider = (domain.lower > lower + slack).any() or (domain.upper < upper - slack).any()
    if features.imposes == "periodic" and wider and any(term.kind == "periodic" for term in problem.terms):
        raise FeaturesError(
            f"The features are periodic on the box {lower.tolist()} to {upper.tolist()}, the problem is on its domain "
            f"{domain!r}. Make them on this domain."
        )


def _check_imposed(problem: Problem, features: Features) -> None:
    """What the features satisfy by construction must be what the problem asks for."""
    imposed = [term for term in problem.terms if term.kind == features.imposes]
    if not imposed:
        raise FeaturesError(
            f"{type(features).__name__} imposes values on the whole boundary, but no condition of {problem.name!r} "
            "gives all "
            "unknowns there. Use the inner features."
        )
    blocks = [block for block in collocate(problem, 1, 64) if block.term.name in {term.name for term in imposed}]
    zero = np.zeros((features.size, problem.layout.components))
    system = assemble(problem.layout, features, blocks, zero, check=False)
    values, inside = (
        feature_values(features, points)
        for points in (np.concatenate([block.points for block in blocks]), problem.domain.sample(64))
    )
    if not np.abs(values).max() <= 1e-10 * np.abs(inside).max():
        raise FeaturesError(
            f"{type(features).__name__} does not vanish on the boundary of {problem.domain!r}. Make it for this domain."
        )
    gap = np.abs(system.left - system.right)
    if not gap.max() <= 1e-10 * max(1.0, np.abs(system.right).max()):
        raise FeaturesError(
            f"The lifting of {type(features).__name__} differs from the boundary values of {problem.name!r} by "
            f"{gap.max():.1e}. "
            "Give a value that agrees with the condition."
        )


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


class Clock:
    """Seconds per phase."""

    def __init__(self):
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[phase] = time.perf_counter() - start
