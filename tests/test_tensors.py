"""Evolutions in a box whose derivatives separate: products of polynomials, diagonal in eigenfunctions."""

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import SolveError
from pdofm.marching.march import marched
from pdofm.marching.mixing import Mixing
from pdofm.marching.separable import separated
from pdofm.marching.spots import spots_of
from pdofm.marching.statement import Statement
from pdofm.marching.tensors import Tensors

PRODUCTS = "slabs of products of polynomials"
SQUARE, BRICK = pf.Box([0, 0], [1, 1]), pf.Box([0, -1, 0], [1, 1, 0.5])
ROUNDING = 1e-13


def evolution(space, operator, exact, conditions=None, end=0.5, **options):
    domain = pf.SpaceTime(space, end)
    return pf.Problem(
        domain,
        lambda u, x, t: pf.dt(u)(x, t) + operator(u, x, t),
        conditions=[*([pf.Dirichlet()] if conditions is None else conditions(domain)), pf.Initial()],
        exact=exact,
        **options,
    )


def moving(x, t):
    return jnp.exp(-t) * jnp.sin(3 * x[0] + x[1] + t) + x[0] * x[1] ** 2


def anisotropic(u, x, t):
    second = pf.hessian(u)(x, t)
    return -0.01 * second[0, 0] - second[1, 1]


def three_kinds(domain):
    return [
        pf.Dirichlet(on=domain.part("x0=lower")),
        pf.Neumann(on=domain.part("x0=upper", "x1=lower")),
        pf.Robin(2.0, 0.5, on=domain.part("x1=upper")),
    ]


def reaction(u, x, t):
    return -0.1 * pf.laplacian(u)(x, t) + 5 * u(x, t) ** 3 - (1 + x[0] * jnp.cos(3 * t)) * u(x, t)


def twice(u, x, t):
    """The wave equation with a friction that varies, as an operator beside the first time derivative."""
    return pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t) + x[0] * pf.dt(u)(x, t)


@pytest.mark.parametrize(
    ("space", "operator", "conditions"),
    [
        (SQUARE, anisotropic, None),
        (SQUARE, anisotropic, three_kinds),
        (SQUARE, reaction, three_kinds),
        (SQUARE, twice, None),
        (BRICK, reaction, None),
    ],
    ids=["two scales", "three kinds of conditions", "a reaction", "a wave with friction", "three dimensions"],
)
def test_evolutions_that_separate_are_solved_to_their_tolerance_and_the_estimate_holds(space, operator, conditions):
    problem = evolution(space, operator, moving, conditions)
    u = pf.march(problem, tol=1e-8)
    error = u.errors().relative_l2
    assert u.space == PRODUCTS
    assert u.converged, u.reason
    assert error < 1e-8
    assert 0.1 * error < u.error_estimate < 10 * max(error, ROUNDING)


def test_two_unknowns_that_react_with_each_other():
    domain = pf.SpaceTime(SQUARE, 1.0)
    problem = pf.Problem(
        domain,
        lambda u, x, t: (
            pf.dt(u.a)(x, t) - 0.1 * pf.laplacian(u.a)(x, t) + u.a(x, t) * u.b(x, t) ** 2,
            pf.dt(u.b)(x, t) - 0.02 * pf.laplacian(u.b)(x, t) - u.a(x, t) * u.b(x, t) ** 2,
        ),
        unknowns={"a": 1, "b": 1},
        conditions=[
            pf.Dirichlet(unknown="a"),
            pf.Neumann(unknown="b"),
            pf.Initial(unknown="a"),
            pf.Initial(unknown="b"),
        ],
        exact={"a": moving, "b": lambda x, t: 1 + jnp.cos(2 * x[0] - t) * x[1]},
    )
    u = pf.march(problem, tol=1e-7)
    assert u.space == PRODUCTS
    assert u.converged, u.reason
    assert u.errors().relative_l2 < 1e-7


def test_a_front_that_crosses_a_square_takes_few_functions():
    u = pf.march(pf.zoo.get("reaction-front"), tol=1e-6)
    error = u.errors().relative_l2
    assert u.converged
    assert error < 1e-6
    assert 0.1 * error < u.error_estimate < 10 * error
    assert max(slab.features for slab in u.slabs) < 2000


def test_many_oscillations_along_one_axis_take_many_functions_along_this_axis_only():
    u = pf.march(pf.zoo.get("heat-scales"), tol=1e-8)
    assert u.converged
    assert u.errors().relative_l2 < 1e-8
    assert max(slab.features for slab in u.slabs) < 1500


@pytest.mark.parametrize(
    "operator",
    [
        lambda u, x, t: -pf.laplacian(u)(x, t) - pf.partial(u, 0, 1)(x, t) / 2,
        lambda u, x, t: -(1 + x[0]) * pf.laplacian(u)(x, t),
        lambda u, x, t: -(1 + u(x, t) ** 2) * pf.laplacian(u)(x, t),
        lambda u, x, t: -(1 + t) * pf.laplacian(u)(x, t),
        lambda u, x, t: -pf.laplacian(u)(x, t) + 10 * pf.partial(u, 0)(x, t),
        lambda u, x, t: -pf.laplacian(u)(x, t) - pf.laplacian(pf.dt(u))(x, t),
        lambda u, x, t: pf.laplacian(pf.laplacian(u))(x, t),
        lambda u, x, t: u(x, t) * pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
    ],
    ids=["mixed", "varies", "depends on u", "depends on t", "convection", "mixed with time", "plate", "mass"],
)
def test_other_equations_do_not_separate(operator):
    assert separated(Statement(evolution(SQUARE, operator, moving))) is None


@pytest.mark.parametrize(
    "conditions",
    [
        lambda domain: [pf.Condition(lambda u, x, t: u(x, t) ** 3)],
        lambda domain: [pf.Condition(lambda u, x, t: pf.partial(u, 0)(x, t) + pf.partial(u, 1)(x, t))],
        lambda domain: [pf.Condition(lambda u, x, t: (2 + t) * u(x, t))],
        lambda domain: [pf.Dirichlet(), pf.Neumann(on=domain.part("x0=lower"))],
        lambda domain: [pf.Dirichlet(on=domain.part("x0=lower"))],
    ],
    ids=["nonlinear", "oblique", "depends on t", "two", "missing"],
)
def test_other_conditions_do_not_separate(conditions):
    assert separated(Statement(evolution(SQUARE, reaction, moving, conditions))) is None


def test_a_condition_on_a_part_of_a_side_does_not_separate():
    def conditions(domain):
        side, rest = domain.part("x0=lower"), domain.part("x0=upper", "x1=lower", "x1=upper")
        low, high = side.where(lambda x, t: x[1] < 0.5), side.where(lambda x, t: x[1] >= 0.5)
        return [pf.Dirichlet(on=low), pf.Neumann(on=high), pf.Dirichlet(on=rest)]

    assert separated(Statement(evolution(SQUARE, reaction, moving, conditions))) is None


def heat(conditions, source=0.0, start=0.0, reaction=lambda x: 0.0):
    """The heat equation in a square with conditions on the left side and on the others."""
    domain = pf.SpaceTime(SQUARE, 0.5)
    sides = domain.part("x0=lower"), domain.part("x0=upper", "x1=lower", "x1=upper")
    return pf.Problem(
        domain,
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t) + reaction(x) * u(x, t),
        source,
        [*(make(side) for make, side in zip(conditions, sides, strict=True)), pf.Initial(start)],
    )


def marched_or_refused(problem, tol):
    """A solution, converged or not, or None where no slab converges."""
    try:
        return marched(problem, tol, max_seconds=8.0)
    except SolveError:
        return None


@pytest.mark.parametrize(
    ("left", "is_value"),
    [(lambda x, t: x[1] - 0.5, False), (lambda x, t: 1.0 + 0 * t, True), (lambda x, t: t * x[1], True)],
    ids=["slope", "one", "ramp"],
)
def test_conditions_that_contradict_each_other_at_an_edge_are_met_by_every_answer_that_has_converged(left, is_value):
    tol = 1e-5
    kind = pf.Dirichlet if is_value else pf.Neumann
    problem = heat([lambda on: kind(left, on=on), lambda on: pf.Dirichlet(0.0, on=on)])
    u = marched_or_refused(problem, tol)
    if u is None or not u.converged:
        return
    s = np.linspace(0.05, 0.95, 19)
    t = np.full_like(s, 0.4)
    zero = [np.stack(each, axis=1) for each in ((s, 0 * s, t), (s, 0 * s + 1, t), (0 * s + 1, s, t))]
    missed = [np.abs(u(points)) for points in zero]
    if is_value:
        points = np.stack([0 * s, s, t], axis=1)
        missed.append(np.abs(u(points) - np.array([left(p[:2], p[2]) for p in points])))
    assert np.max(missed) < 10 * max(tol, u.error_estimate) * np.max(np.abs(u(problem.domain.sample(500))))


def test_conditions_that_agree_at_the_edges_do_not_contradict_each_other():
    u = pf.march(evolution(BRICK, reaction, moving, mixed), tol=1e-6)
    assert u.space == PRODUCTS
    assert u.converged, u.reason
    assert u.errors().relative_l2 < 1e-6


def mixed(domain):
    return [
        pf.Neumann(on=domain.part("x0=lower", "x1=upper")),
        pf.Robin(2.0, 0.5, on=domain.part("x2=lower")),
        pf.Dirichlet(on=domain.part("x0=upper", "x1=lower", "x2=upper")),
    ]


@pytest.mark.parametrize("place", [0.365, 0.6137])
@pytest.mark.parametrize("width", [0.018, 0.004])
def test_a_condition_with_a_coefficient_that_varies_in_a_small_place_does_not_separate(place, width):
    def left(on):
        return pf.Condition(
            lambda u, x, t: (1 + 1e3 * jnp.exp(-(((x[1] - place) / width) ** 2))) * u(x, t) - pf.partial(u, 0)(x, t),
            on=on,
        )

    assert separated(Statement(heat([left, lambda on: pf.Neumann(0.0, on=on)]))) is None


CENTRE = np.array([0.41, 0.37])


def spot(x, width):
    return jnp.exp(-jnp.sum((x - CENTRE) ** 2) / width**2)


def heated(z, width, modes=300):
    """The temperature at a point of space-time that a small source causes, as a double sine series."""
    k = np.pi * np.arange(1, modes + 1)
    squares = k[:, None] ** 2 + k**2
    values = np.outer(*(np.sin(k * c) * np.sin(k * x) for c, x in zip(CENTRE, z[:2], strict=True)))
    amplitudes = 4e3 * np.pi * width * np.exp(-squares * width**2 / 4)
    return np.sum(amplitudes * values * (1 - np.exp(-squares * z[2])) / squares)


ZERO = [lambda on: pf.Dirichlet(0.0, on=on)] * 2


@pytest.mark.parametrize("width", [0.03, 0.01, 0.005])
def test_a_small_source_is_not_overlooked(width):
    problem = heat(ZERO, source=lambda x, t: 1e3 / width * spot(x, width))
    u = marched_or_refused(problem, 1e-4)
    if u is None or not u.converged:
        assert width < 0.02
        return
    z = np.array([0.5, 0.5, 0.5])
    assert abs(u(z[None])[0] - heated(z, width)) < 1e-3 * heated(z, width)


@pytest.mark.parametrize("width", [0.01, 0.005])
@pytest.mark.parametrize(
    "data",
    [
        lambda width: {"source": lambda x, t: spot(x, width)},
        lambda width: {"source": lambda x, t: spot(x, width) * jnp.exp(-(((t - 0.2) / 0.005) ** 2))},
        lambda width: {"start": lambda x, t: spot(x, width)},
        lambda width: {"reaction": lambda x: 1e4 * spot(x, width), "source": 1.0},
    ],
    ids=["source", "pulse", "start", "reaction"],
)
def test_the_first_points_lie_in_small_places_in_which_data_vary(data, width):
    statement = Statement(heat(ZERO, **data(width)))
    parts = separated(statement)
    assert parts is not None
    gaps = np.linalg.norm(Tensors.first(statement, parts).quadrature()[0] - CENTRE, axis=1)
    assert np.sum(gaps < 5 * width) >= 4


def test_smooth_data_ask_for_no_more_points():
    statement = Statement(evolution(SQUARE, reaction, moving, three_kinds))
    assert spots_of(statement) == []


@pytest.mark.parametrize("power", [1, 3], ids=["linear", "nonlinear"])
@pytest.mark.parametrize("when", [True, False], ids=["time", "place"])
def test_a_coefficient_that_varies_in_a_small_place_or_for_a_short_time_is_found(when, power):
    def more(x, t):
        gap = ((t - 0.03) / 0.004) ** 2 if when else jnp.sum((x - 0.38) ** 2) / 0.05**2
        return jnp.where(gap < 1, 0.1 * (1 - jnp.minimum(gap, 1)) ** 4, 0.0)

    def operator(u, x, t):
        return -(0.1 + more(x, t)) * pf.laplacian(u)(x, t) + u(x, t) ** power

    problem = evolution(SQUARE, operator, moving, end=0.1)
    assert separated(Statement(problem)) is not None
    u = pf.march(problem, tol=1e-4, max_seconds=60.0)
    assert u.space != PRODUCTS
    assert u.errors().relative_l2 < 1e-4


def test_an_interrupted_march_goes_on_to_the_same_bits(tmp_path):
    problem, path = evolution(SQUARE, reaction, moving), tmp_path / "run.march"
    whole = pf.march(problem, tol=1e-6)
    pf.march(problem, tol=1e-6, checkpoint=path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    again = pf.march(problem, tol=1e-6, checkpoint=path)
    assert np.array_equal(again.coefficients, whole.coefficients)


def test_mixing_solves_linear_equations_in_as_many_steps_as_there_are_unknowns(seed):
    generator = np.random.default_rng(seed)
    matrix, right = 0.2 * generator.standard_normal((4, 4)), generator.standard_normal(4)
    x, mixing = np.zeros(4), Mixing()
    for _ in range(7):
        x = mixing.after(x, right - x - matrix @ x)
    assert np.allclose(x, np.linalg.solve(np.eye(4) + matrix, right), rtol=1e-7, atol=1e-9)
