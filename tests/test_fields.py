"""Unknown fields: coefficients k(x) from data, the weight of their smoothness, bands, and what data leave free."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import pdofm as pf
from pdofm.errors import ConvergenceWarning, ProblemError
from pdofm.solving.prior import Prior, field_space

LINE, SQUARE = pf.Interval(0, 1), pf.Box([0, 0], [1, 1])


def conductivity(x):
    return 1 + 0.5 * jnp.sin(3 * x[0])


def flow(k):
    """-div(k grad u)"""
    return lambda u, x: -pf.div(lambda y: k(y) * pf.grad(u)(y))(x)


def unknown_flow(u, x):
    return flow(u.k)(u.u, x)


def measured(places, noise, seed, **field) -> pf.Problem:
    """-(k u')' = 1 with measurements of u, whose noise is a fraction of its maximum."""
    truth = pf.solve(pf.Problem(LINE, operator=flow(conductivity), source=1.0, conditions=[pf.Dirichlet(0.0)]), 30)
    values = truth(places)
    sigma = noise * np.max(values)
    values = values + sigma * np.random.default_rng(seed).standard_normal(len(values))
    return pf.Problem(
        LINE,
        operator=unknown_flow,
        source=1.0,
        unknowns={"u": 1, "k": pf.Field(**{"start": 1.0, "positive": True} | field)},
        conditions=[pf.Dirichlet(0.0), pf.Data(places, values, noise=sigma, unknown="u")],
    )


PLACES = LINE.sample(40, "random", key=5)
SPACE = pf.Chebyshev(LINE, 30)


def missed(found) -> tuple[float, float]:
    """The relative error of a field in L2, and where it lies in its band, as a fraction of the points."""
    points = LINE.sample(200)
    exact = np.asarray(jax.vmap(conductivity)(points))
    off = np.abs(found(points) - exact)
    return float(np.linalg.norm(off) / np.linalg.norm(exact)), float(np.mean(off <= found.band(points)))


@pytest.fixture(scope="module")
def rod() -> pf.Solution:
    return pf.solve(measured(PLACES, 1e-3, 0), SPACE)


def test_a_conductivity_is_found_with_its_band(rod):
    errors, inside = zip(*[missed(pf.solve(measured(PLACES, 1e-3, s), SPACE).k) for s in range(1, 4)], strict=True)
    assert rod.converged
    assert np.median(errors) < 0.02
    # Bands hold on average over the points; there errors are correlated.
    assert np.mean([*inside, missed(rod.k)[1]]) > 0.8


def test_the_error_falls_with_the_noise():
    coarse, fine = (missed(pf.solve(measured(PLACES, noise, 0), SPACE).k)[0] for noise in (1e-2, 1e-6))
    assert fine < 1e-3
    assert fine < 0.05 * coarse


def test_a_field_is_a_function(rod):
    one, many = rod.k([0.3]), rod.k([[0.3], [0.6]])
    assert many.shape == (2,)
    assert one == pytest.approx(many[0], rel=1e-14)
    assert rod.k.band([0.3]) > 0
    slope = jax.grad(lambda x: rod.k(jnp.array([x])))(0.3)
    assert slope == pytest.approx((rod.k([0.3 + 1e-5]) - rod.k([0.3 - 1e-5])) / 2e-5, rel=1e-6)
    assert "k = FoundField" in repr(rod)


def test_a_field_survives_a_file(rod, tmp_path):
    pf.save(tmp_path / "rod.pdofm", rod)
    loaded = pf.load(tmp_path / "rod.pdofm")
    points = LINE.sample(20)
    np.testing.assert_array_equal(loaded.k(points), rod.k(points))
    np.testing.assert_array_equal(loaded.k.band(points), rod.k.band(points))
    np.testing.assert_array_equal(loaded.band(points), rod.band(points))


def test_a_start_may_be_a_function():
    """With the truth as the start, nothing has to be added."""
    found = pf.solve(measured(PLACES, 1e-3, 0, start=conductivity), SPACE)
    assert missed(found.k)[0] < 0.005


def test_a_source_is_found_that_may_have_both_signs():
    """-u'' = f with f(x) = 5 cos 4x."""
    exact = lambda x: 5 / 16 * (np.cos(4 * x) - 1 - (np.cos(4) - 1) * x)
    values = exact(PLACES[:, 0])
    sigma = 1e-4 * np.max(np.abs(values))
    values += sigma * np.random.default_rng(0).standard_normal(len(values))
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: -pf.laplacian(u.u)(x) - u.f(x),
        unknowns={"u": 1, "f": pf.Field(0.0)},
        conditions=[pf.Dirichlet(0.0), pf.Data(PLACES, values, unknown="u")],
    )
    found, points = pf.solve(problem, SPACE), LINE.sample(200)
    off = found.f(points) - 5 * np.cos(4 * points[:, 0])
    assert found.converged
    assert np.sqrt(np.mean(off**2)) < 0.25
    assert found.noise == pytest.approx(sigma, rel=0.4)


def test_numbers_and_fields_are_found_together():
    """-(k u')' + s u = 1: the flux at both ends and u determine k and s."""
    s, k = 4.0, conductivity
    truth = pf.solve(
        pf.Problem(LINE, operator=lambda u, x: flow(k)(u, x) + s * u(x), source=1.0, conditions=[pf.Dirichlet(0.0)]),
        30,
    )
    sigma = 1e-5 * np.max(truth(PLACES))
    values = truth(PLACES) + sigma * np.random.default_rng(0).standard_normal(len(PLACES))
    ends = np.array([[0.0], [1.0]])
    through = np.asarray(jax.vmap(k)(ends)) * truth.gradient(ends)[:, 0]
    flux = pf.Data(ends, through, noise=1e-5, of=lambda u, x: u.k(x) * pf.partial(u.u, 0)(x), name="flux")
    problem = pf.Problem(
        LINE,
        operator=lambda u, x: flow(u.k)(u.u, x) + u.s * u.u(x),
        source=1.0,
        unknowns={"u": 1, "k": pf.Field(1.0, positive=True), "s": pf.Number(1.0)},
        conditions=[pf.Dirichlet(0.0), pf.Data(PLACES, values, noise=sigma, unknown="u"), flux],
    )
    found = pf.solve(problem, SPACE)
    low, high = found.intervals["s"]
    assert high - low < 2.0
    assert low - 0.5 * (high - low) < s < high + 0.5 * (high - low)
    assert missed(found.k)[0] < 0.05


def test_a_factor_that_data_do_not_see_is_named():
    """Only the ratio of k and the source is determined."""
    problem = measured(PLACES, 1e-3, 0)
    free = problem.replace(
        operator=lambda u, x: unknown_flow(u, x) - u.s,
        source=0.0,
        unknowns={"u": 1, "k": pf.Field(1.0, positive=True), "s": pf.Number(1.0)},
    )
    with pytest.warns(ConvergenceWarning, match=r"do not see a change of several .* together, relatively"):
        found = pf.solve(free, SPACE)
    assert found.verdict.status is pf.Status.FREE_NUMBERS
    assert {"s", "k"} == {part.split()[0] for part in found.verdict.evidence.free.split(", ")}


def test_the_weight_is_the_likeliest_one():
    """The criterion is the probability of the data with everything integrated out, where affine functions have a flat
    prior: that of the data projected onto what affine functions do not explain."""
    rng = np.random.default_rng(0)
    features = field_space(LINE, 8, 40)
    prior = Prior.of(LINE, 0, [features])
    J = rng.normal(size=(25, 8)) / (1 + np.arange(8))
    y = J @ rng.normal(size=8) + rng.normal(size=25)
    root = prior.roots[0]
    flat = np.linalg.svd(root)[2][len(root) :].T
    rest = np.linalg.svd(J @ flat)[0][:, flat.shape[1] :]  # orthogonal to what affine functions give
    smooth = J @ np.linalg.pinv(root)

    def logarithm(weight: float) -> float:
        covariance = rest.T @ (np.eye(25) + smooth @ smooth.T / weight) @ rest
        return float(multivariate_normal.logpdf(rest.T @ y, cov=covariance))

    found = prior.likeliest(J, y, False)[0]
    around = found * 10.0 ** np.linspace(-3, 3, 61)
    assert logarithm(found) >= max(logarithm(w) for w in around) - 1e-3


def test_the_prior_is_the_integral_of_squared_second_derivatives():
    features = field_space(SQUARE, 28, 400)
    q = np.random.default_rng(1).normal(size=features.size)
    points = SQUARE.sample(40000)
    xx, xy, yy = (features.expand(points, [index], q[:, None])[0, :, 0] for index in ((2, 0), (1, 1), (0, 2)))
    root = Prior.of(SQUARE, 0, [features]).roots[0]
    assert len(root) == features.size - 3
    assert np.sum((root @ q) ** 2) == pytest.approx(np.mean(xx**2 + 2 * xy**2 + yy**2), rel=0.01)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: pf.Field(0.0, positive=True), "must start above 0; got 0"),
        (lambda: pf.Field("one"), "got start='one'"),
        (
            lambda: pf.Problem(
                LINE,
                operator=unknown_flow,
                source=1.0,
                unknowns={"u": 1, "k": pf.Field(1.0)},
                conditions=[pf.Dirichlet(0.0)],
            ),
            "'k' is unknown, but there are no data",
        ),
        (
            lambda: pf.solve(
                measured(PLACES, 1e-3, 0).replace(
                    operator=lambda u, x: u.k(1 - x) * pf.laplacian(u.u)(x),
                ),
                SPACE,
            ),
            "evaluates a field at another point",
        ),
    ],
)
def test_what_fields_cannot_do_is_refused(state, message):
    with pytest.raises(ProblemError, match=message):
        state()


def test_the_conductivity_of_a_square_is_found_to_two_percent():
    """-div(k grad u) = 1 with u = 0 on the boundary, 400 points and 0.1 % noise."""

    def k(x):
        return 1 + 0.5 * jnp.exp(-20 * ((x[0] - 0.4) ** 2 + (x[1] - 0.6) ** 2))

    features, rng = pf.Chebyshev(SQUARE, 300), np.random.default_rng(0)
    exact = pf.solve(pf.Problem(SQUARE, operator=flow(k), source=1.0, conditions=[pf.Dirichlet(0.0)]), 500)
    places = rng.random((400, 2))
    noise = 1e-3 * np.max(exact(places))
    values = exact(places) + noise * rng.standard_normal(400)
    problem = pf.Problem(
        SQUARE,
        operator=unknown_flow,
        source=1.0,
        unknowns={"u": 1, "k": pf.Field(1.0, positive=True)},
        conditions=[pf.Dirichlet(0.0), pf.Data(places, values, noise=noise, unknown="u")],
    )
    found, points = pf.solve(problem, features), SQUARE.sample(1000)
    truth = np.asarray(jax.vmap(k)(points))
    off = np.abs(found.k(points) - truth)
    assert found.converged
    assert np.linalg.norm(off) / np.linalg.norm(truth) < 0.02
    assert np.mean(off <= found.k.band(points)) > 0.8
