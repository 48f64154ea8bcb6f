"""Polynomials in few of many coordinates."""

from itertools import product
from math import comb

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import FeaturesError
from pdofm.features.base import differentiated

CUBE = pf.Box([0, -1, 2, 0], [1, 1, 4, 3])


@pytest.mark.parametrize("variables", [1, 2, 3, 4])
def test_they_are_the_chebyshev_polynomials_in_at_most_so_many_coordinates(variables):
    features = pf.SparsePolynomials(CUBE, degree=4, variables=variables)
    wanted = [k for k in product(range(5), repeat=4) if sum(k) <= 4 and np.count_nonzero(k) <= variables]
    assert features.size == len(wanted)
    points = CUBE.sample(30)
    y = 2 * (points - CUBE.lower) / (np.asarray(CUBE.upper) - CUBE.lower) - 1
    columns = np.stack([np.prod(np.cos(np.array(k) * np.arccos(y)), axis=1) for k in wanted], axis=1)
    found = features.jets(points, ((0, 0, 0, 0),))[0]
    for each in columns.T:  # in another order
        assert np.min(np.max(np.abs(found - each[:, None]), axis=0)) < 1e-13


def test_their_derivatives_are_those_of_automatic_differentiation(seed):
    which = ((1, 0, 0, 0), (0, 2, 0, 0), (0, 1, 1, 0), (1, 1, 1, 0), (0, 0, 0, 3))
    points = CUBE.sample(9, key=seed)
    for variables in (1, 2, 3):
        features = pf.SparsePolynomials(CUBE, degree=5, variables=variables)
        truth = differentiated(features, points, which)
        np.testing.assert_allclose(features.jets(points, which), truth, atol=1e-12 * np.max(np.abs(truth)))


def test_their_number_grows_like_a_power_of_the_dimension():
    assert pf.SparsePolynomials(pf.Box([0] * 100, [1] * 100), 203, variables=1).degree == 2
    assert pf.SparsePolynomials(pf.Box([0] * 10, [1] * 10), degree=6).size == 1 + 10 * 6 + comb(10, 2) * comb(6, 2)


@pytest.mark.parametrize("variables", [0, 5])
def test_a_number_of_variables_that_the_domain_does_not_have_is_refused(variables):
    with pytest.raises(FeaturesError, match="variables"):
        pf.SparsePolynomials(CUBE, 50, variables=variables)


def test_the_heat_equation_in_many_dimensions_is_solved_to_rounding():
    d = 30
    problem = pf.Problem(
        pf.SpaceTime(pf.Ball([0.0] * d, 1.0), 1.0),
        operator=lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=lambda x, t: t + jnp.sum(x**2) / (2 * d),
    )
    solution = pf.solve(problem, tol=1e-8)
    assert solution.converged
    assert solution.errors().relative_l2 < 1e-12


def test_a_search_in_ten_dimensions_finds_out_which_variables_interact():
    problem = pf.Problem(
        pf.Box([0] * 10, [1] * 10),
        operator=lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.sum(jnp.sin(x)) + x[0] * x[7] ** 2,
    )
    solution = pf.solve(problem, tol=1e-5)
    assert solution.space == "polynomials in 2 variables"
    assert solution.converged
    assert solution.errors().relative_l2 < 3e-5
