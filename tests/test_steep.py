"""Coefficients that change steeply: where that is seen, and that solutions which miss it are not accepted."""

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import ConvergenceWarning
from pdofm.solving.steep import missed_flux

CENTRE = 0.53
WIDTHS = [1e-3, 1e-4, 1e-5, 1e-6]
LINE, SQUARE = pf.Interval(0, 1), pf.Box([0, 0], [1, 1])


def profile(width: float):
    """A function that rises from 1 to 10."""
    return lambda x: 5.5 + 4.5 * jnp.tanh((x[0] - CENTRE) / width)


def conduction(width: float, domain: pf.Domain = LINE) -> pf.Problem:
    """-div(a grad u) = 0 with u = 0 on the left and 1 on the right: the flux is constant, and u = ∫ 1/a / ∫₀¹ 1/a.

    With s = (x - centre) / width, 1/a = (1 + e²ˢ) / (1 + 10 e²ˢ), whose integral over s is s - 9/20 ln(1 + 10 e²ˢ).
    """
    a = profile(width)

    def integral(x):
        s = (x - CENTRE) / width
        return width * (s - 0.45 * jnp.logaddexp(0.0, jnp.log(10.0) + 2 * s))

    return pf.Problem(
        domain,
        lambda u, x: -pf.div(lambda y: a(y) * pf.grad(u)(y))(x),
        0.0,
        [pf.Dirichlet()],
        exact=lambda x: (integral(x[0]) - integral(0.0)) / (integral(1.0) - integral(0.0)),
        name="conduction",
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("domain", [LINE, SQUARE], ids=["line", "square"])
def test_a_steep_change_is_found_where_it_is(width, domain):
    places = conduction(width, domain).transitions
    assert np.median([abs(place.point[0] - CENTRE) for place in places]) < width
    for place in places:
        np.testing.assert_allclose(np.abs(place.direction[0]), 1.0, atol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("domain", [LINE, SQUARE], ids=["line", "square"])
def test_a_solution_that_misses_it_has_not_converged(width, domain):
    with pytest.warns(ConvergenceWarning, match="has not converged"):
        u = pf.solve(conduction(width, domain), pf.Chebyshev(domain, degree=12))
    assert u.errors().relative_l2 > 0.1


def test_a_search_does_not_believe_it_either():
    """Polynomials that do not see the change agree to all digits, in every degree."""
    with pytest.warns(ConvergenceWarning, match="of the coefficients between the collocation points"):
        u = pf.solve(conduction(1e-6), tol=1e-6, max_features=60)
    assert u.attempts[0].estimate > 0.1
    assert u.errors().relative_l2 > 0.1
    assert u.error_estimate > 0.1


def test_a_solution_that_resolves_it_is_accepted():
    """The flux is a derivative: in a layer of width w it is less accurate than the solution by 1/w."""
    width = 1e-2
    u = pf.solve(conduction(width), tol=1e-6)
    assert u.converged
    assert u.errors().relative_l2 < 1e-6
    assert missed_flux(u.problem, u.features, u.coefficients) < 1e-6 / width


LEGITIMATE = {
    "a potential": lambda a: lambda u, x: -pf.laplacian(u)(x) + a(x) * u(x),
    "a wind": lambda a: lambda u, x: -pf.laplacian(u)(x) + a(x) * pf.partial(u, 0)(x),
    "a factor": lambda a: lambda u, x: -a(x) * pf.laplacian(u)(x),
}


@pytest.mark.parametrize("name", LEGITIMATE)
def test_outside_of_derivatives_it_does_no_harm(name):
    """The second derivative of the solution changes as steeply, but the solution hardly notices."""
    operator = LEGITIMATE[name](profile(1e-6))
    problem, polynomials = pf.Problem(LINE, operator, 1.0, [pf.Dirichlet(0.0)]), pf.Chebyshev(LINE, degree=60)
    with pytest.warns(ConvergenceWarning, match="the estimated relative error .* is above 0.01"):
        u = pf.solve(problem, polynomials)
    assert problem.transitions
    assert missed_flux(problem, u.features, u.coefficients) < 1e-2


def test_gentle_and_constant_coefficients_have_no_steep_place():
    for a in (lambda x: 2 + jnp.sin(3 * x[0]), profile(0.3), lambda x: 1.0 + 0 * x[0]):
        problem = pf.Problem(
            LINE, lambda u, x, a=a: -pf.div(lambda y: a(y) * pf.grad(u)(y))(x), 1.0, [pf.Dirichlet(0.0)]
        )
        assert problem.transitions == ()
        assert pf.solve(problem, 40).converged
