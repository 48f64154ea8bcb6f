"""The evolution problems of the zoo: exact solutions solve them, and references agree with computations of another
kind."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.discrete.collocate import collocate
from pdofm.zoo.references import FOLDER

NAMES = pf.zoo.names("evolution")
EXACT = [name for name in NAMES if pf.zoo.get(name).exact is not None]
LARGEST = {"advection-10000": 1e4}
"""The size of the terms that cancel, where it is not about 100."""

STORED = [name for name in NAMES if name not in EXACT]

MARCHED = [*STORED, "taylor-green"]
"""Compared with a march; the last one instead of by automatic differentiation of its equations, which compiles long."""

CHAOTIC = {"kuramoto-sivashinsky": 1e-9}
"""The error that a reference may have, where small errors grow."""


@pytest.mark.parametrize("name", [name for name in EXACT if name not in MARCHED])
def test_the_exact_solution_satisfies_the_equation_and_all_conditions(name):
    """To rounding, of derivatives that cancel."""
    problem = pf.zoo.get(name)
    layout, exact = problem.layout, problem.exact_fields
    for block in collocate(problem, 32, 32 * len(problem.terms), sampling="random", key=9):

        def sides(z, normal, block=block):
            args = layout.arguments(z)
            return block.term.lhs(exact, exact, args, normal), block.right_side(layout, args, normal)

        left, right = jax.jit(jax.vmap(sides))(jnp.asarray(block.points), jnp.asarray(block.normals))
        gaps = np.abs(np.asarray(left) - np.asarray(right))
        assert gaps.max() <= 1e-11 * LARGEST.get(name, 100.0), block.term.name


@pytest.mark.parametrize("name", NAMES)
def test_every_problem_has_accurate_values_to_compare_with(name):
    reference, problem = pf.zoo.reference(name), pf.zoo.get(name)
    assert reference.error <= CHAOTIC.get(name, 1e-11)
    assert reference.weights.sum() == pytest.approx(1.0)
    assert len(reference.points) == len(reference.values) >= 2000
    assert np.all(problem.domain.contains(reference.points, tol=1e-9))
    assert reference.until(0.5 * problem.domain.t1).points[:, -1].max() <= 0.5 * problem.domain.t1
    if name in STORED:
        assert (FOLDER / f"{name}.safetensors").stat().st_size <= 200 * 1024


@pytest.mark.parametrize("name", MARCHED)
def test_references_agree_with_a_march(name):
    reference = pf.zoo.reference(name).until(0.2)
    problem = pf.zoo.get(name)
    space = problem.domain.space
    short = problem.replace(domain=pf.SpaceTime(space, 0.2))
    u = pf.march(short, tol=1e-7)
    assert u.converged, u.reason
    assert reference.relative_l2(u) < 1e-7


def test_the_reference_for_nonlinear_heat_is_small_and_agrees_with_a_march():
    reference, problem = pf.zoo.reference("heat-nonlinear"), pf.zoo.get("heat-nonlinear")
    assert reference.error < 1e-6
    assert reference.weights.sum() == pytest.approx(1.0)
    assert np.all(problem.domain.contains(reference.points, tol=1e-9))
    assert (FOLDER / "heat-nonlinear.safetensors").stat().st_size <= 200 * 1024
    early = reference.until(2.0)
    end = float(early.points[:, -1].max())
    u = pf.march(problem.replace(domain=pf.SpaceTime(problem.domain.space, end)), tol=1e-3)
    assert u.converged, u.reason
    assert len(early.points) >= 300
    assert early.relative_l2(u) < 1e-3


def test_the_reference_for_burgers_equation_is_the_integral_of_cole_and_hopf():
    """By adaptive quadrature of both integrals, at one point beside the front."""
    from scipy.integrate import quad

    nu, reference = 0.01 / math.pi, pf.zoo.reference("burgers-sine")
    at = int(np.argmin(np.abs(reference.points - [0.02, 0.5]).sum(axis=1)))
    x, t = reference.points[at]

    def weight(s):
        return math.exp((1 - math.cos(math.pi * (x - s * math.sqrt(4 * nu * t)))) / (2 * math.pi * nu) - s * s - 60)

    def part(s):
        return -math.sin(math.pi * (x - s * math.sqrt(4 * nu * t))) * weight(s)

    ends = {"limit": 400, "epsabs": 0.0, "epsrel": 1e-12}
    value = quad(part, -20, 20, **ends)[0] / quad(weight, -20, 20, **ends)[0]
    assert reference.values[at, 0] == pytest.approx(value, rel=1e-9)


def test_problems_without_exact_solution_and_reference_have_none():
    assert pf.zoo.reference("torsion-triangle") is None
