"""The local problems of the zoo: exact solutions solve them, and a tolerance alone solves them as accurately."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from local_problems import torsion_cube_values, torsion_values

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.discrete.collocate import collocate

WITH_EXACT = [name for name in pf.zoo.names("local") if pf.zoo.get(name).exact is not None]

COARSE = ("peaks-and-front", "stokes-lshape", "helmholtz-square")
"""Problems that take seconds: they are solved to 1e-6."""

UNSOLVED = ("front-steep",)
"""Problems that are not solved here: they do not reach 1e-8 in the time of a search."""


@pytest.mark.parametrize("name", WITH_EXACT)
def test_the_exact_solution_satisfies_the_equation_and_all_conditions(name):
    """lhs(exact) = rhs at random points, relative to the size of the derivatives that cancel: next to a singular point
    or in a front they are much larger than the solution."""
    problem = pf.zoo.get(name)
    layout, exact = problem.layout, problem.exact_fields

    for block in collocate(problem, 64, 32 * len(problem.terms), sampling="random", key=9):

        def sides(z, normal, block=block):
            args = layout.arguments(z)
            return block.term.lhs(exact, exact, args, normal), block.right_side(layout, args, normal)

        left, right = jax.jit(jax.vmap(sides))(jnp.asarray(block.points), jnp.asarray(block.normals))
        residual = np.abs(np.asarray(left) - np.asarray(right)).max(axis=1)
        scale = largest_derivatives(problem, block.points) * coefficient(name)
        assert np.isfinite(residual).all()
        assert np.all(residual <= 1e-11 * np.maximum(scale, 1.0)), block.term.name


def largest_derivatives(problem, points) -> np.ndarray:
    """At every point the largest value, first or second derivative of the exact solution."""

    def at(z):
        functions = [problem.exact] if callable(problem.exact) else list(problem.exact.values())
        found = [d(f)(z) for f in functions for d in (lambda f: f, jax.jacfwd, lambda f: jax.jacfwd(jax.jacrev(f)))]
        return jnp.max(jnp.concatenate([jnp.ravel(jnp.abs(each)) for each in found]))

    return np.asarray(jax.jit(jax.vmap(at))(jnp.asarray(points)))


def coefficient(name: str) -> float:
    """The largest coefficient of an equation."""
    return 100.0**2 if name == "helmholtz-square" else 10.0


def relative(found, truth) -> float:
    truth = truth.reshape(len(truth), -1)
    difference = np.asarray(found).reshape(truth.shape) - truth
    return float(np.max(np.linalg.norm(difference, axis=0) / np.linalg.norm(truth, axis=0)))


@pytest.mark.parametrize("name", [name for name in WITH_EXACT if name not in UNSOLVED])
def test_a_tolerance_is_all_that_it_takes(name):
    tol = 1e-6 if name in COARSE else 1e-8
    u = pf.solve(pf.zoo.get(name), tol=tol)
    error = u.errors().relative_l2
    assert u.converged, u.reason
    assert error <= 3 * tol
    assert u.error_estimate >= error / 10


@pytest.mark.parametrize(("name", "truth"), [("torsion-square", torsion_values), ("torsion-cube", torsion_cube_values)])
def test_a_constant_source_gives_the_values_of_the_series(name, truth):
    problem = pf.zoo.get(name)
    u = pf.solve(problem, tol=1e-8)
    points = 0.2 + 0.6 * problem.domain.sample(300, "random", key=1)  # where the series converge fast
    error = relative(u(points), truth(points))
    assert u.converged, u.reason
    assert error <= 3e-8
    assert u.error_estimate >= error / 10


@pytest.mark.parametrize(
    ("name", "tol"),
    [("torsion-triangle", 1e-8), ("torsion-pentagon", 1e-8), ("torsion-lshape", 1e-8), ("torsion-tshape", 1e-6)],
)
def test_a_constant_source_gives_the_same_in_singular_functions_and_in_boxes(name, tol):
    """The truth is not known: a solution in a space of another kind stands for it."""
    problem = pf.zoo.get(name)
    u = pf.solve(problem, tol=tol)
    assert u.converged, u.reason
    domain = problem.domain
    if "boxes" in u.space:
        space = pf.Concatenate(pf.Chebyshev(domain, 400), pf.CornerFunctions(domain, convex=True, highest=8.0))
        other = pf.solve(problem, space, sampling="clustered")
    else:
        other = solve_in_boxes(problem, tol)
    points = domain.sample(1000, "random", key=1)
    assert relative(u(points), other(points)) <= 6 * tol
