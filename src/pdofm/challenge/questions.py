"""Rows that ask for numbers: eigenvalues, and coefficients from data."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

import pdofm as pf
from pdofm.challenge.row import Answer, Published, Row, answered, estimated, largest_relative

_GROUP = "eigenvalues"

LSHAPE = (9.63972384402193, 15.1972519264543, 2 * np.pi**2, 29.5214811141449, 31.9126359571377)
"""The first five eigenvalues of the L-shaped membrane (``tools/references/membrane.py``)."""

UNSTABLE = 0.23752649 + 0.00373967j
"""The unstable eigenvalue of plane Poiseuille flow at Re = 10000, α = 1 (Orszag 1971)."""

PRINTED = 1e-8
"""The last digit that is printed of it."""

FIELD_NOISE, TWO_SIDED = 0.1, 1.96
"""The noise of the data from which a coefficient is found, whose maximum is 1, and the half width of a band with the
probability 0.95 in standard deviations."""

NUMERICAL = 0.05
"""The part of the tolerance for that coefficient that its numerical error may use; the noise needs the rest."""

VISCOSITY = 1 / 40
"""The kinematic viscosity of Kovasznay's flow in the zoo."""


def _membrane(tol: float) -> Answer:
    domain = pf.Box([-1, -1], [1, 1]) - pf.Box([0, 0], [1, 1])
    drum = pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet(0.0)], name="lshape-membrane")
    return _answer(pf.eigs(drum, 5, tol=tol), LSHAPE)


def _orr_sommerfeld(tol: float) -> Answer:
    reynolds = 10_000

    def curl(u):
        return lambda x: pf.partial(u, 0, 0)(x) - u(x)

    def operator(u, x):
        return (1 - x[0] ** 2) * curl(u)(x) + 2 * u(x) + 1j / reynolds * curl(curl(u))(x)

    clamped = [pf.Dirichlet(0.0), pf.Neumann(0.0)]
    channel = pf.Problem(pf.Interval(-1, 1), operator, conditions=clamped, dtype=complex, name="orr-sommerfeld")
    near = UNSTABLE + 0.003
    modes = pf.eigs(channel, 1, near=near, tol=tol, mass=lambda u, x: curl(u)(x))
    return _answer(modes, (UNSTABLE,), reference=PRINTED / abs(UNSTABLE))


def _oscillator(tol: float) -> Answer:
    def operator(u, x):
        return -pf.laplacian(u)(x) + x[0] ** 2 * u(x)

    well = pf.Problem(pf.Interval(-9, 9), operator, conditions=[pf.Dirichlet(0.0)], name="oscillator")
    return _answer(pf.eigs(well, 6, tol=tol), 2.0 * np.arange(6) + 1)


def _viscosity(tol: float) -> Answer:
    flow = pf.zoo.get("kovasznay")

    def operator(u, x):
        momentum = -u.nu * pf.laplacian(u.v)(x) + pf.grad(u.v)(x) @ u.v(x) + pf.grad(u.p)(x)
        return momentum, pf.div(u.v)(x)

    points = flow.domain.sample(20, key=0)
    measured = flow.exact_values(points)[:, :2]
    problem = flow.replace(
        operator=operator,
        unknowns={"v": 2, "p": 1, "nu": pf.Number(1.0, positive=True)},
        conditions=[*flow.stated, pf.Data(points, measured, unknown="v")],
        exact=None,
        frozen_operator=None,
        name="kovasznay-viscosity",
    )
    solution = pf.solve(problem, tol=tol)
    return answered(solution, largest_relative(solution.numbers["nu"], VISCOSITY))


def _field(tol: float) -> Answer:
    """The set-up of `PoissonInv` in the code of PINNacle. The estimate is that of the band: noise is the limit."""
    square, rng = pf.Box([0, 0], [1, 1]), np.random.default_rng(0)

    def truth(x):
        return 1 / (1 + x[0] ** 2 + x[1] ** 2 + (x[0] - 1) ** 2 + (x[1] - 1) ** 2)

    def flow(a):
        return lambda u, x: -pf.div(lambda y: a(y) * pf.grad(u)(y))(x)

    def potential(x):
        return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])

    axis = np.linspace(0, 1, 50)
    places = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    measured = jax.vmap(potential)(places) + FIELD_NOISE * rng.standard_normal(len(places))
    rim, _ = square.boundary.sample(200)
    problem = pf.Problem(
        square,
        operator=lambda u, x: flow(u.a)(u.u, x),
        source=lambda x: flow(truth)(potential, x),
        unknowns={"u": 1, "a": pf.Field(0.5, positive=True)},
        conditions=[
            pf.Dirichlet(0.0),
            pf.Data(places, measured, noise=FIELD_NOISE, unknown="u"),
            pf.Data(rim, jax.vmap(truth)(rim), noise=1e-4, of=lambda u, x: u.a(x), name="coefficient on the boundary"),
        ],
        name="field-from-data",
    )
    solution, points = pf.solve(problem, tol=NUMERICAL * tol), square.sample(4000)
    exact = np.asarray(jax.vmap(truth)(points))
    size = np.linalg.norm(exact)
    found = answered(solution, float(np.linalg.norm(solution.a(points) - exact) / size))
    return estimated(found, float(np.linalg.norm(solution.a.band(points)) / TWO_SIDED / size), tol)


def _answer(modes: pf.Modes, truth: ArrayLike, reference: float = 1e-15) -> Answer:
    """The largest error of eigenvalues, in the order of their size."""
    found = np.sort_complex(modes.values) if np.iscomplexobj(modes.values) else np.sort(modes.values)
    first, estimate = modes[0], float(np.max(modes.error_estimates))
    error = largest_relative(found, np.asarray(truth))
    return Answer(error, estimate, modes.converged, first.space, first.stats.features, first, reference)


ROWS: tuple[Row, ...] = (
    Row(
        "lshape-membrane",
        _GROUP,
        "The first five eigenvalues of -Δ on the L-shaped domain, u = 0 on its boundary.",
        _membrane,
        1e-12,
        Published(1e-13, "method of particular solutions, Trefethen and Betcke (2006): the first to 14 digits"),
        measure="largest relative error of five eigenvalues",
    ),
    Row(
        "orr-sommerfeld",
        _GROUP,
        "The unstable eigenvalue of plane Poiseuille flow at Re = 10000, α = 1.",
        _orr_sommerfeld,
        1e-10,
        Published(2e-8, "Orszag (1971), eight digits"),
        measure="relative error of the eigenvalue",
        quick=True,
    ),
    Row(
        "oscillator",
        _GROUP,
        "The first six eigenvalues of -u'' + x² u on (-9, 9): odd numbers.",
        _oscillator,
        1e-12,
        measure="largest relative error of six eigenvalues",
        quick=True,
    ),
    Row(
        "kovasznay-viscosity",
        "numbers from data",
        "The viscosity of Kovasznay's flow at Reynolds number 40, from its velocities at 20 points.",
        _viscosity,
        1e-8,
        Published(4.67e-2, "Raissi, Perdikaris and Karniadakis (2019): viscosity of a wake, 5000 points"),
        measure="relative error of the viscosity",
    ),
    Row(
        "field-from-data",
        "numbers from data",
        "The coefficient a(x) of -div(a grad u) = f on the square, from 2500 values of u with 10 % noise and from a on "
        "the boundary (PINNacle, Hao et al. 2023).",
        _field,
        2e-2,
        Published(2e-2, "the best of ten PINN variants in Hao et al., PINNacle (2023, arXiv 2306.08827), row PInv"),
        measure="relative L2 of the coefficient",
    ),
)
