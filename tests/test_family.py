"""Families of problems: members, and derivatives in parameters against exact ones and central differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import compilations
from jax import Array

import pdofm as pf
from pdofm.errors import ProblemError, SolveError

SQUARE = pf.Box([0, 0], [1, 1])
POINTS = SQUARE.sample(12)


def bumps(mu: Array) -> pf.Problem:
    """-a Δu = f with u = b sin πx sin πy + c x, exactly."""
    a, b, c = mu
    return pf.Problem(
        SQUARE,
        operator=lambda u, x: -a * pf.laplacian(u)(x),
        source=lambda x: 2 * jnp.pi**2 * b * jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]),
        conditions=[pf.Dirichlet(lambda x: c * x[0])],
        name="bumps",
    )


def exact_bumps(mu: Array) -> Array:
    return mu[1] / mu[0] * jnp.prod(jnp.sin(jnp.pi * POINTS), axis=1) + mu[2] * POINTS[:, 0]


MU = np.array([2.0, 1.5, 0.5])


@pytest.fixture(scope="module")
def family() -> pf.Family:
    return pf.Family(bumps)


def relative(found, expected) -> float:
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def test_members_are_solved_to_the_tolerance_and_know_their_parameters(family):
    u = family(MU)
    assert isinstance(u, pf.Solution)
    assert u.converged
    assert np.array_equal(u.mu, MU)
    assert relative(u(POINTS), exact_bumps(MU)) < 1e-10
    assert family([2.1, 1.4, 0.3]).features is u.features


def test_derivatives_agree_with_exact_ones_in_every_mode_of_jax(family):
    exact = jax.jacfwd(exact_bumps)(jnp.asarray(MU))

    def values(mu: Array) -> Array:
        return family.values(mu, POINTS)

    assert relative(jax.jacrev(values)(MU), exact) < 1e-9
    assert relative(jax.jacfwd(values)(MU), exact) < 1e-9
    change = np.array([0.3, -0.2, 0.1])
    assert relative(jax.jvp(values, (MU,), (change,))[1], exact @ change) < 1e-9
    gradient = jax.grad(lambda mu: jnp.sum(values(mu) ** 2))
    expected = 2 * np.asarray(exact_bumps(MU)) @ np.asarray(exact)
    assert relative(gradient(jnp.asarray(MU)), expected) < 1e-9
    assert relative(jax.jit(gradient)(MU), expected) < 1e-9
    many = np.stack([MU, 1.1 * MU])
    assert relative(jax.vmap(gradient)(many)[0], expected) < 1e-9
    assert relative(jax.vmap(values)(many)[1], exact_bumps(1.1 * MU)) < 1e-9


def test_sensitivity_is_the_gradient_of_a_number(family):
    u, h = family(MU), 1e-4

    def central(number) -> np.ndarray:
        steps = h * np.eye(3)
        return np.array([(number(family(MU + e)) - number(family(MU - e))) / (2 * h) for e in steps])

    assert relative(u.sensitivity(of=lambda u: u([0.3, 0.4])), central(lambda u: u([0.3, 0.4]))) < 1e-7
    mean = u.sensitivity(of=lambda u: u.integral())
    assert relative(mean, [-4 / np.pi**2 * 1.5 / 4, 4 / np.pi**2 / 2, 0.5]) < 1e-9
    energy = u.sensitivity(of=lambda u: jnp.sum(u.gradient(POINTS) ** 2))
    assert relative(energy, central(lambda u: np.sum(u.gradient(POINTS) ** 2))) < 1e-7


def test_a_system_that_is_not_linear_is_differentiated():
    box = pf.Box([-0.3, -0.3], [0.3, 0.3])

    def flow(mu: Array) -> dict:
        decay = mu / 2 - jnp.sqrt(mu**2 / 4 + 4 * jnp.pi**2)
        e = lambda x: jnp.exp(decay * x[0])
        v = lambda x: jnp.stack(
            [1 - e(x) * jnp.cos(2 * jnp.pi * x[1]), decay / (2 * jnp.pi) * e(x) * jnp.sin(2 * jnp.pi * x[1])]
        )
        return {"v": v, "p": lambda x: (1 - e(x) ** 2) / 2}

    def kovasznay(mu: Array) -> pf.Problem:
        exact = flow(mu)

        def operator(u, x):
            momentum = pf.grad(u.v)(x) @ u.v(x) + pf.grad(u.p)(x) - pf.laplacian(u.v)(x) / mu
            return momentum, pf.div(u.v)(x)

        pressure = pf.Dirichlet(exact["p"], on=[[0.0, 0.0]], unknown="p")
        conditions = [pf.Dirichlet(exact["v"], unknown="v"), pressure]
        return pf.Problem(box, operator, 0.0, conditions, unknowns={"v": 2, "p": 1})

    family, points = pf.Family(kovasznay, pf.Chebyshev(box, 91)), box.sample(10)

    def exact(mu: Array) -> Array:
        fields = flow(mu)
        return jax.vmap(lambda x: jnp.concatenate([fields["v"](x), fields["p"](x)[None]]))(points)

    found = jax.jacrev(lambda mu: family.values(mu, points))(40.0)
    assert found.shape == (10, 3)
    assert relative(found, jax.jacfwd(exact)(40.0)) < 1e-7


@pytest.mark.parametrize("written", ["plainly", "with numpy"])
def test_the_half_axes_of_an_ellipse_are_parameters(written):
    def ellipse(mu) -> pf.Problem:
        lib = np if written == "with numpy" else jnp
        factor = 1.0 if written == "plainly" else float(lib.asarray(mu[0]))
        domain = pf.Ellipse([0, 0], mu[0], mu[1])
        return pf.Problem(domain, lambda u, x: -factor * pf.laplacian(u)(x), 1.0, pf.Dirichlet(0.0))

    points = pf.Disk([0, 0], 0.8).sample(10)

    def exact(mu: Array) -> Array:
        a, b = mu
        shape = (1 - points[:, 0] ** 2 / a**2 - points[:, 1] ** 2 / b**2) / (2 / a**2 + 2 / b**2)
        return shape if written == "plainly" else shape / a

    family, mu = pf.Family(ellipse), np.array([1.5, 1.0])
    found = jax.jacrev(lambda mu: family.values(mu, points))(mu)
    assert relative(found, jax.jacfwd(exact)(jnp.asarray(mu))) < 1e-9


def test_parameters_occur_in_every_kind_of_condition():
    domain = pf.SpaceTime(pf.Interval(0, 2 * np.pi), 0.5)

    def heat(mu: Array) -> pf.Problem:
        return pf.Problem(
            domain,
            operator=lambda u, x, t: pf.dt(u)(x, t) - mu[0] * pf.laplacian(u)(x, t),
            source=0.0,
            conditions=[pf.Periodic(), pf.Initial(lambda x, t: mu[1] * jnp.sin(x[0]))],
        )

    points = domain.sample(8)
    exact = lambda mu: mu[1] * jnp.exp(-mu[0] * points[:, 1]) * jnp.sin(points[:, 0])
    family, mu = pf.Family(heat, pf.Chebyshev(domain, 200)), np.array([0.7, 1.2])
    found = jax.jacrev(lambda mu: family.values(mu, points))(mu)
    assert relative(found, jax.jacfwd(exact)(jnp.asarray(mu))) < 1e-8

    def rod(mu: Array) -> pf.Problem:  # u = x, shifted and scaled by its conditions
        interval = pf.Interval(0, 1)
        ends = [
            pf.Robin(mu, 1.0, mu, on=interval.boundary.where(lambda x: x[0] < 0.5)),
            pf.Neumann(lambda x: mu**2, on=interval.boundary.where(lambda x: x[0] > 0.5)),
        ]
        return pf.Problem(interval, lambda u, x: -pf.laplacian(u)(x), 0.0, ends)

    # u = a + mu² x with mu a - mu² = mu
    slope = jax.grad(lambda mu: pf.Family(rod, pf.Chebyshev(pf.Interval(0, 1), 8)).values(mu, [0.25]))(1.5)
    assert abs(slope - (1 + 2 * 1.5 * 0.25)) < 1e-9


def test_a_gradient_with_many_parameters_takes_one_adjoint_solve():
    k = jnp.arange(1.0, 21.0)

    def disk(mu: Array) -> pf.Problem:
        def data(x):
            angle = jnp.arctan2(x[1], x[0])
            return mu[:20] @ jnp.cos(k * angle) + mu[20:] @ jnp.sin(k * angle)

        return pf.Problem(pf.Disk([0, 0], 1), lambda u, x: -pf.laplacian(u)(x), 0.0, pf.Dirichlet(data))

    family = pf.Family(disk, pf.Chebyshev(pf.Disk([0, 0], 1), 350))
    mu = np.random.default_rng(0).standard_normal(40) * 0.5 ** np.tile(np.arange(20), 2)
    r, angle = 0.6, 0.3
    found = jax.grad(lambda mu: family.values(mu, [r * np.cos(angle), r * np.sin(angle)]))(mu)
    expected = np.concatenate([r**k * np.cos(k * angle), r**k * np.sin(k * angle)])
    assert relative(found, expected) < 1e-8


def test_messages_name_the_remedy(family):
    with pytest.raises(ProblemError, match="takes a function from parameters to a Problem"):
        pf.Family(pf.zoo.get("heat"))
    with pytest.raises(ProblemError, match="takes a Problem; got int"):
        pf.Family(lambda mu: 3)([1.0])
    with pytest.raises(ProblemError, match="Parameters must be numbers"):
        family("a")
    with pytest.raises(ProblemError, match="not finite"):
        family([np.nan, 1.0, 1.0])
    with pytest.raises(ProblemError, match="points must be numbers"):
        jax.grad(lambda x: family.values(MU, x))(jnp.asarray(POINTS[0]))
    with pytest.raises(ProblemError, match="expected one real number"):
        family(MU).sensitivity(of=lambda u: u(POINTS))
    with pytest.raises(SolveError, match="Second derivatives of a family are not provided"):
        jax.hessian(lambda mu: family.values(mu, POINTS[0]))(MU)
    with pytest.raises(ProblemError, match="Call family"):
        jax.jit(lambda mu: pf.Family(bumps).values(mu, POINTS))(MU)


LEFT, RIGHT = pf.Box([0, 0], [1, 1]), pf.Box([1, 0], [2, 1])


def slabs(mu: Array) -> pf.Problem:
    """Two slabs of conductivities mu, insulated at the sides, with values 0 and 1 at the ends."""

    def conduction(k):
        return lambda u, x: -k * pf.laplacian(u)(x)

    def flux(k):
        return lambda u, x, normal: k * pf.normal_derivative(u, normal)(x)

    regions = pf.Regions(left=LEFT, right=RIGHT)  # made, with its parts, while JAX traces
    ends = regions.boundary.where(lambda x: jnp.abs(x[0] - 1) > 1 - 1e-9)
    sides = regions.boundary.where(lambda x: jnp.abs(x[0] - 1) <= 1 - 1e-9)
    conditions = [
        pf.Dirichlet(lambda x: x[0] / 2, on=ends),
        pf.Neumann(0.0, on=sides),
        pf.Interface(flux={"left": flux(mu[0]), "right": flux(mu[1])}),
    ]
    return pf.Problem(regions, {"left": conduction(mu[0]), "right": conduction(mu[1])}, 0.0, conditions)


def test_conductivities_of_regions_are_parameters():
    family = pf.Family(slabs, {"left": pf.Chebyshev(LEFT, 6), "right": pf.Chebyshev(RIGHT, 6)}, tol=1e-8)
    points, mu = pf.Box([0, 0], [2, 1]).sample(10), jnp.array([0.5, 2.0])

    def exact(mu: Array) -> Array:
        x, through = points[:, 0], mu[0] * mu[1] / (mu[0] + mu[1])
        return jnp.where(x < 1, through * x / mu[0], 1 - through * (2 - x) / mu[1])

    assert relative(family(mu)(points), exact(mu)) < 1e-10
    found = jax.jacrev(lambda mu: family.values(mu, points))(mu)
    assert relative(found, jax.jacfwd(exact)(mu)) < 1e-9
    # The matrix is a combination of two: a new member is solved in the learned functions.
    small = family.reduce(np.random.default_rng(0).uniform(0.5, 2.0, (20, 2)), tol=1e-6)
    new = small([0.8, 1.7])
    assert new.converged
    assert relative(new(points), exact(jnp.array([0.8, 1.7]))) < 1e-6


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
@pytest.mark.parametrize("where", ["source", "coefficient", "boundary value"])
def test_a_member_with_a_narrow_detail_is_judged_like_the_problem_by_itself(where):
    def state(mu: Array) -> pf.Problem:
        here = {each: float(each == where) for each in ("source", "coefficient", "boundary value")}

        def bump(x: Array) -> Array:
            return 100 * jnp.exp(-((x[0] - mu[0]) ** 2 + x[1] ** 2) / 1e-4)

        return pf.Problem(
            SQUARE,
            lambda u, x: -pf.laplacian(u)(x) + here["coefficient"] * bump(x) * u(x),
            lambda x: 1.0 + here["source"] * bump(x),
            [pf.Dirichlet(lambda x: 1.0 + here["boundary value"] * bump(x))],
        )

    features = pf.Chebyshev(SQUARE, 150)
    mu = np.array([0.3])
    member = pf.Family(state, features, tol=1e-6)(mu)
    alone = pf.solve(state(mu), features, tol=1e-6)
    assert not alone.converged
    assert member.reason == alone.reason
    assert member.error_estimate == pytest.approx(alone.error_estimate, rel=1e-6)


def test_further_members_compile_nothing():
    def state(mu: Array) -> pf.Problem:
        return pf.Problem(
            SQUARE,
            lambda u, x: -pf.div(lambda y: (1 + mu[0] * y[0] ** 2) * pf.grad(u)(y))(x),
            lambda x: jnp.sin(mu[0] * x[0]),
            [pf.Dirichlet(lambda x: mu[0] * x[1])],
        )

    family = pf.Family(state, pf.Chebyshev(SQUARE, 150), tol=1e-4)
    family([0.5])
    with compilations() as found:
        assert family([0.7]).converged
    assert found == []
