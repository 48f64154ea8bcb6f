"""Problems: what they consist of, what follows from an exact solution, and what bad input gets."""

import json
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.calculus.terms import Fields, Layout, joined
from pdofm.discrete.collocate import collocate
from pdofm.errors import DomainError, PdofmError, ProblemError
from pdofm.problem.checks import RESERVED
from pdofm.problem.problem import Problem
from pdofm.solving.inferred import Inferred
from pdofm.solving.solution import Member

INTERVAL = pf.Interval(0, 1)
SQUARE = pf.Box([0, 0], [1, 2])
CYLINDER = pf.SpaceTime(INTERVAL, 1)
ZERO = [pf.Dirichlet(0.0)]


def poisson(u, x):
    return -pf.laplacian(u)(x)


def sides(problem: Problem, name: str, count: int = 7):
    """Points (n, d) and normals of the term of that name, and the values of its left side for the exact solution and
    of its right side there, (n, k) each."""
    blocks = collocate(problem, count, count * len(problem.terms))
    block = next(block for block in blocks if block.term.name == name)
    layout, exact = problem.layout, problem.exact_fields

    def both(z, normal):
        args = layout.arguments(z)
        return block.term.lhs(exact, exact, args, normal), block.right_side(layout, args, normal)

    left, right = jax.vmap(both)(jnp.asarray(block.points), jnp.asarray(block.normals))
    return block.points, block.normals, np.asarray(left), np.asarray(right)


# ---- how unknowns and points look to user functions


def test_a_scalar_unknown_is_a_function_with_scalar_values():
    u = Layout(None, False).fields(lambda z: jnp.stack([z[0] + z[1]]))
    assert u(jnp.array([1.0, 2.0])).shape == ()


def test_unknowns_of_a_system_have_their_own_shapes_and_join_in_order():
    layout = Layout((("v", 2), ("p", 1)), False)
    u = layout.fields(lambda z: jnp.stack([z[0], z[1], z[0] * z[1]]))
    x = jnp.array([2.0, 5.0])
    assert u.v(x).tolist() == [2.0, 5.0]
    assert u.p(x).shape == ()
    assert u(x).tolist() == [2.0, 5.0, 10.0]
    assert layout.component_names == ["v[0]", "v[1]", "p"]
    assert layout.offsets == {"v": (0, 2), "p": (2, 1)}


def test_in_space_time_the_last_coordinate_is_the_time():
    layout = Layout(None, True)
    u = layout.fields(lambda z: z[2:] - z[:1])
    assert float(u(jnp.array([3.0, 4.0]), jnp.asarray(5.0))) == 2.0
    x, t = layout.arguments(jnp.array([3.0, 4.0, 5.0]))
    assert (x.tolist(), float(t)) == ([3.0, 4.0], 5.0)
    assert layout.point((x, t)).tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2, [2.0]),
        (np.float64(2), [2.0]),
        (jnp.ones(2), [1.0, 1.0]),
        ((jnp.ones(2), 3.0), [1.0, 1.0, 3.0]),
        ([1, 2], [1.0, 2.0]),
        (jnp.eye(2), [1.0, 0.0, 0.0, 1.0]),
    ],
)
def test_what_user_functions_return_is_joined_to_one_vector(value, expected):
    assert joined(value).tolist() == expected
    assert joined(value).dtype == jnp.float64


def test_an_unknown_that_does_not_exist_is_named_with_the_ones_that_do():
    with pytest.raises(ProblemError, match=r"operator cannot be evaluated at a point: .*'pressure'.*Known: p, v"):
        Problem(SQUARE, lambda u, x: u.pressure(x), conditions=ZERO, unknowns={"v": 2, "p": 1})
    assert not hasattr(Fields({"p": jnp.sum}), "__array__")


# ---- terms


def test_the_equation_comes_first_and_repeated_names_are_made_distinct():
    conditions = [pf.Dirichlet(0.0, SQUARE.face(0, 0)), pf.Dirichlet(0.0, SQUARE.face(0, 1)), pf.Neumann(0.0)]
    names = [term.name for term in Problem(SQUARE, poisson, conditions=conditions).terms]
    assert names == ["equation", "dirichlet", "dirichlet-2", "neumann"]


def test_a_name_that_looks_like_a_repeated_one_is_made_distinct_too():
    faces = [SQUARE.face(axis, side) for axis in (0, 1) for side in (0, 1)]
    given = ["dirichlet", "dirichlet", "dirichlet-2", "equation"]
    conditions = [pf.Dirichlet(0.0, face, name=name) for face, name in zip(faces, given, strict=True)]
    names = [term.name for term in Problem(SQUARE, poisson, conditions=conditions).terms]
    assert len(set(names)) == 5
    assert names[:3] == ["equation", "dirichlet", "dirichlet-2"]


def test_names_and_weights_reach_the_terms():
    problem = Problem(SQUARE, poisson, conditions=[pf.Dirichlet(0.0, name="wall", weight=3.0)])
    assert (problem.terms[1].name, problem.terms[1].weight) == ("wall", 3.0)
    assert problem.terms[0].weight == 1.0


def test_without_source_and_exact_solution_the_source_is_zero():
    problem = Problem(SQUARE, poisson, conditions=ZERO)
    right = problem.right_side(problem.terms[0])(problem.layout, (jnp.ones(2),), jnp.zeros(2))
    assert right.tolist() == [0.0]


@pytest.mark.parametrize("source", [2.0, 2, np.float64(2), jnp.asarray(2.0), lambda x: 2.0, lambda x: x[0] * 0 + 2])
def test_a_source_is_a_number_or_a_function(source):
    problem = Problem(SQUARE, poisson, source, ZERO)
    right = problem.right_side(problem.terms[0])(problem.layout, (jnp.ones(2),), jnp.zeros(2))
    assert right.tolist() == [2.0]


# ---- manufactured solutions: what follows from the exact one

E = np.exp(1)


def exp_cos(x):
    return jnp.exp(x[0]) * jnp.cos(3 * x[1])


def np_exp_cos(x):
    return np.exp(x[:, 0]) * np.cos(3 * x[:, 1])


def np_exp_cos_gradient(x):
    return np.exp(x[:, :1]) * np.stack([np.cos(3 * x[:, 1]), -3 * np.sin(3 * x[:, 1])], axis=1)


SOURCES = {
    "laplacian": (lambda u, x: -pf.laplacian(u)(x), lambda x: 8 * np_exp_cos(x)),
    "biharmonic": (lambda u, x: pf.laplacian(pf.laplacian(u))(x), lambda x: 64 * np_exp_cos(x)),
    "advection": (
        lambda u, x: pf.grad(u)(x) @ jnp.array([2.0, 1.0]),
        lambda x: np_exp_cos_gradient(x) @ np.array([2.0, 1.0]),
    ),
    "variable": (lambda u, x: x[0] * pf.partial(u, 0)(x) + u(x), lambda x: (x[:, 0] + 1) * np_exp_cos(x)),
    "nonlinear": (lambda u, x: -pf.laplacian(u)(x) + u(x) ** 3, lambda x: 8 * np_exp_cos(x) + np_exp_cos(x) ** 3),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_source_of_a_manufactured_solution_is_the_analytic_one(name):
    operator, expected = SOURCES[name]
    points, _, left, right = sides(Problem(SQUARE, operator, conditions=[pf.Dirichlet()], exact=exp_cos), "equation")
    np.testing.assert_allclose(right[:, 0], expected(points), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(left, right)


def test_the_source_in_space_time_is_the_analytic_one():
    problem = Problem(
        pf.SpaceTime(pf.Box([0, 0], [1, 1]), 1),
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=lambda x, t: jnp.exp(x[0] + 2 * x[1] - t),
    )
    value = lambda z: np.exp(z[:, 0] + 2 * z[:, 1] - z[:, 2])
    points, _, _, right = sides(problem, "equation")
    np.testing.assert_allclose(right[:, 0], -6 * value(points), rtol=1e-12)
    for name in ("dirichlet", "initial"):
        points, _, _, right = sides(problem, name)
        np.testing.assert_allclose(right[:, 0], value(points), rtol=1e-13)
    assert not points[:, 2].any()


def test_the_source_of_a_system_is_the_analytic_one_in_the_order_of_the_tuple():
    problem = Problem(
        SQUARE,
        lambda u, x: (-pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x)),
        conditions=[pf.Dirichlet(unknown="v")],
        unknowns={"v": 2, "p": 1},
        exact={"v": lambda x: jnp.stack([x[0] ** 2 * x[1], x[1] ** 2]), "p": lambda x: x[0] * x[1]},
    )
    x, _, _, right = sides(problem, "equation")
    expected = np.stack([-2 * x[:, 1] + x[:, 1], -2 + x[:, 0], 2 * x[:, 0] * x[:, 1] + 2 * x[:, 1]], axis=1)
    np.testing.assert_allclose(right, expected, rtol=1e-13, atol=1e-13)
    x, _, _, right = sides(problem, "dirichlet")
    np.testing.assert_allclose(right, np.stack([x[:, 0] ** 2 * x[:, 1], x[:, 1] ** 2], axis=1), rtol=1e-14)


CURVED = {"disk": pf.Disk([1, 2], 0.5), "annulus": pf.Annulus(), "rectangle": SQUARE}


@pytest.mark.parametrize("domain", CURVED)
def test_neumann_data_are_the_gradient_along_the_outward_normal(domain):
    problem = Problem(CURVED[domain], poisson, conditions=[pf.Neumann()], exact=exp_cos)
    points, normals, _, right = sides(problem, "neumann")
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(right[:, 0], np.sum(np_exp_cos_gradient(points) * normals, axis=1), atol=1e-12)


@pytest.mark.parametrize("domain", CURVED)
def test_robin_data_are_alpha_u_plus_beta_times_the_normal_derivative(domain):
    problem = Problem(CURVED[domain], poisson, conditions=[pf.Robin(2.0, -0.5)], exact=exp_cos)
    points, normals, _, right = sides(problem, "robin")
    expected = 2 * np_exp_cos(points) - 0.5 * np.sum(np_exp_cos_gradient(points) * normals, axis=1)
    np.testing.assert_allclose(right[:, 0], expected, atol=1e-12)


def test_the_normal_on_the_side_of_a_space_time_is_the_one_of_space():
    seen = []
    residual = lambda u, x, t, normal: seen.append(normal.shape) or u(x, t) + normal[0]
    problem = Problem(CYLINDER, lambda u, x, t: pf.dt(u)(x, t), conditions=[pf.Condition(residual), pf.Initial(0.0)])
    assert set(seen) == {(1,)}
    blocks = {block.term.name: block for block in collocate(problem, 8, 8)}
    block = blocks["condition"]
    np.testing.assert_array_equal(block.normals[:, 0], np.where(block.points[:, 0] == 0, -1.0, 1.0))


def test_a_condition_receives_the_outward_normal_if_it_asks_for_it():
    residual = lambda u, x, normal: pf.normal_derivative(u, normal)(x) - 2 * normal @ (x - jnp.array([1.0, 2.0]))
    distance = lambda x: jnp.sum((x - jnp.array([1.0, 2.0])) ** 2)
    problem = Problem(CURVED["disk"], poisson, conditions=[pf.Condition(residual)], exact=distance)
    _, _, left, _ = sides(problem, "condition")
    np.testing.assert_allclose(left, 0, atol=1e-14)


def test_data_may_depend_on_the_normal_too():
    problem = Problem(
        CURVED["disk"], poisson, conditions=[pf.Neumann(lambda x, normal: normal[0])], exact=lambda x: x[0]
    )
    _, normals, left, right = sides(problem, "neumann")
    np.testing.assert_allclose(right[:, 0], normals[:, 0], rtol=1e-15)
    np.testing.assert_allclose(left, right, atol=1e-15)


def test_a_condition_at_given_points_stays_at_them():
    points = [[0.5, 1.0], [0.25, 0.5]]
    condition = pf.Condition(lambda u, x: u(x) - exp_cos(x), on=points, name="sensor")
    problem = Problem(SQUARE, poisson, conditions=[pf.Dirichlet(), condition], exact=exp_cos)
    found, _, left, _ = sides(problem, "sensor")
    assert found.tolist() == points
    assert not left.any()


def test_a_condition_on_one_unknown_leaves_the_others_alone():
    problem = Problem(
        SQUARE,
        lambda u, x: pf.grad(u.p)(x) + u.v(x),
        conditions=[pf.Neumann(unknown="p"), pf.Robin(1.0, 1.0, unknown="v")],
        unknowns={"v": 2, "p": 1},
        exact={"v": lambda x: x**2, "p": lambda x: x[0] * x[1]},
    )
    x, n, _, right = sides(problem, "neumann")
    np.testing.assert_allclose(right[:, 0], x[:, 1] * n[:, 0] + x[:, 0] * n[:, 1], atol=1e-14)
    x, n, _, right = sides(problem, "robin")
    np.testing.assert_allclose(right, x**2 + 2 * x * n, atol=1e-14)


# ---- differential orders


def order(operator, domain: pf.Domain = SQUARE, unknowns=None) -> Problem:
    at_first = [pf.Dirichlet(0.0, domain.initial)] if isinstance(domain, pf.SpaceTime) else []
    return Problem(domain, operator, 0.0, [*ZERO, *at_first], unknowns)


STOKES = {"v": 2, "p": 1}
ORDERS = {
    "identity": (order(lambda u, x: u(x)), 0, (0,)),
    "advection": (order(lambda u, x: pf.partial(u, 0)(x) + u(x)), 0, (1,)),
    "advection, other axis": (order(lambda u, x: pf.partial(u, 0)(x) + u(x)), 1, (0,)),
    "laplacian": (order(poisson), 1, (2,)),
    "degenerate coefficient": (order(lambda u, x: x[0] * pf.laplacian(u)(x)), 0, (2,)),
    "biharmonic": (order(lambda u, x: pf.laplacian(pf.laplacian(u))(x)), 0, (4,)),
    "sixth": (order(lambda u, x: pf.partial(u, *[0] * 6)(x), INTERVAL), 0, (6,)),
    "burgers": (order(lambda u, x: u(x) * pf.partial(u, 0)(x) - 0.1 * pf.laplacian(u)(x), INTERVAL), 0, (2,)),
    "inviscid burgers": (order(lambda u, x: u(x) * pf.partial(u, 0)(x), INTERVAL), 0, (1,)),
    "small coefficient": (order(lambda u, x: u(x) - 1e-8 * pf.laplacian(u)(x)), 0, (2,)),
    "eikonal": (order(lambda u, x: jnp.sum(pf.grad(u)(x) ** 2)), 0, (1,)),
    "stokes": (
        order(lambda u, x: (-pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x)), unknowns=STOKES),
        0,
        (2, 2, 1),
    ),
    "navier-stokes": (
        order(
            lambda u, x: (pf.grad(u.v)(x) @ u.v(x) - pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x)),
            unknowns=STOKES,
        ),
        1,
        (2, 2, 1),
    ),
    "wave in x": (order(lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t), CYLINDER), 0, (2,)),
    "wave in t": (order(lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t), CYLINDER), None, (2,)),
    "heat in t": (order(lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t), CYLINDER), None, (1,)),
    "mixed in x": (
        order(lambda u, x, t: pf.dt(u)(x, t) - pf.dt(pf.laplacian(u))(x, t), CYLINDER),
        0,
        (2,),
    ),
    "mixed in t": (
        order(lambda u, x, t: pf.dt(u)(x, t) - pf.dt(pf.laplacian(u))(x, t), CYLINDER),
        None,
        (1,),
    ),
    "mixed only": (order(lambda u, x: pf.partial(u, 0, 0, 1)(x)), 0, (2,)),
    "mixed only, other axis": (order(lambda u, x: pf.partial(u, 0, 0, 1)(x)), 1, (1,)),
    "hyperbolic, no pure derivative cancels": (
        order(lambda u, x: pf.partial(u, 0, 0)(x) - pf.partial(u, 1, 1)(x)),
        0,
        (2,),
    ),
    "an unknown that does not occur": (
        order(lambda u, x: pf.laplacian(u.a)(x), unknowns={"a": 1, "b": 1}),
        0,
        (2, 0),
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_order_of_an_operator_is_found_by_probing_it(name):
    problem, axis, expected = ORDERS[name]
    assert problem.orders(axis) == expected


# ---- periodic and initial conditions


def periodic_rows(operator, domain: pf.Domain = SQUARE, unknowns=None, **options) -> int:
    problem = Problem(domain, operator, 0.0, [pf.Periodic(0, **options), pf.Dirichlet(0.0)], unknowns)
    term = problem.terms[1]
    u = problem.layout.fields(lambda z: jnp.sum(z) * jnp.ones(problem.layout.components))
    return term.lhs(u, u, problem.layout.arguments(jnp.zeros(domain.dim)), jnp.zeros(2)).size


def test_periodic_matches_derivatives_up_to_the_order_minus_one():
    assert periodic_rows(lambda u, x: pf.partial(u, 0)(x)) == 1
    assert periodic_rows(poisson) == 2
    assert periodic_rows(lambda u, x: pf.laplacian(pf.laplacian(u))(x)) == 4
    stokes = lambda u, x: (-pf.laplacian(u.v)(x) + pf.grad(u.p)(x), pf.div(u.v)(x))
    assert periodic_rows(stokes, unknowns=STOKES) == 2 * 2 + 1


def test_periodic_matches_as_many_derivatives_as_it_is_told():
    assert periodic_rows(poisson, derivatives=0) == 1
    assert periodic_rows(poisson, derivatives=3) == 4


def test_a_periodic_function_satisfies_a_periodic_condition_and_another_does_not():
    problem = lambda exact: Problem(SQUARE, poisson, conditions=[pf.Periodic(1), pf.Dirichlet()], exact=exact)
    points, _, left, right = sides(problem(lambda x: jnp.exp(x[0]) * jnp.sin(jnp.pi * x[1] + 1)), "periodic")
    assert not points[:, 1].any()
    np.testing.assert_allclose(left, 0, atol=1e-13)
    assert not right.any()
    _, _, left, _ = sides(problem(lambda x: x[1] ** 2), "periodic")
    np.testing.assert_allclose(left, np.broadcast_to([-4.0, -4.0], left.shape), atol=1e-13)


def test_periodic_in_space_time_compares_at_the_same_time():
    problem = Problem(
        CYLINDER,
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        conditions=[pf.Periodic(0), pf.Initial()],
        exact=lambda x, t: jnp.exp(t) * jnp.cos(2 * jnp.pi * x[0]),
    )
    points, _, left, _ = sides(problem, "periodic")
    assert len(np.unique(points[:, 1])) > 1
    np.testing.assert_allclose(left, 0, atol=1e-13)


def wave_problem(*conditions, **more) -> Problem:
    return Problem(
        CYLINDER, lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t), 0.0, [*ZERO, *conditions], **more
    )


def heat_problem(*conditions, **more) -> Problem:
    return Problem(CYLINDER, lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t), 0.0, [*ZERO, *conditions], **more)


def test_second_order_in_time_gets_a_velocity_and_first_order_does_not():
    names = [term.name for term in wave_problem(pf.Initial(0.0, velocity=1.0)).terms]
    assert names == ["equation", "dirichlet", "initial", "initial-velocity"]
    assert [term.name for term in heat_problem(pf.Initial(0.0)).terms] == ["equation", "dirichlet", "initial"]


def test_the_velocity_follows_from_the_exact_solution():
    problem = wave_problem(pf.Initial(), exact=lambda x, t: jnp.sin(x[0]) * jnp.sin(3 * t + 1))
    points, _, _, right = sides(problem, "initial-velocity")
    np.testing.assert_allclose(right[:, 0], np.sin(points[:, 0]) * 3 * np.cos(1), rtol=1e-13)


def test_initial_asks_about_its_own_unknown_only():
    problem = Problem(
        CYLINDER,
        lambda u, x, t: (pf.dt(pf.dt(u.a))(x, t) - u.b(x, t), pf.dt(u.b)(x, t) - u.a(x, t)),
        0.0,
        [pf.Initial(0.0, 1.0, unknown="a", name="a"), pf.Initial(0.0, unknown="b", name="b")],
        {"a": 1, "b": 1},
    )
    assert [term.name for term in problem.terms] == ["equation", "a", "a-velocity", "b"]


# ---- replace


def test_replace_makes_another_problem_and_leaves_the_first_alone():
    first = Problem(SQUARE, poisson, 1.0, ZERO)
    second = first.replace(source=2.0, name="other")
    value = lambda p: p.right_side(p.terms[0])(p.layout, (jnp.ones(2),), jnp.zeros(2)).tolist()
    assert (value(first), value(second)) == ([1.0], [2.0])
    assert (first.name, second.name) == ("problem", "other")


def test_conditions_without_a_part_follow_the_domain():
    disk = CURVED["disk"]
    moved = Problem(SQUARE, poisson, conditions=[pf.Dirichlet()], exact=exp_cos).replace(domain=disk)
    points, _, _, right = sides(moved, "dirichlet")
    np.testing.assert_allclose(np.linalg.norm(points - [1, 2], axis=1), 0.5, rtol=1e-14)
    np.testing.assert_allclose(right[:, 0], np_exp_cos(points), rtol=1e-13)


def test_replace_checks_like_the_constructor():
    problem = Problem(SQUARE, poisson, 1.0, [pf.Dirichlet(0.0, SQUARE.boundary)])
    with pytest.raises(ProblemError, match=r"lie outside Disk"):
        problem.replace(domain=pf.Disk())
    with pytest.raises(ProblemError, match="no condition"):
        problem.replace(conditions=[])


# ---- bad input

TWO = {"v": 2, "p": 1}
SYSTEM = lambda u, x: (pf.laplacian(u.v)(x) - pf.grad(u.p)(x), pf.div(u.v)(x))
OTHER = pf.Box([5, 5], [6, 6])
LSHAPE = pf.Box([-1, -1], [1, 1]) - pf.Box([0, 0], [1, 1])

BAD = {
    "no condition": (
        lambda: Problem(SQUARE, poisson, 1.0),
        r"no condition: its solution is not unique.*conditions=\[Dirichlet",
    ),
    "vector operator for one unknown": (
        lambda: Problem(SQUARE, lambda u, x: pf.grad(u)(x), 0.0, ZERO),
        r"operator returned 2 values at a point; expected a scalar.*unknowns=",
    ),
    "vector source": (
        lambda: Problem(pf.Box([0] * 3, [1] * 3), poisson, lambda x: x, ZERO),
        r"source has 3 entries at a point; expected 1",
    ),
    "source of a system too short": (
        lambda: Problem(SQUARE, SYSTEM, lambda x: x, ZERO, TWO),
        r"source has 2 entries at a point; expected 3",
    ),
    "vector boundary value": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(lambda x: x, name="wall")]),
        r"value of condition 'wall' has 2 entries at a point; expected 1",
    ),
    "boundary value of a system too long": (
        lambda: Problem(SQUARE, SYSTEM, 0.0, [pf.Dirichlet(jnp.ones(3), unknown="v")], TWO),
        r"value of condition 'dirichlet' has 3 entries at a point; expected 2",
    ),
    "neumann value of the wrong shape": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Neumann(jnp.ones(2))]),
        r"value of condition 'neumann' has 2 entries",
    ),
    "exact of the wrong shape": (
        lambda: Problem(SQUARE, poisson, conditions=[pf.Dirichlet()], exact=lambda x: x),
        r"exact has 2 values at a point; expected 1, one per component of the unknowns",
    ),
    "exact of a system of the wrong shape": (
        lambda: Problem(SQUARE, SYSTEM, 0.0, ZERO, TWO, {"v": lambda x: x[0], "p": lambda x: x[0]}),
        r"exact has 2 values at a point; expected 3, one per component of the unknowns",
    ),
    "exact of a system as one function": (
        lambda: Problem(SQUARE, SYSTEM, 0.0, ZERO, TWO, lambda x: jnp.ones(3)),
        r"exact must be a dictionary with a function for each of \['v', 'p'\]; got function",
    ),
    "exact of one unknown as a dictionary": (
        lambda: Problem(SQUARE, poisson, 0.0, ZERO, exact={"u": lambda x: x[0]}),
        r"exact must be a function of the point; got \['u'\]",
    ),
    "operator that returns nothing": (
        lambda: Problem(SQUARE, lambda u, x: None, 0.0, ZERO),
        r"operator cannot be evaluated at a point: .*called as \(u, x\) with x of shape \(2,\) and must return numbers",
    ),
    "operator without the time": (
        lambda: Problem(CYLINDER, lambda u, x: u(x), 0.0, [*ZERO, pf.Initial(0.0)]),
        r"operator does not take the time. Add t: lambda u, x, t: …",
    ),
    "condition that returns nothing": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Condition(lambda u, x: None, name="wall")]),
        r"condition 'wall' cannot be evaluated at a point",
    ),
    "condition on another domain's part": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(0.0, OTHER.boundary)]),
        r"'dirichlet': \d+ of \d+ points, for instance \[5.*lie outside Box\(\[0, 0\], \[1, 2\]\).*domain\.boundary",
    ),
    "condition on a removed piece": (
        lambda: Problem(SQUARE - pf.Box([-1, -1], [2, 1]), poisson, 0.0, [pf.Dirichlet(0.0, SQUARE.face(1, 0))]),
        r"lie outside .*Take the part from this domain",
    ),
    "face that is cut away": (
        lambda: Problem((box := SQUARE - pf.Box([-1, -1], [2, 1])), poisson, 0.0, [pf.Dirichlet(0.0, box.face(2, 0))]),
        r"no face 'x2=lower'; its parts are",
    ),
    "points outside": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(0.0, [[0.5, 0.5], [3.0, 0.5]])]),
        r"1 of 2 points, for instance \[3\.0, 0\.5\], lie outside",
    ),
    "points of the wrong dimension": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(0.0, [[0.5, 0.5, 0.5]])]),
        r"on= must be a part of the domain or points of shape \(n, 2\); got an array of shape \(1, 3\)",
    ),
    "one point without brackets": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(0.0, [0.5, 0.5])]),
        r"points of shape \(n, 2\); got an array of shape \(2,\)",
    ),
    "no points": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(0.0, np.zeros((0, 2)))]),
        r"points of shape \(n, 2\); got an array of shape \(0, 2\)",
    ),
    "part of another dimension": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(0.0, INTERVAL.boundary)]),
        r"shape \(\d+, 1\).*expected \(n, 2\)",
    ),
    "predicate that holds nowhere": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(0.0, SQUARE.boundary.where(lambda x: x[0] > 9))]),
        r"predicate holds nowhere",
    ),
    "unknown part": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(0.0, SQUARE.part("x0=uper"))]),
        r"Unknown part 'x0=uper'. Did you mean 'x0=upper'",
    ),
    "condition about an unknown that is not there": (
        lambda: Problem(SQUARE, SYSTEM, 0.0, [pf.Dirichlet(0.0, unknown="q")], TWO),
        r"Condition 'dirichlet' names the unknown 'q'; expected one of \['v', 'p'\]",
    ),
    "condition that names an unknown in a scalar problem": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Neumann(0.0, unknown="u")]),
        r"this problem has one scalar. Leave unknown= out",
    ),
    "unknowns without entries": (
        lambda: Problem(SQUARE, poisson, 0.0, ZERO, {}),
        r"unknowns is empty; expected names with sizes, as in \{'v': 2, 'p': 1\}. Leave it out",
    ),
    "unknown with a name that Python cannot write": (
        lambda: Problem(SQUARE, poisson, 0.0, ZERO, {"the velocity": 2}),
        r"'the velocity' cannot name an unknown; expected a Python name",
    ),
    "unknown with a private name": (
        lambda: Problem(SQUARE, poisson, 0.0, ZERO, {"_v": 2}),
        r"'_v' cannot name an unknown",
    ),
    "unknown of size zero": (
        lambda: Problem(SQUARE, SYSTEM, 0.0, ZERO, {"v": 0, "p": 1}),
        r"The unknown 'v' has the size 0; expected an integer of at least 1",
    ),
    "exact without a component": (
        lambda: Problem(SQUARE, SYSTEM, 0.0, ZERO, TWO, {"v": lambda x: x}),
        r"exact must be a dictionary with a function for each of \['v', 'p'\]; got \['v'\]",
    ),
    "exact with a wrong name": (
        lambda: Problem(SQUARE, SYSTEM, 0.0, ZERO, TWO, {"v": lambda x: x, "q": lambda x: x[0]}),
        r"a function for each of \['v', 'p'\]; got \['v', 'q'\]",
    ),
    "periodic along an axis that is not there": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Periodic(2)]),
        r"Condition 'periodic': axis must be 0 to 1 in Box.*; got 2",
    ),
    "periodic in time": (
        lambda: heat_problem(pf.Initial(0.0), pf.Periodic(1)),
        r"axis must be 0 to 0 in SpaceTime.*; got 1",
    ),
    "periodic on a part": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Periodic(0, on=SQUARE.boundary)]),
        r"chooses its faces by axis=; leave out on=",
    ),
    "periodic across faces that do not match": (
        lambda: Problem(LSHAPE, poisson, 0.0, [pf.Periodic(0)]),
        r"'periodic': the faces of .* across axis 0 do not match.*two opposite faces that are translates",
    ),
    "periodic across faces that do not match, the smaller one first": (
        lambda: Problem(SQUARE - pf.Box([-1, 1], [0.5, 3]), poisson, 0.0, [pf.Periodic(0)]),
        r"'periodic': the faces of .* across axis 0 do not match",
    ),
    "periodic with a negative number of derivatives": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Periodic(0, -1)]),
        r"'periodic': derivatives must be an integer of at least 0; got -1",
    ),
    "neumann at points": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Neumann(0.0, [[0.0, 1.0]])]),
        r"'neumann' needs a normal, which given points do not have. State it on a part of the boundary: domain\.part",
    ),
    "robin at points": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Robin(1.0, 2.0, on=np.array([[0.0, 1.0]]))]),
        r"'robin' needs a normal, which given points do not have",
    ),
    "condition with a normal at points": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Condition(lambda u, x, normal: u(x), on=jnp.ones((1, 2)))]),
        r"'condition' needs a normal, which given points do not have",
    ),
    **{
        f"weight {weight}": (
            lambda weight=weight: Problem(SQUARE, poisson, 0.0, [pf.Dirichlet(0.0, name="wall", weight=weight)]),
            rf"'wall' has the weight {weight}; expected a positive number",
        )
        for weight in (0.0, -1.0, float("nan"), float("inf"))
    },
    "periodic on a disk": (lambda: Problem(pf.Disk(), poisson, 0.0, [pf.Periodic(0)]), r"has no face 'x0=lower'"),
    "initial without a time": (
        lambda: Problem(SQUARE, poisson, 0.0, [pf.Initial(0.0)]),
        r"Condition 'initial' needs a domain with time; got Box.*Use SpaceTime",
    ),
    "wave without a velocity": (
        lambda: wave_problem(pf.Initial(0.0)),
        r"second order in time, but no velocity is given. Write Initial\(value, velocity\)",
    ),
    "heat with a velocity": (
        lambda: heat_problem(pf.Initial(0.0, 1.0)),
        r"a velocity is given, but the equation is of order 1 in time. Leave the velocity out",
    ),
}


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_an_unknown_must_not_hide_an_attribute_of_the_solution(name):
    with pytest.raises(ProblemError, match=rf"'{name}' cannot name an unknown; .* not one of \[.*'features'"):
        Problem(SQUARE, poisson, 0.0, ZERO, {name: 1})


def test_every_attribute_of_a_solution_is_reserved():
    """An unknown of such a name could not be reached as u.name."""
    kinds = (pf.Solution, pf.Evolution, Inferred)
    public = {name for kind in kinds for name in dir(kind) if not name.startswith("_")}
    assert public.union(*(kind.__dataclass_fields__ for kind in (*kinds, Member))) == RESERVED


@pytest.mark.parametrize("name", BAD)
def test_a_problem_that_is_not_well_stated_is_refused_with_the_reason(name):
    build, message = BAD[name]
    with pytest.raises(PdofmError, match=message):
        build()


def test_errors_are_value_errors_too_so_that_general_handlers_catch_them():
    with pytest.raises(ValueError, match="no condition"):
        Problem(SQUARE, poisson, 1.0)
    assert issubclass(ProblemError, PdofmError)
    assert issubclass(DomainError, PdofmError)


def test_an_exact_solution_is_needed_to_evaluate_it():
    problem = Problem(SQUARE, poisson, 1.0, ZERO)
    assert problem.exact_fields is None
    with pytest.raises(ProblemError, match=r"no exact solution: give Problem\(exact=…\), or use error_estimate"):
        problem.exact_values(np.zeros((1, 2)))


NOT_FINITE = {
    "nan source": (
        lambda: Problem(SQUARE, poisson, lambda x: jnp.log(x[0] - 0.5), ZERO),
        r"source is not finite at \d+ of \d+ points, for instance \[nan\] at \[0\.[0-4].*Check the function there",
    ),
    "constant infinite source": (
        lambda: Problem(SQUARE, poisson, jnp.inf, ZERO),
        r"source is \[inf\]; expected finite numbers",
    ),
    "infinite boundary value": (
        lambda: Problem(SQUARE, poisson, 1.0, [pf.Dirichlet(lambda x: 1 / x[0], name="wall")]),
        r"value of condition 'wall' is not finite at \d+ of \d+ points, for instance \[inf\] at \[0\.0, ",
    ),
    "exact solution with a pole": (
        lambda: Problem(pf.Box([-1, -1], [1, 1]), poisson, conditions=[pf.Dirichlet()], exact=lambda x: x[0] ** -0.5),
        r"source is not finite",
    ),
    "operator with a pole": (
        lambda: Problem(SQUARE, lambda u, x: jnp.sqrt(x[0] - 0.5) * u(x), 1.0, ZERO),
        r"left side of 'equation' is not finite.*divisions by zero",
    ),
    "condition with a pole": (
        lambda: Problem(SQUARE, poisson, 1.0, [pf.Condition(lambda u, x: u(x) / x[0], name="wall")]),
        r"left side of 'wall' is not finite",
    ),
}


@pytest.mark.parametrize("name", NOT_FINITE)
def test_values_that_are_not_finite_are_found_before_the_factorization(name):
    build, message = NOT_FINITE[name]
    with pytest.raises(ProblemError, match=message):
        pf.solve(build(), 10)


# ---- wrong types: the type checker of the tests would get there first, so this is another process, without it

WRONG_TYPES = {
    "domain": ("pf.Problem([0, 1], lambda u, x: u(x), 0.0, C)", "domain must be a Domain such as Box.*got list"),
    "operator": ("pf.Problem(D, 'laplace', 0.0, C)", "operator must be a function such as lambda u, x.*got str"),
    "condition": ("pf.Problem(D, f, 0.0, [0.0])", "conditions must be objects such as Dirichlet.*got float"),
    "part by its name only": (
        "pf.Problem(D, f, 0.0, [pf.Dirichlet(0.0, on='left')])",
        r"'dirichlet': on= must be a part of the domain, such as domain\.part\(name\), or points; got str",
    ),
    "fractional size": (
        "pf.Problem(D, lambda u, x: u.v(x), 0.0, C, {'v': 1.5})",
        "The unknown 'v' has the size 1.5; expected an integer of at least 1",
    ),
    "name of an unknown": ("pf.Problem(D, f, 0.0, C, {1: 1})", "1 cannot name an unknown; expected a Python name"),
    "exact": ("pf.Problem(D, f, 0.0, C, exact=1.0)", "exact must be a function of the point; got float"),
    "derivatives": (
        "pf.Problem(D, f, 0.0, [pf.Periodic(0, 0.5)])",
        "derivatives must be an integer of at least 0; got 0.5",
    ),
    "problem": ("pf.solve(f)", r"solve\(\) takes a Problem; got function. Make one with Problem\(…\) or zoo.get\(…\)"),
    "problem by its name": ("pf.solve('heat', tol=0.1)", r"got str. Make one with zoo.get\('heat'\)"),
    "factored by its name": ("pf.factor('heat')", r"factor\(\) takes a Problem; got str"),
    "no features": ("pf.solve(P, -5)", "features must be an integer of at least 1; got -5"),
    "a method by its name": (
        "pf.solve(P, 9, method='newton')",
        r"got 'newton'. Write method=Newton\(\), or leave it out",
    ),
    "a method as a class": ("pf.solve(P, 9, method=pf.Picard)", r"takes Linear\(\), .*Write method=Picard\(\)"),
    "a value differentiated": ("pf.laplacian(1.0)", r"laplacian\(\) takes a function; .*, not laplacian\(u\(x\)\)"),
    "an axis by its name": ("pf.partial(f, 'x')", "takes the numbers of axes, 0 for the first coordinate; got 'x'"),
    "features": ("pf.solve(P, 'many')", "features must be Features such as NetworkFeatures.*got str"),
    "fractional features": ("pf.solve(P, 10.5)", "features must be Features.*or a number; got float"),
    "size": ("pf.NetworkFeatures(D, 2.5)", "size must be an integer of at least 1; got 2.5"),
    "box": ("pf.RandomFeatures([0, 1], 5)", "Features need a domain .*got list.*NetworkFeatures"),
    "box by its name": ("pf.NetworkFeatures(D, 5).on('disk')", "Features need a domain .*got str"),
    "swapped": ("pf.save(pf.NetworkFeatures(D, 5), 'f')", r"The path comes first: save\(path, what\)"),
    "trained as features": ("pf.solve(P, pf.solve(P, 5))", "or a number; got Solution. Give its .features."),
    "optimiser": ("pf.pretrain(P, pf.NetworkFeatures(D, 5), optimiser=1e-3)", "must be one of optax.*got float"),
    "steps": ("pf.pretrain(P, pf.NetworkFeatures(D, 5), steps=2.5)", "steps and points must be .*steps=2.5"),
    "saved number": ("pf.save('f', 1)", r"save\(\) writes features or a solution; got int\."),
    "trained number": ("pf.pretrain(P, 80)", "takes features to start from, such as NetworkFeatures.*got int"),
    "loss": ("pf.pretrain(P, pf.NetworkFeatures(D, 5), physics=pf.losses.Projected)", r"object: Projected\(…\)"),
    "family": ("pf.losses.Projected([f])", "takes one function of a point .*got list"),
}


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    """What a user's script would see for each of WRONG_TYPES."""
    script = """
    import json, sys
    import pdofm as pf
    D, C, f = pf.Box([0, 0], [1, 1]), [pf.Dirichlet(0.0)], lambda u, x: u(x)
    P, found = pf.Problem(D, f, 0.0, C), {}
    for name, code in json.load(sys.stdin).items():
        try:
            eval(code)
        except pf.errors.PdofmError as error:
            found[name] = str(error)
    print(json.dumps(found))
    """
    given = json.dumps({name: code for name, (code, _) in WRONG_TYPES.items()})
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], input=given, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_a_wrong_type_is_named_with_the_right_one(messages, name):
    with pytest.raises(PdofmError, match=WRONG_TYPES[name][1]):
        raise PdofmError(messages[name])


HEAT = pf.SpaceTime(pf.Interval(0, 1), 1)


def heat(u, x, t):
    return pf.dt(u)(x, t) - pf.laplacian(u)(x, t)


def test_an_equation_in_time_needs_a_start():
    with pytest.raises(ProblemError, match=r"of order 1 in time, but no condition holds at the start.*Initial"):
        Problem(HEAT, heat, 1.0, [pf.Dirichlet(0.0)])


@pytest.mark.parametrize(
    "start",
    [
        pf.Initial(0.0),
        pf.Condition(lambda u, x, t: u(x, t), on=HEAT.initial, name="start"),
        pf.Dirichlet(0.0, on=[[0.5, 0.0]], name="point"),
    ],
)
def test_the_start_may_be_given_in_any_way(start):
    problem = Problem(HEAT, heat, 1.0, [pf.Dirichlet(0.0), start])
    *_, block = collocate(problem, 4, 8)
    assert (block.points[:, 1] == 0).all()


def test_an_equation_without_time_derivatives_needs_no_start():
    """-u'' = exp(t) at every time by itself."""
    problem = Problem(HEAT, lambda u, x, t: -pf.laplacian(u)(x, t), lambda x, t: jnp.exp(t), [pf.Dirichlet(0.0)])
    u = pf.solve(problem, pf.Chebyshev(HEAT, degree=12))
    assert u(0.5, 0.3) == pytest.approx(np.exp(0.3) / 8, rel=1e-9)


@pytest.mark.parametrize("place", ["source", "value of condition 'dirichlet'"])
def test_a_scalar_function_is_refused_where_a_vector_is_expected(place):
    def scalar(x):
        return x[0]

    source, value = (scalar, 0.0) if place == "source" else (0.0, scalar)
    with pytest.raises(ProblemError, match=f"The {place} has 1 entry at a point; expected 2, .* Return a vector"):
        pf.Problem(
            SQUARE,
            lambda u, x: -pf.laplacian(u.v)(x),
            source,
            [pf.Dirichlet(value, unknown="v")],
            unknowns={"v": 2},
        )


def test_a_problem_is_printed_in_one_line():
    at = np.full((100, 2), 0.5)
    conditions = [pf.Dirichlet(0.0, on=at, name="inside"), pf.Neumann(poisson, on=SQUARE.face(0, 0)), pf.Robin(1, 2)]
    shown = repr(pf.Problem(SQUARE, poisson, 1.0, [*conditions[:1], pf.Dirichlet(0.0)], name="plate"))
    assert shown == (
        "Problem('plate' on Box([0, 0], [1, 2]), conditions [Dirichlet(value=0.0, on=<100 points>, name='inside'), "
        "Dirichlet(value=0.0)])"
    )
    assert repr(conditions[1]) == "Neumann(value=poisson, on=Part(x0=lower; measure 2))"
    assert repr(conditions[2]) == "Robin(alpha=1, beta=2)"


def test_a_name_that_does_not_exist_is_explained():
    with pytest.raises(AttributeError, match=r"'pdofm' has no attribute 'Rectangle'. Did you mean Box\?"):
        pf.Rectangle  # noqa: B018
    with pytest.raises(AttributeError, match=r"Did you mean NetworkFeatures\?"):
        pf.networkfeatures  # noqa: B018
    assert not hasattr(pf, "__nothing__")
