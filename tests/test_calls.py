"""What users write: how solutions are called, how data are given, and what mistakes are answered with."""

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.arguments import explained
from pdofm.domain.vectors import finite_number
from pdofm.errors import ArgumentError, DomainError, FeaturesError, FileError, ProblemError

LINE, SQUARE = pf.Interval(0, 1), pf.Box([0, 0], [1, 1])
ROD = pf.SpaceTime(LINE, 1.0)


def minus_laplacian(u, x):
    return -pf.laplacian(u)(x)


def heat(u, x, t):
    return pf.dt(u)(x, t) - pf.laplacian(u)(x, t)


def cooling(initial, source=0.0) -> pf.Problem:
    return pf.Problem(ROD, heat, source, [pf.Dirichlet(0.0), pf.Initial(initial)])


@pytest.fixture(scope="module")
def parabola() -> pf.Solution:
    """u = x (1 - x) / 2."""
    return pf.solve(pf.Problem(LINE, minus_laplacian, 1.0, [pf.Dirichlet(0.0)]), 20)


@pytest.fixture(scope="module")
def dome() -> pf.Solution:
    return pf.solve(pf.Problem(SQUARE, minus_laplacian, 1.0, [pf.Dirichlet(0.0)]), pf.Chebyshev(SQUARE, 100))


@pytest.fixture(scope="module")
def marched() -> pf.Evolution:
    """u = exp(-π² t) sin πx."""
    return pf.march(cooling(lambda x, t: jnp.sin(jnp.pi * x[0])), tol=1e-4)


# ---- points


def test_on_a_line_each_entry_of_an_array_is_a_point(parabola):
    x = np.linspace(0, 1, 5)
    assert np.allclose(parabola(x), x * (1 - x) / 2, atol=1e-12)
    assert parabola.gradient(x).shape == (5, 1)
    assert parabola([0.5]).shape == parabola(0.5).shape == ()


def test_in_time_each_entry_of_an_array_on_a_line_is_a_point(marched):
    x = np.linspace(0, 1, 5)
    assert np.allclose(marched(x, 0.5), np.exp(-(np.pi**2) * 0.5) * np.sin(np.pi * x), atol=1e-4)
    assert np.array_equal(marched(x, x), marched(x[:, None], x))


def test_data_on_a_line_are_given_at_an_array_of_numbers():
    at = np.linspace(0.1, 0.9, 9)
    problem = pf.Problem(
        LINE,
        lambda u, x: -u.k * pf.laplacian(u.u)(x),
        1.0,
        [pf.Dirichlet(0.0), pf.Data(at, at * (1 - at) / 4)],
        unknowns={"u": 1, "k": pf.Number(1.0)},
    )
    assert pf.solve(problem, 20).numbers["k"] == pytest.approx(2.0)
    ends = pf.Problem(LINE, minus_laplacian, 0.0, [pf.Dirichlet(np.array([1.0, 3.0]), on=np.array([0.0, 1.0]))])
    assert pf.solve(ends, 20)(0.5) == pytest.approx(2.0)


def test_shapes_in_messages_are_those_that_were_given(dome, marched):
    with pytest.raises(ProblemError, match=r"have shape \(5,\); expected \(2,\)"):
        dome(np.zeros(5))
    with pytest.raises(ProblemError, match=r"in space have shape \(5, 2\); expected \(1,\).*\(n, 1\) or \(n,\)"):
        marched(np.zeros((5, 2)), 0.5)
    with pytest.raises(
        ProblemError, match=r"'data': its points must be of shape \(n, 2\); got an array of shape \(9,\)"
    ):
        pf.Problem(
            SQUARE,
            lambda u, x: -u.k * pf.laplacian(u.u)(x),
            1.0,
            [pf.Dirichlet(0.0), pf.Data(np.zeros(9), np.zeros(9))],
            unknowns={"u": 1, "k": pf.Number(1.0)},
        )


def test_coordinates_one_by_one_are_answered_with_a_list(dome, marched):
    with pytest.raises(ProblemError, match=r"write u\(\[0.3, 0.4\]\)"):
        dome(0.3, 0.4)


# ---- solutions in other problems


@pytest.mark.parametrize(
    "solver", [lambda p: pf.solve(p, pf.Chebyshev(p.domain, 200)), lambda p: pf.march(p, tol=1e-6)]
)
def test_a_stationary_solution_is_an_initial_value_and_a_source(parabola, solver):
    # With the source 1, of which the parabola is the stationary solution, nothing changes.
    u = solver(cooling(parabola, 1.0))
    x = np.linspace(0, 1, 9)
    assert np.allclose(u(x, 1.0), parabola(x), atol=1e-7)
    one, other = solver(cooling(0.0, parabola)), solver(cooling(0.0, lambda x, t: x[0] * (1 - x[0]) / 2))
    assert np.allclose(one(x, 0.7), other(x, 0.7), atol=1e-9)


# ---- the end of a march


def test_after_the_end_of_a_march_a_warning_says_why_values_are_not_numbers(marched):
    with pytest.warns(UserWarning, match=r"marched to t = 1, and is asked for at t = 1.5.*SpaceTime\(space, 1.5\)"):
        assert np.isnan(marched([0.5], 1.5))
    with pytest.warns(UserWarning, match="after its end are NaN"):
        marched.gradient([0.5], 1.5)
    assert np.isfinite(marched([0.5], 1.0))


# ---- files


WRITERS = {
    "u.png": lambda u, path: u.plot(path),
    "u.vtu": lambda u, path: u.to_vtk(path),
    "u.pvd": lambda u, path: u.to_vtk(path),
    "u.gif": lambda u, path: u.animate(path),
    "u.pdofm": lambda u, path: pf.save(path, u),
}


@pytest.mark.parametrize("name", WRITERS)
def test_no_writer_makes_a_folder(marched, dome, tmp_path, name):
    path = tmp_path / "misspelled" / name
    with pytest.raises(FileError, match=r"There is no folder '.*misspelled' to write .*mkdir"):
        WRITERS[name](marched if name in ("u.gif", "u.pvd") else dome, path)
    assert not path.parent.exists()


def test_a_missing_file_is_no_error_of_features_alone(tmp_path):
    with pytest.raises(FileError, match="There is no file"):
        pf.load(tmp_path / "u.pdofm")


# ---- mistakes


def space_time(operator=heat, initial=0.0, features=None):
    return pf.solve(pf.Problem(ROD, operator, 0.0, [pf.Dirichlet(0.0), pf.Initial(initial)]), features)


def poisson(source=1.0, conditions=None, **more):
    return pf.Problem(SQUARE, minus_laplacian, source, conditions or [pf.Dirichlet(0.0)], **more)


def measured(points, values):
    conditions = [pf.Dirichlet(0.0), pf.Data(points, values)]
    unknowns = {"u": 1, "k": pf.Number(1.0)}
    return pf.Problem(LINE, lambda u, x: -u.k * pf.laplacian(u.u)(x), 1.0, conditions, unknowns=unknowns)


def plates(flux):
    halves = pf.Regions(a=pf.Box([0, 0], [0.5, 1]), b=pf.Box([0.5, 0], [1, 1]))
    return pf.Problem(halves, minus_laplacian, 1.0, [pf.Dirichlet(0.0), pf.Interface(flux=flux)])


MISTAKES = {
    "a tolerance for features": (lambda: pf.solve(poisson(), 1e-6), FeaturesError, r"did you mean tol=1e-06\?"),
    "another word for tol": (lambda: pf.solve(poisson(), tolerance=1e-6), ArgumentError, r"Did you mean tol=\?"),
    "a misspelled word": (lambda: poisson(exat=1.0), ArgumentError, r"no argument 'exat'. Did you mean exact=\?"),
    "British spelling": (lambda: pf.Disk(centre=[0, 0]), ArgumentError, r"Did you mean center=\?"),
    "of features": (lambda: pf.Chebyshev(SQUARE, degre=3), ArgumentError, r"Did you mean degree=\?"),
    "an unknown word": (lambda: pf.march(poisson(), nope=1), ArgumentError, r"no argument 'nope'. It takes problem"),
    "too many arguments": (lambda: pf.Disk([0, 0], 1, 2), ArgumentError, "too many.*It takes center, radius"),
    "too few arguments": (lambda: pf.Problem(SQUARE), ArgumentError, "missing.*'operator'.*It takes domain"),
    "a text for a number": (lambda: finite_number("1", "radius"), DomainError, "radius is '1'; expected a number"),
    "a list for a number": (lambda: finite_number([1], "radius"), DomainError, r"is \[1\]; expected a number"),
    "a text for a value": (lambda: pf.Dirichlet("0"), ProblemError, "value is the text '0'.*without quotes"),
    "a text for a velocity": (lambda: pf.Initial(0.0, "0"), ProblemError, "velocity is the text '0'"),
    "a text in Robin": (lambda: pf.Robin(1.0, 1.0, "x"), ProblemError, "value is the text 'x'"),
    "a text for a source": (lambda: poisson("1"), ProblemError, "data '1'; expected numbers or a function. Write it"),
    "more values than points": (lambda: measured([0.2, 0.4], [1, 2, 3]), ProblemError, "3 values at 2 points"),
    "a flux with all components": (lambda: plates(lambda u, x: pf.grad(u)(x)), ProblemError, "2 entries.*expected 1"),
    "an operator without t": (
        lambda: space_time(lambda u, x: pf.laplacian(u)(x)),
        ProblemError,
        r"The operator does not take the time. Add t: lambda u, x, t: …, with u\(x, t\)",
    ),
    "an initial value without t": (
        lambda: space_time(initial=lambda x: x[0]),
        ProblemError,
        r"'initial' does not take the time. Add t: lambda x, t: … \(",
    ),
    "features of the space": (
        lambda: space_time(features=pf.Chebyshev(LINE, 20)),
        FeaturesError,
        r"pf.march\(problem, features\)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_what_to_write(name):
    call, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        call()


def test_an_error_of_types_inside_a_call_is_not_taken_for_one_of_its_arguments():
    @explained
    def added(one, other):
        return one + other

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        added(1, None)
    assert not isinstance(caught.value, ArgumentError)
    assert added(1, other=2) == 3
