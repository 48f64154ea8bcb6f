"""Unknown numbers that start far from the truth: other valleys, equations without solutions, plateaus."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import pdofm as pf
from pdofm.errors import ConvergenceWarning
from pdofm.solving.statistics import Numbers, spread_evenly

LINE = pf.Interval(0, 1)
FAR = (0.025, 0.1, 10.0, 40.0)


def positive(start: float) -> pf.Number:
    return pf.Number(start, positive=True)


@pytest.mark.parametrize("times", [0.1, 40.0])
def test_the_viscosity_of_a_flow_is_found_from_far_away(times):
    """With the first step of Gauss-Newton from forty times the truth it becomes so small that nothing depends on it."""
    flow, viscosity = pf.zoo.get("kovasznay"), 1 / 40

    def operator(u, x):
        momentum = -u.nu * pf.laplacian(u.v)(x) + pf.grad(u.v)(x) @ u.v(x) + pf.grad(u.p)(x)
        return momentum, pf.div(u.v)(x)

    points = flow.domain.sample(20, key=0)
    problem = flow.replace(
        operator=operator,
        unknowns={"v": 2, "p": 1, "nu": positive(times * viscosity)},
        conditions=[*flow.stated, pf.Data(points, flow.exact_values(points)[:, :2], unknown="v")],
        exact=None,
        frozen_operator=None,
    )
    found = pf.solve(problem, pf.Chebyshev(flow.domain, 120), sampling="clustered", tol=0.01)
    assert found.converged
    assert found.nu == pytest.approx(viscosity, rel=2e-3)


@pytest.mark.parametrize("times", FAR)
def test_the_viscosity_in_burgers_equation_is_found_from_far_away(times):
    viscosity, line = 0.1, pf.Interval(-1, 1)
    a = brentq(lambda a: a * np.tanh(a / (2 * viscosity)) - 1, 0.5, 2)
    places = line.sample(50, "random", key=1)
    problem = pf.Problem(
        line,
        operator=lambda u, x: u.u(x) * pf.partial(u.u, 0)(x) - u.nu * pf.laplacian(u.u)(x),
        unknowns={"u": 1, "nu": positive(times * viscosity)},
        conditions=[
            pf.Dirichlet(lambda x: -x[0]),
            pf.Data(places, -a * np.tanh(a * places[:, 0] / (2 * viscosity)), unknown="u"),
        ],
    )
    found = pf.solve(problem, pf.Chebyshev(line, 60), sampling="clustered")
    assert found.converged
    assert found.nu == pytest.approx(viscosity, rel=1e-3)


@pytest.mark.parametrize("times", FAR)
def test_a_number_may_start_where_the_equation_has_no_solution(times):
    """-u'' = λ exp(u) with u = 0 at both ends has solutions for λ < 3.52 only; the truth is 2."""
    truth = 2.0
    theta = brentq(lambda t: t - np.sqrt(2 * truth) * np.cosh(t / 4), 0.1, 3)
    places = LINE.sample(10, "random", key=2)
    values = -2 * np.log(np.cosh((places[:, 0] - 0.5) * theta / 2) / np.cosh(theta / 4))
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: -pf.laplacian(u.u)(x) - u.k * jnp.exp(u.u(x)),
        unknowns={"u": 1, "k": positive(times * truth)},
        conditions=[pf.Dirichlet(0.0), pf.Data(places, values, unknown="u")],
    )
    found = pf.solve(problem, pf.Chebyshev(LINE, 20))
    assert found.converged
    assert found.k == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("times", FAR)
def test_the_wave_number_is_found_although_others_fit_better_than_their_neighbours(times):
    """Between the truth and the start the misfit has a minimum for each half wave in the interval."""
    truth, places = 20.0, LINE.sample(30, "random", key=1)
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: pf.laplacian(u.u)(x) + u.k**2 * u.u(x),
        unknowns={"u": 1, "k": positive(times * truth)},
        conditions=[
            pf.Dirichlet(lambda x: x[0]),
            pf.Data(places, np.sin(truth * places[:, 0]) / np.sin(truth), noise=1e-3, unknown="u"),
        ],
    )
    found = pf.solve(problem, pf.Chebyshev(LINE, 40), sampling="clustered")
    assert found.converged
    assert found.k == pytest.approx(truth, rel=1e-8)


@pytest.mark.parametrize("start", [-150.0, 0.0, 30.0])
def test_a_velocity_with_unknown_sign_is_found_from_far_away(start):
    """-u'' + b u' = 1 with u = 0 at both ends: u = (x - (exp(b x) - 1) / (exp(b) - 1)) / b."""
    truth, places = -3.0, LINE.sample(20, "random", key=4)
    values = (places[:, 0] - np.expm1(truth * places[:, 0]) / np.expm1(truth)) / truth
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: -pf.laplacian(u.u)(x) + u.b * pf.partial(u.u, 0)(x),
        source=1.0,
        unknowns={"u": 1, "b": pf.Number(start)},
        conditions=[
            pf.Dirichlet(0.0),
            pf.Data(places, values, unknown="u"),
        ],
    )
    found = pf.solve(problem, pf.Chebyshev(LINE, 40), sampling="clustered")
    assert found.converged
    assert found.b == pytest.approx(truth, rel=1e-8)


def test_a_fit_that_explains_nothing_has_not_converged():
    """Data of alternating sign, while u = x (1 - x) / (2 k) is positive: k is as large as it can be."""
    places = LINE.sample(20, "random", key=5)
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: -u.k * pf.laplacian(u.u)(x),
        source=1.0,
        unknowns={"u": 1, "k": positive(1.0)},
        conditions=[pf.Dirichlet(0.0), pf.Data(places, np.sin(2 * np.pi * places[:, 0]), unknown="u")],
    )
    with pytest.warns(ConvergenceWarning, match="of their variation is left|do not determine k"):
        found = pf.solve(problem, pf.Chebyshev(LINE, 20))
    assert found.verdict.status in (pf.Status.MISFIT, pf.Status.FREE_NUMBERS)


def test_a_small_viscosity_is_found_although_its_start_has_a_layer_that_is_not_resolved():
    """The start is so small that the features do not resolve its layer; the search in more of them goes on."""
    truth, places = 0.2, LINE.sample(20, "random", key=6)
    x = places[:, 0]
    values = x - (np.exp((x - 1) / truth) - np.exp(-1 / truth)) / (-np.expm1(-1 / truth))
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: -u.nu * pf.laplacian(u.u)(x) + pf.partial(u.u, 0)(x),
        source=1.0,
        unknowns={"u": 1, "nu": positive(truth / 1000)},
        conditions=[pf.Dirichlet(0.0), pf.Data(places, values, noise=1e-6, unknown="u")],
    )
    found = pf.solve(problem, tol=1e-8)
    assert found.converged
    assert found.nu == pytest.approx(truth, rel=1e-7)


def test_other_starts_lie_within_bounds_and_on_both_sides():
    numbers = Numbers({"a": pf.Number(2.0, lower=1.0, upper=3.0), "b": pf.Number(-4.0), "c": positive(5.0)}, {"k": 2})
    q = np.array([2.0, -4.0, np.log(5.0), 7.0, 8.0])
    found = numbers.elsewhere(q, 100)
    assert ((found[:, 0] >= 1) & (found[:, 0] <= 3)).all()
    assert (found[:, 1] > 40).any()
    assert (found[:, 1] < -40).any()
    assert (np.exp(found[:, 2]) > 250).any()
    assert (np.exp(found[:, 2]) < 0.05).any()
    assert (found[:, 3:] == q[3:]).all()


def test_points_that_are_spread_evenly_leave_no_large_gaps():
    assert np.max(np.diff(np.sort(spread_evenly(100, 1)[:, 0]))) < 0.03
    counts, *_ = np.histogram2d(*spread_evenly(100, 2).T, bins=5, range=[[0, 1], [0, 1]])
    assert counts.min() >= 2
