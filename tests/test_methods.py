"""Linear, Newton and Picard: what they refuse, how fast they converge and to what, and what they say if they do not."""

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.discrete.system import Sums
from pdofm.errors import ConvergenceWarning, ProblemError, SolveError
from pdofm.solving.methods import Outcome

LINE = pf.Interval(-1, 1)


@cache
def burgers() -> pf.Problem:
    """u u' = ν u'' with ν = 0.3, gentle enough for the plain Picard iteration from zero."""
    nu = 0.3
    return pf.Problem(
        LINE,
        operator=lambda u, x: u(x) * pf.partial(u, 0)(x) - nu * pf.laplacian(u)(x),
        source=0.0,
        conditions=[pf.Dirichlet()],
        exact=lambda x: -jnp.tanh(x[0] / (2 * nu)),
        frozen_operator=lambda u, w, x: w(x) * pf.partial(u, 0)(x) - nu * pf.laplacian(u)(x),
        name="gentle burgers",
    )


@cache
def cubic(size: float = 2.0) -> pf.Problem:
    """-u'' + u³ = f with a manufactured solution.

    The plain Picard iteration -u'' + w² u = f contracts like 2u² / (λ + u²) with λ = π²/4: for size 0.5, not for 2.
    """
    return pf.Problem(
        LINE,
        operator=lambda u, x: -pf.laplacian(u)(x) + u(x) ** 3,
        conditions=[pf.Dirichlet()],
        exact=lambda x: size * (1 + jnp.sin(3 * x[0]) / 2),
        frozen_operator=lambda u, w, x: -pf.laplacian(u)(x) + w(x) ** 2 * u(x),
        name="cubic",
    )


@cache
def kovasznay() -> pf.Problem:
    """Kovasznay's flow at Reynolds number 10, which few features resolve."""
    nu = 0.1
    rate = 1 / (2 * nu) - np.sqrt(1 / (4 * nu**2) + 4 * np.pi**2)

    def equations(u, w, x):
        return pf.grad(u.v)(x) @ w.v(x) + pf.grad(u.p)(x) - nu * pf.laplacian(u.v)(x), pf.div(u.v)(x)

    def velocity(x):
        growth, phase = jnp.exp(rate * x[0]), 2 * jnp.pi * x[1]
        return jnp.stack([1 - growth * jnp.cos(phase), rate / (2 * jnp.pi) * growth * jnp.sin(phase)])

    return pf.Problem(
        pf.Box([0, -0.5], [0.5, 0.5]),
        operator=lambda u, x: equations(u, u, x),
        source=0.0,
        conditions=[
            pf.Dirichlet(unknown="v"),
            pf.Dirichlet(unknown="p", on=[[0.25, 0.0]]),
        ],
        unknowns={"v": 2, "p": 1},
        exact={"v": velocity, "p": lambda x: (1 - jnp.exp(2 * rate * x[0])) / 2},
        frozen_operator=equations,
    )


@cache
def poisson() -> pf.Problem:
    return pf.Problem(
        LINE, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=lambda x: jnp.exp(x[0])
    )


SIZE = 40


def difference(u: pf.Solution, v: pf.Solution) -> float:
    points = u.problem.domain.sample(200)
    return float(np.abs(u(points) - v(points)).max() / np.abs(v(points)).max())


# ---- Linear


@pytest.mark.parametrize("name", ["gentle burgers", "cubic"])
def test_linear_refuses_a_nonlinear_equation_and_says_what_to_use(name):
    problem = {p.name: p for p in (burgers(), cubic())}[name]
    message = rf"Linear\(\) needs a linear problem, but 'equation' of '{name}' is not linear.*Newton\(\), or Picard\(\)"
    with pytest.raises(SolveError, match=message):
        pf.solve(problem, 10, method=pf.Linear())


def test_linear_names_all_terms_that_are_not_linear():
    hot = pf.Condition(lambda u, x, normal: pf.normal_derivative(u, normal)(x) + u(x) ** 4 - 1, name="radiation")
    with pytest.raises(SolveError, match=r"but 'radiation' of"):
        pf.solve(poisson().replace(conditions=[hot]), 10, method=pf.Linear())
    with pytest.raises(SolveError, match=r"but 'equation' and 'radiation' of"):
        pf.solve(cubic().replace(conditions=[hot]), 10, method=pf.Linear())


def test_a_linear_problem_is_solved_in_one_step_by_default():
    u = pf.solve(poisson(), SIZE)
    assert u.stats.steps == []
    assert u.reason == f"the estimated relative error {u.error_estimate:.1e} is below 0.01"
    assert u.errors().relative_l2 < 1e-11


@pytest.mark.parametrize("lstsq", [pf.SVD(), pf.QR(), pf.SVD(rcond=1e-12)], ids=repr)
def test_every_least_squares_solver_gives_the_same_solution(lstsq):
    u = pf.solve(poisson(), SIZE, method=pf.Linear(lstsq=lstsq))
    assert u.errors().relative_l2 < 1e-10


def test_newton_on_a_linear_problem_is_the_linear_solve():
    linear, newton = pf.solve(poisson(), SIZE), pf.solve(poisson(), SIZE, method=pf.Newton())
    assert len(newton.stats.steps) <= 3
    assert difference(newton, linear) < 1e-11


# ---- Newton


@pytest.mark.parametrize("problem", [burgers, cubic])
def test_newton_is_the_default_for_nonlinear_problems_and_finds_the_exact_solution(problem):
    u = pf.solve(problem(), SIZE)
    assert u.converged
    assert 2 <= len(u.stats.steps) <= 10
    assert u.errors().relative_l2 < 1e-9


@pytest.mark.parametrize("problem", [burgers, cubic])
def test_newton_converges_quadratically(problem):
    """Each change is at most a constant times the square of the one before, down to the limit of the features."""
    changes = [step["change"] for step in pf.solve(problem(), SIZE, method=pf.Newton(keep=0.0)).stats.steps]
    pairs = [(before, after) for before, after in pairwise(changes) if 1e-6 < before < 0.3]
    assert len(pairs) >= 2
    for before, after in pairs:
        assert after <= 10 * before**2
    # Far faster than linearly: the exponent between the last changes that are above rounding is near two.
    a, b, c = [change for change in changes if change > 1e-10][-3:]
    assert np.log(c / b) / np.log(b / a) > 1.6


@dataclass(frozen=True)
class Counted(pf.QR):
    """Keeps count of the matrices that it factors."""

    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def factor(self, A: np.ndarray, *, overwrite: bool = False):
        self.shapes.append(A.shape)
        return super().factor(A, overwrite=overwrite)


@pytest.mark.parametrize("problem", [burgers, cubic])
def test_a_kept_matrix_saves_factorisations_and_leads_to_the_same_solution(problem):
    features = pf.NetworkFeatures(LINE, SIZE)
    plain, kept = (Counted(rcond=1e-14) for _ in range(2))
    u = pf.solve(problem(), features, method=pf.Newton(lstsq=plain, keep=0.0))
    v = pf.solve(problem(), features, method=pf.Newton(lstsq=kept))
    assert len(plain.shapes) == len(u.stats.steps)
    assert len(kept.shapes) < len(plain.shapes)
    assert v.converged
    assert difference(u, v) < 1e-8


@pytest.mark.parametrize("problem", [burgers, cubic])
def test_a_matrix_that_is_kept_too_long_is_replaced(problem):
    """Kept from the first step on, it leads nowhere: what counts is that steps shrink."""
    features, solver = pf.NetworkFeatures(LINE, SIZE), Counted(rcond=1e-14)
    u = pf.solve(problem(), features, method=pf.Newton(lstsq=solver, keep=np.inf))
    assert u.converged
    assert 2 <= len(solver.shapes) <= len(u.stats.steps)
    assert u.errors().relative_l2 < 1e-9


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
@pytest.mark.parametrize("degree", [5, 7, 9])
@pytest.mark.parametrize("problem", [burgers, cubic])
def test_newton_ends_where_most_of_the_residual_cannot_be_removed(problem, degree):
    """With a matrix at every step or one that is kept the solutions differ by much less than from the exact one."""
    features = pf.Chebyshev(LINE, degree=degree)
    u, v = (pf.solve(problem(), features, method=pf.Newton(keep=keep)) for keep in (0.0, 1e-2))
    assert u.verdict.evidence.is_finished
    assert v.verdict.evidence.is_finished
    assert difference(u, v) < 0.2 * u.errors().relative_l2


def test_the_residual_of_newton_never_grows():
    residuals = [step["residual"] for step in pf.solve(cubic(), SIZE).stats.steps]
    assert all(after <= max(before, 1e-13 * residuals[0]) for before, after in pairwise(residuals))
    assert residuals[-1] < 1e-9 * residuals[0]


def test_the_line_search_tames_steps_that_would_diverge():
    """arctan(u - 3 - x) = 0: Newton's full steps diverge from any start further than 1.39 from the solution."""
    residual = lambda u, x: jnp.arctan(u(x) - 3 - x[0])
    problem = pf.Problem(LINE, residual, 0.0, [pf.Condition(residual)], exact=lambda x: 3 + x[0])
    u = pf.solve(problem, 20)
    assert u.converged
    assert u.errors().relative_l2 < 1e-9


def test_newton_starts_where_it_is_told():
    """u² = (2 + x)² has the two solutions ±(2 + x), and the start decides."""
    problem = pf.Problem(
        LINE,
        lambda u, x: u(x) ** 2,
        lambda x: (2 + x[0]) ** 2,
        [pf.Condition(lambda u, x: u(x) ** 2 - (2 + x[0]) ** 2)],
    )
    features = pf.NetworkFeatures(LINE, 20)
    fit = pf.Problem(LINE, lambda u, x: u(x), 1.0, [pf.Dirichlet(1.0)])
    one = pf.solve(fit, features)
    x = LINE.sample(50)
    for sign in (1, -1):
        u = pf.solve(problem, features, method=pf.Newton(initial=sign * one.coefficients))
        np.testing.assert_allclose(u(x), sign * (2 + x[:, 0]), rtol=1e-9)


def test_a_solution_is_a_start_for_the_next_solve():
    features = pf.NetworkFeatures(LINE, SIZE)
    first = pf.solve(cubic(), features)
    again = pf.solve(cubic(), features, method=pf.Newton(initial=first))
    assert len(again.stats.steps) <= 2 < len(first.stats.steps)
    assert difference(again, first) < 1e-9


@pytest.mark.parametrize("method", [pf.Newton, pf.Picard])
def test_a_start_of_the_wrong_shape_is_refused(method):
    with pytest.raises(SolveError, match=r"initial must have shape \(10, 1\), \(features, components\); got \(11, 1\)"):
        pf.solve(burgers(), 10, method=method(initial=np.zeros((11, 1))))


@pytest.mark.parametrize("method", [pf.Newton, pf.Picard])
def test_no_steps_at_all_are_refused(method):
    with pytest.raises(SolveError, match=r"max_steps of \w+ must be an integer from 1 .*; got 0"):
        pf.solve(burgers(), 10, method=method(max_steps=0))


@pytest.mark.parametrize("keep", [-1.0, np.nan])
def test_a_change_below_zero_to_keep_the_matrix_is_refused(keep):
    with pytest.raises(SolveError, match=f"must be at least 0, the plain iteration; got {keep}"):
        pf.solve(burgers(), 10, method=pf.Newton(keep=keep))


def test_a_nonlinear_condition_is_solved_like_a_nonlinear_equation():
    """u'' = 0 with u(-1) = 0 and ∂u/∂n + u³ = 2 + 64 at x = 1: u = 2 (x + 1)."""
    problem = pf.Problem(
        LINE,
        lambda u, x: pf.laplacian(u)(x),
        0.0,
        [
            pf.Dirichlet(0.0, LINE.face(0, 0)),
            pf.Condition(
                lambda u, x, normal: pf.normal_derivative(u, normal)(x) + u(x) ** 3 - 66.0, LINE.face(0, 1), name="hot"
            ),
        ],
        exact=lambda x: 2 * (x[0] + 1),
    )
    assert pf.solve(problem, 20).errors().relative_l2 < 1e-9


# ---- Picard


@pytest.mark.parametrize("memory", [0, 10])
@pytest.mark.parametrize("name", ["gentle burgers", "cubic"])
def test_picard_agrees_with_newton(name, memory):
    problem = burgers() if name == "gentle burgers" else cubic(0.5)
    features = pf.NetworkFeatures(LINE, SIZE)
    newton = pf.solve(problem, features)
    picard = pf.solve(problem, features, method=pf.Picard(memory=memory, max_steps=100))
    assert picard.converged
    assert difference(picard, newton) < 1e-8


def test_acceleration_takes_fewer_steps_than_the_plain_iteration():
    plain, accelerated = (pf.solve(cubic(0.5), SIZE, method=pf.Picard(memory=m)) for m in (0, 10))
    assert len(accelerated.stats.steps) < len(plain.stats.steps)


@pytest.mark.parametrize("memory", [0, 10])
def test_picard_agrees_with_newton_on_navier_stokes(memory):
    features = pf.NetworkFeatures(kovasznay().domain, 70)
    newton = pf.solve(kovasznay(), features)
    picard = pf.solve(kovasznay(), features, method=pf.Picard(memory=memory, max_steps=60))
    assert newton.converged
    assert picard.converged
    error = newton.errors().relative_l2
    assert error < 1e-3
    # Least squares with two linearisations agree where the features resolve the solution: to the size of its error.
    assert difference(picard, newton) < error


def test_what_is_frozen_may_be_said_by_the_method():
    without = burgers().replace(frozen_operator=None)
    method = pf.Picard(operator=burgers().frozen_operator)
    assert pf.solve(without, SIZE, method=method).errors().relative_l2 < 1e-9


def test_picard_needs_to_know_what_is_frozen():
    message = r"Picard needs an operator that says which part.*: give Picard\(operator=.*frozen_operator=….*linear in u"
    with pytest.raises(ProblemError, match=message):
        pf.solve(burgers().replace(frozen_operator=None), 10, method=pf.Picard())


WRONG = {
    "forgotten term": lambda u, w, x: w(x) * pf.partial(u, 0)(x),
    "wrong sign": lambda u, w, x: w(x) * pf.partial(u, 0)(x) + 0.3 * pf.laplacian(u)(x),
    "wrong shape": lambda u, w, x: (u(x), w(x)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_frozen_operator_that_is_not_the_operator_is_refused(name):
    message = r"frozen operator of Picard differs.*must satisfy operator\(u, u, x\) = problem\.operator\(u, x\)"
    with pytest.raises(SolveError, match=message):
        pf.solve(burgers(), 10, method=pf.Picard(operator=WRONG[name]))


# ---- not converged


@pytest.mark.parametrize("method", [pf.Newton(max_steps=2), pf.Picard(max_steps=2)], ids=["newton", "picard"])
def test_an_iteration_that_is_cut_short_says_so_and_warns(method):
    with pytest.warns(ConvergenceWarning, match=r"'gentle burgers' has not converged: 2 steps did not suffice"):
        u = pf.solve(burgers(), SIZE, method=method)
    assert not u.converged
    assert len(u.stats.steps) == 2
    assert "NOT CONVERGED" in repr(u)
    assert u.error_estimate > 1e-10


def test_an_iteration_that_is_cut_short_has_an_estimate_that_knows_it():
    with pytest.warns(ConvergenceWarning, match="4 steps did not suffice"):
        u = pf.solve(cubic(0.5), SIZE, method=pf.Picard(max_steps=4, memory=0))
    assert u.errors().relative_l2 / 30 <= u.error_estimate


@pytest.mark.filterwarnings("always::pdofm.errors.ConvergenceWarning")
def test_a_problem_without_a_solution_never_looks_converged():
    problem = pf.Problem(LINE, lambda u, x: u(x) ** 2, -1.0, [pf.Dirichlet(1.0)])
    with pytest.warns(ConvergenceWarning, match="has not converged"):
        u = pf.solve(problem, 20, method=pf.Newton(max_steps=8))
    assert not u.converged


def test_what_an_iteration_still_lacks_is_extrapolated_from_its_last_steps():
    """Steps 1, r, r², … that stop at rⁿ still lack r/(1 - r) rⁿ."""
    factorization = pf.QR().factor(np.eye(1))
    for rate in (0.5, 0.1):
        steps = [{"change": rate**k, "residual": 0.0} for k in range(6)]
        outcome = Outcome(np.zeros((1, 1)), factorization, np.zeros(1), Sums(), steps=steps)
        assert outcome.iteration_error == pytest.approx(rate / (1 - rate) * rate**5)


def test_an_iteration_starts_from_numbers_functions_and_other_solutions():
    """u'' = 0 inside, u² = 4 at both ends: the solutions are ±2 and straight lines between them."""
    roots = pf.Problem(
        LINE, lambda u, x: pf.laplacian(u)(x), 0.0, [pf.Condition(lambda u, x: u(x) ** 2 - 4)], name="roots"
    )
    above = pf.solve(roots, 20, method=pf.Newton(initial=1.0))
    below = pf.solve(roots, 20, method=pf.Newton(initial=lambda x: -1.0 - 0.1 * x[0]))
    again = pf.solve(roots, pf.Chebyshev(LINE, degree=5), method=pf.Newton(initial=below))
    for u, value in ((above, 2.0), (below, -2.0), (again, -2.0)):
        np.testing.assert_allclose(u(np.linspace(-1, 1, 5)[:, None]), value, atol=1e-9)


def test_a_start_of_a_system_has_all_components():
    pair = pf.Problem(
        LINE,
        lambda u, x: (u.a(x) ** 2 - 4, u.b(x) - u.a(x)),
        0.0,
        [pf.Dirichlet(-2.0, on=[[0.0]], unknown="a")],
        unknowns={"a": 1, "b": 1},
    )
    start = {"b": lambda x: 0 * x[0], "a": lambda x: -1.0 + 0 * x[0]}
    u = pf.solve(pair, pf.Chebyshev(LINE, degree=4), method=pf.Newton(initial=start))
    np.testing.assert_allclose(u([0.5]), [-2.0, -2.0], atol=1e-9)
    with pytest.raises(SolveError, match=r"functions for \['a'\]; expected one for each of \['a', 'b'\]"):
        pf.solve(pair, 5, method=pf.Newton(initial={"a": start["a"]}))
    with pytest.raises(SolveError, match=r"initial has 1 values at a point; expected 2, one for each of a, b"):
        pf.solve(pair, 5, method=pf.Newton(initial=start["a"]))


@pytest.mark.parametrize("size", [200, 300])
def test_newton_ends_where_singular_corners_are_all_that_is_left_of_the_residual(size):
    square = pf.Box([0, 0], [1, 1])
    problem = pf.Problem(square, lambda u, x: -pf.laplacian(u)(x) + u(x) ** 3, 1.0, conditions=[pf.Dirichlet(0.0)])
    u = pf.solve(problem, size)
    assert u.converged
    finer = pf.solve(problem, pf.Chebyshev(square, 800))
    points = square.sample(500)
    assert np.linalg.norm(u(points) - finer(points)) <= 10 * u.error_estimate * np.linalg.norm(finer(points))
