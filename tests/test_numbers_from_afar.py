"""Unknown numbers that start far from the truth: other valleys, equations without solutions, plateaus."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import pdofm as pf
from pdofm.errors import ConvergenceWarning
from pdofm.solving.misfit import is_pending, smoothness
from pdofm.solving.statistics import Numbers, spread_evenly
from pdofm.solving.verdict import UNLIKELY, Evidence, judge

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
    with pytest.warns(ConvergenceWarning, match="100% of their variation is left"):
        found = pf.solve(problem, pf.Chebyshev(LINE, 20))
    assert found.verdict.status is pf.Status.MISFIT


@pytest.mark.parametrize("start", [22.0, 25.0, 40.0])
@pytest.mark.parametrize("size", [0.3, 0.6])
def test_a_wave_that_is_a_small_part_of_the_data_is_found(size, start):
    """u = x + s / 30 sin(30 x): in the nearest minimum less than 5 % of the data is left, and where k is so large that
    u is nearly x even less."""
    places = LINE.sample(40, "random", key=1)
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: pf.laplacian(u.u)(x) + u.k**2 * (u.u(x) - x[0]),
        unknowns={"u": 1, "k": positive(start)},
        conditions=[
            pf.Dirichlet(lambda x: x[0] + size / 30 * jnp.sin(30 * x[0])),
            pf.Data(places, places[:, 0] + size / 30 * np.sin(30 * places[:, 0]), unknown="u"),
        ],
    )
    found = pf.solve(problem, pf.Chebyshev(LINE, 60), sampling="clustered")
    assert found.converged
    assert found.k == pytest.approx(30.0, rel=1e-9)


def diffusion(number: pf.Number, places: np.ndarray, values: np.ndarray) -> pf.Problem:
    """-k u'' = 1 with u = 0 at both ends: u = x (1 - x) / (2 k)."""
    return pf.Problem(
        LINE,
        operator=lambda u, x: -u.k * pf.laplacian(u.u)(x),
        source=1.0,
        unknowns={"u": 1, "k": number},
        conditions=[pf.Dirichlet(0.0), pf.Data(places, values, unknown="u")],
    )


@pytest.mark.parametrize(("number", "word"), [(pf.Number(2.0, lower=1.2), "less"), (pf.Number(0.1, upper=0.7), "more")])
@pytest.mark.parametrize("count", [4, 40])
def test_a_bound_that_keeps_a_number_from_its_best_value_is_named(number, word, count):
    places = LINE.sample(count, "random", key=1)
    problem = diffusion(number, places, places[:, 0] * (1 - places[:, 0]) / 2)
    with pytest.warns(ConvergenceWarning, match=rf"k is at its bound (1\.2|0\.7), and the data ask for {word}"):
        found = pf.solve(problem, pf.Chebyshev(LINE, 20))
    assert found.verdict.status is pf.Status.MISFIT


def test_a_bound_near_the_truth_is_no_reason_to_doubt():
    """With noise the best value lies beyond a bound at the truth in every second case."""
    places = LINE.sample(40, "random", key=1)
    exact = places[:, 0] * (1 - places[:, 0]) / 2
    for draw in range(4):
        values = exact + 0.01 * np.random.default_rng(draw).standard_normal(40)
        assert pf.solve(diffusion(pf.Number(2.0, lower=1.0), places, values), pf.Chebyshev(LINE, 20)).converged


def test_what_is_left_of_the_data_must_look_like_noise_although_it_is_less_than_half_of_them():
    places = LINE.sample(40, "random", key=1)
    x = places[:, 0]
    problem = diffusion(positive(2.0), places, x * (1 - x) / 2 + 0.02 * np.sin(3 * np.pi * x))
    with pytest.warns(ConvergenceWarning, match="of their variation is left, and that is not like noise"):
        found = pf.solve(problem, pf.Chebyshev(LINE, 20))
    assert found.verdict.status is pf.Status.MISFIT


@pytest.mark.parametrize("start", [13.0, 40.0])
def test_small_data_are_explained_although_others_are_much_larger(start):
    """w = sin(30 x) besides v = 500 x (1 - x): pooled, less than 2 % is left if w is not explained at all."""
    many, few = LINE.sample(60, "random", key=1), LINE.sample(30, "random", key=2)
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: (pf.laplacian(u.v)(x) + 1000.0, pf.laplacian(u.w)(x) + u.k**2 * u.w(x)),
        unknowns={"v": 1, "w": 1, "k": positive(start)},
        conditions=[
            pf.Dirichlet(0.0, unknown="v"),
            pf.Dirichlet(lambda x: jnp.sin(30 * x[0]), unknown="w"),
            pf.Data(many, 500 * many[:, 0] * (1 - many[:, 0]), unknown="v", name="of v"),
            pf.Data(few, np.sin(30 * few[:, 0]), unknown="w", name="of w"),
        ],
    )
    found = pf.solve(problem, pf.Chebyshev(LINE, 60), sampling="clustered")
    assert found.converged
    assert found.k == pytest.approx(30.0, rel=1e-9)


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_white_noise_of_unknown_size_is_no_reason_to_doubt(level):
    places = LINE.sample(40, "random", key=3)
    exact = places[:, 0] * (1 - places[:, 0]) / 2
    for draw in range(10):
        noise = level * np.std(exact) * np.random.default_rng(draw).standard_normal(40)
        assert pf.solve(diffusion(positive(2.0), places, exact + noise), pf.Chebyshev(LINE, 20)).converged


@pytest.mark.parametrize("dim", [1, 2])
def test_noise_looks_smooth_as_rarely_as_the_probability_says(dim, seed):
    """Also if it has outliers."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(400, 40, dim))
    found = [smoothness(x, rng.standard_t(2, 40)) for x in points]
    assert np.mean(np.array(found) < 0.05) < 0.1
    assert min(found) > UNLIKELY
    assert smoothness(points[0], np.sin(6 * points[0][:, 0])) < 1e-8


def test_a_search_that_still_asks_for_a_step_has_not_ended():
    q, deviations = np.array([1.0, 2.0]), np.array([1e-2, 1e-12])
    assert is_pending(q, np.array([2e-3, 0.0]), deviations)
    assert is_pending(q, np.array([0.0, 1e-5]), deviations)
    assert not is_pending(q, np.array([5e-4, 1e-9]), deviations)
    assert judge(Evidence(estimate=0.0, is_pending=True)).status is pf.Status.STUCK


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
