"""Unknown numbers from data: values, intervals, bands, and what data leave free."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.adaptive.search import Search
from pdofm.errors import ConvergenceWarning, FeaturesError, ProblemError, SolveError
from pdofm.solving.statistics import Fitted, Numbers, robust_loss

LINE = pf.Interval(0, 1)
SPACE = pf.Chebyshev(LINE, 24)
PLACES = LINE.sample(30, "random", key=3)
K, S = 2.0, 3.0
TRUTH = (0.5 * PLACES[:, 0] * (1 - PLACES[:, 0]) + S * np.sin(3 * np.pi * PLACES[:, 0]) / (9 * np.pi**2)) / K
NOISE = 0.01 * np.max(TRUTH)


def heated(u, x):
    """-k u'' = 1 + s sin 3πx, with unknown k and s."""
    return -u.k * pf.laplacian(u.u)(x) - u.s * jnp.sin(3 * jnp.pi * x[0])


def rod(*data, source=1.0, **numbers) -> pf.Problem:
    unknowns = {"u": 1, "k": pf.Number(1.0, positive=True), "s": pf.Number(1.0)} | numbers
    conditions = [pf.Dirichlet(0.0), *data]
    return pf.Problem(LINE, operator=heated, source=source, unknowns=unknowns, conditions=conditions)


def test_numbers_follow_from_exact_data_up_to_rounding():
    solution = pf.solve(rod(pf.Data(PLACES, TRUTH, unknown="u")), SPACE)
    assert solution.converged
    assert solution.k == pytest.approx(K, rel=1e-10)
    assert solution.s == pytest.approx(S, rel=1e-10)
    np.testing.assert_allclose(solution.u(PLACES), TRUTH, rtol=1e-11)
    assert solution.noise < 1e-13


def test_a_search_for_a_tolerance_finds_numbers_too():
    solution = pf.solve(rod(pf.Data(PLACES, TRUTH, unknown="u")), tol=1e-10)
    assert solution.converged
    assert solution.k == pytest.approx(K, rel=1e-9)


def test_intervals_contain_the_truth_as_often_as_they_say():
    """In 25 draws with probability 0.95 each: fewer than 19 hits for a number have a probability of 1e-4."""
    rng, hits = np.random.default_rng(0), np.zeros(3)
    problem = rod(pf.Data(PLACES, TRUTH, noise=NOISE, unknown="u"))
    middle = (0.125 - S / (9 * np.pi**2)) / K
    for _ in range(25):
        data = pf.Data(PLACES, TRUTH + NOISE * rng.standard_normal(30), noise=NOISE, unknown="u")
        found = pf.solve(problem.replace(conditions=[pf.Dirichlet(0.0), data]), SPACE)
        assert found.converged
        (k0, k1), (s0, s1) = found.intervals["k"], found.intervals["s"]
        inside = abs(found.u([0.5]) - middle) <= found.band([0.5])[0]
        hits += [k0 <= K <= k1, s0 <= S <= s1, inside]
    assert (hits >= 19).all()


def test_the_covariance_is_that_of_the_linear_model():
    """u = (u0 + s u1) / k is linear in 1/k and s/k, so the standard deviations are known in closed form."""
    found = pf.solve(rod(pf.Data(PLACES, TRUTH, noise=NOISE, unknown="u")), SPACE)
    x = PLACES[:, 0]
    u0, u1 = 0.5 * x * (1 - x), np.sin(3 * np.pi * x) / (9 * np.pi**2)
    jacobian = np.stack([-(u0 + S * u1) / K, u1 / K], axis=1) / NOISE  # with respect to log k and s
    np.testing.assert_allclose(found.covariance, np.linalg.inv(jacobian.T @ jacobian), rtol=1e-6)


def test_intervals_contain_the_truth_in_95_percent_of_1000_draws():
    """u is linear in 1/k and s/k, so the best numbers of each draw are known without solving the equation."""
    rng, x = np.random.default_rng(7), PLACES[:, 0]
    u0, u1 = 0.5 * x * (1 - x), np.sin(3 * np.pi * x) / (9 * np.pi**2)
    numbers = Numbers({"k": pf.Number(1.0, positive=True), "s": pf.Number(1.0)}, {})
    draws, hits = 1000, np.zeros(2)
    for _ in range(draws):
        values = TRUTH + NOISE * rng.standard_normal(30)
        a, b = np.linalg.lstsq(np.stack([u0, u1], axis=1), values, rcond=None)[0]
        k, s = 1 / a, b / a
        residual = ((u0 + s * u1) / k - values) / NOISE
        jacobian = np.stack([-(u0 + s * u1) / k**2, u1 / k], axis=1) / NOISE
        squares, size = np.full(30, np.inf), float(np.linalg.norm(values / NOISE))
        fitted = Fitted.of(numbers, np.array([k, s]), residual, jacobian, squares, False, size, np.zeros((0, 2)), {})
        (k0, k1), (s0, s1) = fitted.intervals["k"], fitted.intervals["s"]
        hits += [k0 <= K <= k1, s0 <= S <= s1]
    assert (np.abs(hits / draws - 0.95) <= 0.02).all()


def test_a_solution_with_numbers_survives_a_file(tmp_path):
    found = pf.solve(rod(pf.Data(PLACES, TRUTH, noise=NOISE, unknown="u")), SPACE)
    pf.save(tmp_path / "rod.pdofm", found)
    loaded = pf.load(tmp_path / "rod.pdofm")
    assert (loaded.k, loaded.intervals, loaded.noise) == (found.k, found.intervals, None)
    np.testing.assert_array_equal(loaded.band([0.5]), found.band([0.5]))


def test_unknown_noise_is_estimated_from_the_residuals():
    noise = NOISE * np.random.default_rng(1).standard_normal(30)
    found = pf.solve(rod(pf.Data(PLACES, TRUTH + noise, unknown="u")), SPACE)
    known = pf.solve(rod(pf.Data(PLACES, TRUTH + noise, noise=NOISE, unknown="u")), SPACE)
    assert found.noise == pytest.approx(NOISE, rel=0.4)
    assert found.k == pytest.approx(known.k, rel=1e-8)


def test_numbers_that_only_occur_as_a_ratio_are_not_determined():
    with pytest.warns(ConvergenceWarning, match=r"k by \+0.71, s by \+0.71; measure something else"):
        found = pf.solve(rod(pf.Data(PLACES, TRUTH, noise=NOISE, unknown="u"), source=0.0), SPACE)
    assert found.verdict.status is pf.Status.FREE_NUMBERS


def test_a_flux_determines_what_values_leave_free():
    ends = pf.Data([[0.0], [1.0]], [1.0, -1.0], of=lambda u, x: u.k * pf.partial(u.u, 0)(x), name="flux")
    x = PLACES[:, 0]
    shape = np.sin(3 * np.pi * x)  # -k u'' = s sin 3πx, so u = s / (9 k π²) sin 3πx, and k u'(0) = s / 3π
    found = pf.solve(rod(pf.Data(PLACES, shape, unknown="u"), ends, source=0.0), SPACE)
    assert found.s == pytest.approx(3 * np.pi, rel=1e-9)
    assert found.k == pytest.approx(1 / (3 * np.pi), rel=1e-9)


def test_data_that_contradict_the_equation_are_noticed():
    wrong = TRUTH + 0.05 * np.cos(20 * PLACES[:, 0])
    with pytest.warns(ConvergenceWarning, match="larger than their noise explains"):
        pf.solve(rod(pf.Data(PLACES, wrong, noise=NOISE, unknown="u")), SPACE)


def test_a_search_ends_with_what_is_wrong_with_the_data():
    """No other space would help, so there are few attempts."""
    wrong = TRUTH + 0.05 * np.cos(20 * PLACES[:, 0])
    with pytest.warns(ConvergenceWarning, match="larger than their noise explains"):
        misfit = pf.solve(rod(pf.Data(PLACES, wrong, noise=NOISE, unknown="u")), tol=1e-8)
    with pytest.warns(ConvergenceWarning, match="s by .0.71; measure something else"):
        free = pf.solve(rod(pf.Data(PLACES, TRUTH, noise=NOISE, unknown="u"), source=0.0), tol=1e-8)
    assert misfit.verdict.status is pf.Status.MISFIT
    assert free.verdict.status is pf.Status.FREE_NUMBERS
    assert max(len(misfit.attempts), len(free.attempts)) <= 3


def test_spaces_that_do_not_resolve_what_numbers_do_say_nothing_about_the_data():
    """Parabolas cannot tell sin πx from sin 3πx."""
    x = PLACES[:, 0]
    values = 0.5 * x * (1 - x) + 2 * np.sin(np.pi * x) / np.pi**2 + 3 * np.sin(3 * np.pi * x) / (9 * np.pi**2)
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: -pf.laplacian(u.u)(x) - u.a * jnp.sin(jnp.pi * x[0]) - u.b * jnp.sin(3 * jnp.pi * x[0]),
        source=1.0,
        unknowns={"u": 1, "a": pf.Number(1.0), "b": pf.Number(1.0)},
        conditions=[pf.Dirichlet(0.0), pf.Data(PLACES, values, noise=1e-4, unknown="u")],
    )
    search = Search(problem, 1e-8, None, 0, None, 60.0)
    for size in (2, 3):
        found = search.attempt("coarse", "", pf.Chebyshev(LINE, size))
        assert found is not None
        assert found.verdict.status is pf.Status.FREE_NUMBERS
    assert not search.over
    for size in (24, 32):
        search.attempt("fine", "", pf.Chebyshev(LINE, size))
    assert search.reached
    assert search.best is not None
    assert search.best.b == pytest.approx(3.0, rel=1e-8)


@pytest.mark.parametrize("robust", ["huber", "cauchy"])
def test_a_robust_loss_forgives_outliers(robust):
    values = TRUTH + NOISE * np.random.default_rng(2).standard_normal(30)
    values[[4, 17]] += [20 * NOISE, -15 * NOISE]
    with pytest.warns(ConvergenceWarning):
        square = pf.solve(rod(pf.Data(PLACES, values, noise=NOISE, unknown="u")), SPACE)
    found = pf.solve(rod(pf.Data(PLACES, values, noise=NOISE, unknown="u", robust=robust)), SPACE)
    assert found.converged
    assert abs(found.k - K) < 0.5 * abs(square.k - K)
    low, high = found.intervals["k"]
    assert low < K < high


@pytest.mark.parametrize("threshold", [np.inf, 1.345, -2.385])
def test_the_derivatives_of_a_robust_loss_are_those_of_its_values(threshold):
    z, h = np.array([0.3, 1.7, 4.0, 30.0]), 1e-6
    above, below = (robust_loss(z + sign * h, np.full(4, threshold)) for sign in (1, -1))
    np.testing.assert_allclose((above[:2] - below[:2]) / (2 * h), robust_loss(z, np.full(4, threshold))[1:], atol=1e-8)


def test_numbers_stay_within_their_bounds():
    data = pf.Data(PLACES, TRUTH, noise=NOISE, unknown="u")  # k = 2 is just beyond the upper bound
    found = pf.solve(rod(data, k=pf.Number(1.5, lower=1.0, upper=1.99)), SPACE)
    assert found.k <= 1.99
    assert found.intervals["k"][1] <= 1.99


def test_a_condition_determines_a_number_without_data():
    """-k u'' = 1 with u = 0 at both ends has u'(0) = 1 / (2 k)."""
    slope = pf.Condition(lambda u, x: pf.partial(u.u, 0)(x) - 0.25, on=[[0.0]])
    unknowns = {"u": 1, "k": pf.Number(1.0)}
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: -u.k * pf.laplacian(u.u)(x),
        source=1.0,
        unknowns=unknowns,
        conditions=[pf.Dirichlet(0.0), slope],
    )
    found = pf.solve(problem, SPACE)
    assert found.converged
    assert found.k == pytest.approx(2.0, rel=1e-10)


def test_the_viscosity_in_burgers_equation_lies_in_its_interval():
    viscosity, line = 0.1, pf.Interval(-1, 1)
    a = brentq(lambda a: a * np.tanh(a / (2 * viscosity)) - 1, 0.5, 2)
    places = line.sample(50, "random", key=1)
    values = -a * np.tanh(a * places[:, 0] / (2 * viscosity))

    def burgers(u, x):
        return u.u(x) * pf.partial(u.u, 0)(x) - u.nu * pf.laplacian(u.u)(x)

    def solved(noise: float):
        measured = values + noise * np.random.default_rng(0).standard_normal(50)
        data = pf.Data(places, measured, noise=noise or None, unknown="u")
        unknowns = {"u": 1, "nu": pf.Number(0.3, positive=True)}
        walls = pf.Dirichlet(lambda x: -x[0])
        problem = pf.Problem(line, operator=burgers, unknowns=unknowns, conditions=[walls, data])
        return pf.solve(problem, pf.Chebyshev(line, 130), sampling="clustered")

    assert solved(0.0).nu == pytest.approx(viscosity, rel=1e-9)
    low, high = solved(0.01).intervals["nu"]
    assert low < viscosity < high
    assert high - low < 0.1 * viscosity


def test_an_exact_solution_may_have_numbers():
    exact = {"u": lambda x: x[0] * (1 - x[0]), "k": K, "s": 0.0}
    data = pf.Data(PLACES, PLACES[:, 0] * (1 - PLACES[:, 0]), unknown="u")
    problem = pf.Problem(
        LINE,
        operator=heated,
        unknowns={"u": 1, "k": pf.Number(1.0), "s": pf.Number(1.0)},
        conditions=[pf.Dirichlet(), data],
        exact=exact,
    )
    found = pf.solve(problem, SPACE)
    assert found.k == pytest.approx(K, rel=1e-9)
    assert found.errors().relative_l2 < 1e-10


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: rod(pf.Data([[0.5]], [1.0], unknown="u")), "more unknown numbers than data: 2 numbers and 1 measured"),
        (lambda: pf.Data(PLACES, TRUTH, noise=0.0), "noise is a standard deviation and must be positive"),
        (lambda: pf.Data(PLACES, TRUTH, robust="huber"), "Give noise="),
        (lambda: pf.Data(PLACES, TRUTH, noise=1.0, robust="l1"), "must be 'huber' or 'cauchy'; got 'l1'"),
        (lambda: pf.Data(PLACES, TRUTH * np.nan), "infinite or NaN"),
        (lambda: pf.Number(2.0, upper=1.0), "start of a Number is 2; expected a number between its bounds"),
        (lambda: pf.Number(0.0, positive=True), "must start above 0"),
        (
            lambda: pf.Problem(
                LINE,
                operator=lambda u, x: -pf.laplacian(u)(x),
                conditions=[pf.Dirichlet(0.0), pf.Data(PLACES, TRUTH)],
            ),
            "nothing is unknown except the solution",
        ),
        (
            lambda: rod(
                pf.Data(PLACES, TRUTH, unknown="u", noise=1.0), pf.Data(PLACES, TRUTH, unknown="u", name="more")
            ),
            "'more' has no noise, but other data have",
        ),
        (
            lambda: rod().replace(unknowns={"k": pf.Number(1.0)}),
            r"\['k'\] are all numbers or fields; expected a function, too",
        ),
    ],
)
def test_what_cannot_be_found_is_refused(state, message):
    with pytest.raises(ProblemError, match=message):
        state()


def test_data_need_one_value_for_each_point():
    with pytest.raises(ProblemError, match="29 values at 30 points; expected one value"):
        pf.solve(rod(pf.Data(PLACES, TRUTH[1:], unknown="u")), SPACE)
    with pytest.raises(ProblemError, match="complex values, but the unknowns are real"):
        pf.solve(rod(pf.Data(PLACES, 1j * TRUTH, unknown="u")), SPACE)
    with pytest.raises(ProblemError, match="noise has shape"):
        pf.solve(rod(pf.Data(PLACES, TRUTH, noise=np.full(7, NOISE), unknown="u")), SPACE)


def test_who_does_not_find_numbers_says_so():
    problem = rod(pf.Data(PLACES, TRUTH, unknown="u"))
    with pytest.raises(ProblemError, match=r"eigs\(\) does not find unknown numbers; 'problem' has \['k', 's'\]"):
        pf.eigs(problem)
    with pytest.raises(ProblemError, match=r"factor\(\) does not find unknown numbers"):
        pf.factor(problem, SPACE)
    with pytest.raises(SolveError, match=r"Picard\(\) does not find unknown numbers"):
        pf.solve(problem, SPACE, method=pf.Picard())
    plain = pf.Problem(LINE, operator=lambda u, x: -pf.laplacian(u)(x), source=1.0, conditions=[pf.Dirichlet(0.0)])
    with pytest.raises(FeaturesError, match="Polynomials in boxes do not find unknown numbers"):
        pf.solve(problem, solve_in_boxes(plain, 1e-6).features)


def test_numbers_in_space_time_are_found_at_all_times_at_once():
    """u_t = k u'' with u = exp(-k π² t) sin πx; a search does not march."""
    domain = pf.SpaceTime(LINE, 0.5)
    places = domain.sample(20, "random", key=1)
    values = np.exp(-0.3 * np.pi**2 * places[:, 1]) * np.sin(np.pi * places[:, 0])
    problem = pf.Problem(
        domain,
        operator=lambda u, x, t: pf.dt(u.u)(x, t) - u.k * pf.laplacian(u.u)(x, t),
        unknowns={"u": 1, "k": pf.Number(0.1, positive=True)},
        conditions=[
            pf.Dirichlet(0.0),
            pf.Initial(lambda x, t: jnp.sin(jnp.pi * x[0])),
            pf.Data(places, values, unknown="u"),
        ],
    )
    found = pf.solve(problem, tol=1e-7)
    assert found.converged
    assert found.k == pytest.approx(0.3, rel=1e-7)
