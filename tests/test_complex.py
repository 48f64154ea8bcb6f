"""Complex values: perfectly matched layers, and the parts of complex solutions that are drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.errors import ProblemError, SolveError
from pdofm.output.parts import views


@pytest.fixture(autouse=True)
def complex_and_real_numbers_mix():
    """Users multiply real points by complex numbers, as the defaults of JAX allow."""
    with jax.numpy_dtype_promotion("standard"):
        yield


def box_coordinates(layer, x):
    """x + i S(x) around the box [-1, 1]^d, from the definition."""
    outside = jnp.maximum(x - 1.0, 0.0) - jnp.maximum(-1.0 - x, 0.0)
    return x + 1j * layer.depth * (outside / layer.width) ** 3


def round_coordinates(layer, x):
    """The same along the radius around the unit disk or ball."""
    r = jnp.sqrt(x @ x)
    return x * (r + 1j * layer.depth * (jnp.maximum(r - 1.0, 0.0) / layer.width) ** 3) / r


@pytest.mark.parametrize(
    ("inside", "coordinates", "x"),
    [
        (pf.Box([-1, -1], [1, 1]), box_coordinates, [1.2, -1.3]),
        (pf.Box([-1, -1], [1, 1]), box_coordinates, [0.2, 1.4]),
        (pf.Disk(), round_coordinates, [0.9, -0.8]),
        (pf.Ball(), round_coordinates, [0.9, -0.4, 0.7]),
    ],
)
def test_waves_in_complex_coordinates_solve_the_equation_of_the_layer(inside, coordinates, x):
    """u = exp(i a·x̃) has the gradient i a u and the Laplacian -a·a u in the complex coordinates x̃."""
    layer, x = pf.PML(inside, 0.5, 3.0), jnp.array(x)
    a = jnp.array([1.0, 2.0, 0.5])[: len(x)]

    def wave(y):
        return jnp.exp(1j * (coordinates(layer, y) @ a))

    np.testing.assert_allclose(layer.grad(wave)(x), 1j * a * wave(x), rtol=1e-12)
    np.testing.assert_allclose(layer.laplacian(wave)(x), -(a @ a) * wave(x), rtol=1e-12)


def test_inside_of_a_layer_nothing_changes():
    layer = pf.PML(pf.Disk(), 0.5, 3.0)

    def u(x):
        return x[0] ** 3 * x[1]

    for x in (jnp.array([0.0, 0.0]), jnp.array([0.3, 0.4])):
        np.testing.assert_allclose(layer.laplacian(u)(x), pf.laplacian(u)(x), atol=1e-14)
    assert repr(layer.domain) == repr(pf.Disk([0, 0], 1.5))


@pytest.mark.parametrize(("reflection", "error"), [(1e-4, 3e-4), (1e-10, 1e-8)])
def test_a_wave_leaves_as_well_as_the_layer_promises(reflection, error):
    k, width = 10.0, 0.5
    layer = pf.PML(pf.Interval(-1, 1), width, k, reflection=reflection)
    line = pf.Interval(0, 1 + width)
    ends = [pf.Dirichlet(1.0, on=line.part("x0=lower")), pf.Dirichlet(0.0, on=line.part("x0=upper"))]
    problem = pf.Problem(
        line, lambda u, x: layer.laplacian(u)(x) + k**2 * u(x), source=0.0, conditions=ends, dtype=complex
    )
    boxes = pf.BoxPolynomials.grid(line, 3, 28)  # the layer begins where one of them ends
    u, x = pf.solve(problem, boxes), np.linspace(0, 1, 40)[:, None]
    assert np.max(np.abs(u(x) - np.exp(1j * k * x[:, 0]))) < error


def test_what_no_layer_can_be_is_refused():
    with pytest.raises(ProblemError, match="surrounds a Box, an Interval, a Disk or a Ball"):
        pf.PML(pf.Annulus(), 0.5, 1.0)
    with pytest.raises(ProblemError, match="width of a PML must be positive"):
        pf.PML(pf.Disk(), 0.0, 1.0)
    with pytest.raises(ProblemError, match="number other than 0"):
        pf.PML(pf.Disk(), 1.0, 0.0)
    with pytest.raises(ProblemError, match="between 0 and 1"):
        pf.PML(pf.Disk(), 1.0, 1.0, reflection=2.0)


def test_the_parts_of_a_complex_solution_are_drawn(tmp_path):
    square = pf.Box([0, 0], [1, 1])
    problem = pf.Problem(
        square,
        operator=lambda u, x: pf.laplacian(u)(x) + 25.0 * u(x),
        conditions=[pf.Robin(-5j, 1.0)],
        exact=lambda x: jnp.exp(3j * x[0] + 4j * x[1]),
        dtype=complex,
    )
    u = pf.solve(problem, pf.Chebyshev(square, 150))
    for part in ("real", "imaginary", "modulus", "phase"):
        figure = u.plot(tmp_path / f"{part}.png", part=part, resolution=20)
        assert (tmp_path / f"{part}.png").stat().st_size > 5_000
        assert len(figure.axes) >= 2  # the part and its error
    with pytest.raises(Exception, match="part of a complex number"):
        u.plot(part="absolute")


def test_parts_are_those_of_the_complex_number():
    layout = pf.Problem(
        pf.Interval(0, 1),
        unknowns={"a": 1, "b": 1},
        operator=lambda u, x: (pf.laplacian(u.a)(x), pf.laplacian(u.b)(x)),
        conditions=[pf.Dirichlet(0.0)],
        dtype=complex,
    ).layout
    z = np.array([[1 + 2j, -3 + 0.5j], [-1j, 2.0]])
    stored = np.concatenate([z.real, z.imag], axis=1)
    for part, function in {"modulus": np.abs, "phase": np.angle, "real": np.real, "imaginary": np.imag}.items():
        found = np.stack([view.of(stored) for view in views(layout, None, part)], axis=1)
        np.testing.assert_allclose(found, function(z))
    (phase,) = views(layout, "b", "phase")
    np.testing.assert_allclose(phase.distance(np.array([3.1]), np.array([-3.1])), 2 * np.pi - 6.2)
    real = pf.Problem(pf.Interval(0, 1), lambda u, x: pf.laplacian(u)(x), 1.0, [pf.Dirichlet(0.0)]).layout
    with pytest.raises(SolveError, match="belongs to complex solutions"):
        views(real, None, "phase")


def two_media(k, wave):
    """Waves in two regions whose values and normal derivatives are continuous between them."""
    regions = pf.Regions(left=pf.Box([-1, 0], [0, 1]), right=pf.Box([0, 0], [1, 1]))
    operators = {n: lambda u, x, k=k: -pf.laplacian(u)(x) - k**2 * u(x) for n, k in k.items()}
    flux = pf.Interface(flux=lambda u, x, normal: pf.normal_derivative(u, normal)(x))
    return pf.Problem(regions, operators, 0.0, [pf.Dirichlet(), flux], dtype=complex, exact=wave)


@pytest.mark.parametrize("boxes", [False, True], ids=["dense", "boxes"])
def test_a_wave_is_reflected_and_transmitted_by_an_absorbing_medium(boxes):
    k = {"left": 3.0, "right": 5.0 + 0.5j}
    reflected = (k["left"] - k["right"]) / (k["left"] + k["right"])
    wave = {
        "left": lambda x: jnp.exp(1j * k["left"] * x[0]) + reflected * jnp.exp(-1j * k["left"] * x[0]),
        "right": lambda x: (1 + reflected) * jnp.exp(1j * k["right"] * x[0]),
    }
    problem = two_media(k, wave)
    u = solve_in_boxes(problem, 1e-8) if boxes else pf.solve(problem, tol=1e-8)
    assert u.converged
    assert u.errors().relative_l2 < 3e-8
    at = [[0.0, 0.5]]
    assert abs(u.side("left")(at) - u.side("right")(at)).max() < 1e-7
    assert u.side("right").gradient(at)[0, 0] == pytest.approx(1j * k["right"] * (1 + reflected), abs=1e-5)
