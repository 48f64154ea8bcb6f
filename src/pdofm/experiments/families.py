"""Families that are learned once: how many functions they need, what a new member costs, and how far it is off.

Each family is reduced from random members and tested with 1000 others, of which 200 are also solved in full.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

import pdofm as pf
from pdofm.experiments.case import OURS, Case, Measured
from pdofm.experiments.methods import quiet

SQUARE = pf.Box([0, 0], [1, 1])

TESTS, SOLVED, POINTS = 1000, 200, 500
"""Number of new members, of those that are also solved in full, and of points at which these are compared."""

BLOCKS = 3
"""Blocks along each side of the thermal block."""


@dataclass(frozen=True, eq=False)
class Example:
    """A family, how its parameters are drawn, and how it is reduced.

    Attributes:
        draw: parameters from numbers in the unit cube, (k, p) to (k, p).
        parameters: their number p.
        members: how many members the family is learned from.
        tol: the relative error that is asked for.
    """

    make: Callable[[Any], pf.Problem]
    features: Callable[[], Any]
    draw: Callable[[np.ndarray], np.ndarray]
    parameters: int
    members: int
    tol: float


def cases() -> Iterator[Case]:
    """Every family."""
    for name in EXAMPLES:
        yield Case("families", name, "reduced family", OURS, partial(_run, name), seeds=1)


def _run(name: str, seed: int) -> Measured:
    example = EXAMPLES[name]
    rng = np.random.default_rng(seed)
    # The ends of all parameters belong to what is learned.
    ends = np.array([[0.0], [1.0]]) * np.ones(example.parameters)
    mus = example.draw(np.concatenate([rng.uniform(size=(example.members, example.parameters)), ends]))
    new = example.draw(rng.uniform(size=(TESTS, example.parameters)))
    family = pf.Family(example.make, example.features(), tol=example.tol)
    with quiet():
        family(new[0])  # compiles
        start = time.perf_counter()
        small = family.reduce(mus, tol=example.tol, progress=False)
        offline = time.perf_counter() - start
        start = time.perf_counter()
        answers = [small(mu) for mu in new]
        online = (time.perf_counter() - start) / TESTS
        points = family(new[0]).problem.domain.sample(POINTS)
        errors, full = np.zeros(SOLVED), np.zeros(SOLVED)
        for i, mu in enumerate(new[:SOLVED]):
            start = time.perf_counter()
            truth = family(mu)
            full[i] = time.perf_counter() - start
            values = truth(points)
            errors[i] = np.linalg.norm(answers[i](points) - values) / np.linalg.norm(values)
    estimates = np.array([answer.error_estimate for answer in answers])
    known = np.array([answer.verdict.status is not pf.Status.UNCONFIRMED for answer in answers])
    metrics = {
        "functions": float(small.size),
        "members learned from": float(len(mus)),
        "offline seconds": offline,
        "online microseconds": 1e6 * online,
        "hot full solve, milliseconds": 1e3 * float(np.median(full)),
        "full solve over online": float(np.median(full)) / online,
        "median error": float(np.median(errors)),
        "largest error": float(errors.max()),
        "largest error where the estimate is known": float(errors[known[:SOLVED]].max()),
        "largest estimate where it is known": float(estimates[known].max()),
        "smallest estimate over error, where above 1e-10": _smallest(
            estimates[:SOLVED][known[:SOLVED]], errors[known[:SOLVED]]
        ),
        "members whose estimate is not known": float(np.count_nonzero(~known)),
    }
    return Measured(metrics, {"errors": errors.tolist(), "estimates": estimates.tolist(), "known": known.tolist()})


def _smallest(estimates: np.ndarray, errors: np.ndarray) -> float:
    counted = errors > 1e-10
    return float(np.min(estimates[counted] / errors[counted])) if counted.any() else float("inf")


def _smooth_block(mu: Any) -> pf.Problem:
    """-∇·(k ∇u) = 1 with nine conductivities in [0.1, 10], which change smoothly from block to block."""

    def shares(t: Array) -> Array:
        """How much a place belongs to each third."""
        steps = (1 + jnp.tanh((t - jnp.array([1 / 3, 2 / 3])) / 0.15)) / 2
        return jnp.stack([1 - steps[0], steps[0] * (1 - steps[1]), steps[0] * steps[1]])

    def conductivity(y: Array) -> Array:
        return jnp.sum(mu.reshape(BLOCKS, BLOCKS) * jnp.outer(shares(y[0]), shares(y[1])))

    def operator(u: Any, x: Array) -> Array:
        return -pf.div(lambda y: conductivity(y) * pf.grad(u)(y))(x)

    return pf.Problem(SQUARE, operator, 1.0, [pf.Dirichlet(0.0)], name="smooth thermal block")


_BOXES = {
    f"b{i}{j}": pf.Box([i / BLOCKS, j / BLOCKS], [(i + 1) / BLOCKS, (j + 1) / BLOCKS])
    for i in range(BLOCKS)
    for j in range(BLOCKS)
}
_REGIONS = pf.Regions(**_BOXES)


def _thermal_block(mu: Any) -> pf.Problem:
    """-∇·(k ∇u) = 1 with a conductivity in [0.1, 10] in each of nine blocks."""

    def conduction(k: Array) -> Callable[..., Array]:
        return lambda u, x: -k * pf.laplacian(u)(x)

    def flux(k: Array) -> Callable[..., Array]:
        return lambda u, x, normal: k * pf.normal_derivative(u, normal)(x)

    of_block = dict(zip(_BOXES, mu, strict=True))
    operators = {name: conduction(k) for name, k in of_block.items()}
    interface = pf.Interface(flux={name: flux(k) for name, k in of_block.items()})
    return pf.Problem(_REGIONS, operators, 1.0, [pf.Dirichlet(0.0), interface], name="thermal block")


def _with_corners() -> dict[str, pf.Features]:
    """Polynomials in each block, and functions that are singular at its corners: where blocks meet, the exponents
    depend on the conductivities."""
    return {
        name: pf.Concatenate(
            pf.Chebyshev(box, 55), pf.CornerFunctions(box, convex=True, degree=0, first=0.2, highest=1)
        )
        for name, box in _BOXES.items()
    }


def _helmholtz(mu: Any) -> pf.Problem:
    """-Δu - k² u = f with k in [1, 20]: the square (-1, 1)² has 56 eigenvalues there."""
    return pf.Problem(
        pf.Box([-1, -1], [1, 1]),
        operator=lambda u, x: -pf.laplacian(u)(x) - mu[0] ** 2 * u(x),
        source=lambda x: jnp.exp(-((x[0] - 0.2) ** 2 + (x[1] + 0.3) ** 2) / 0.18),
        conditions=[pf.Dirichlet(0.0)],
        name="helmholtz",
    )


def _advection(mu: Any) -> pf.Problem:
    """-Δu + P (cos θ, sin θ)·∇u = 1 with θ in [0, 2π] and a Péclet number P in [1, 30]."""
    return pf.Problem(
        SQUARE,
        operator=lambda u, x: (
            -pf.laplacian(u)(x) + mu[1] * (jnp.stack([jnp.cos(mu[0]), jnp.sin(mu[0])]) @ pf.grad(u)(x))
        ),
        source=1.0,
        conditions=[pf.Dirichlet(0.0)],
        name="advection-diffusion",
    )


_FLOW = pf.Box([-0.5, -0.5], [1.0, 0.5])


def _kovasznay(mu: Any) -> pf.Problem:
    """Kovasznay's flow with a Reynolds number in [20, 100]."""
    decay = mu[0] / 2 - jnp.sqrt(mu[0] ** 2 / 4 + 4 * jnp.pi**2)

    def velocity(x: Array) -> Array:
        e, y = jnp.exp(decay * x[0]), 2 * jnp.pi * x[1]
        return jnp.stack([1 - e * jnp.cos(y), decay / (2 * jnp.pi) * e * jnp.sin(y)])

    def operator(u: Any, x: Array) -> tuple[Array, Array]:
        momentum = pf.grad(u.v)(x) @ u.v(x) + pf.grad(u.p)(x) - pf.laplacian(u.v)(x) / mu[0]
        return momentum, pf.div(u.v)(x)

    conditions = [pf.Dirichlet(velocity, unknown="v"), pf.Dirichlet(0.0, on=[[0.0, 0.0]], unknown="p")]
    return pf.Problem(_FLOW, operator, 0.0, conditions, unknowns={"v": 2, "p": 1}, name="kovasznay family")


def _logarithmic(lower: float, upper: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda numbers: lower * (upper / lower) ** numbers


def _uniform(lower: list[float], upper: list[float]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda numbers: np.array(lower) + (np.array(upper) - np.array(lower)) * numbers


EXAMPLES = {
    "smooth thermal block": Example(
        _smooth_block, lambda: pf.Chebyshev(SQUARE, 496), _logarithmic(0.1, 10.0), BLOCKS**2, 250, 1e-3
    ),
    "thermal block": Example(
        _thermal_block,
        _with_corners,
        *(_logarithmic(0.1, 10.0), BLOCKS**2, 150, 1e-2),
    ),
    "Helmholtz": Example(
        _helmholtz, lambda: pf.Chebyshev(pf.Box([-1, -1], [1, 1]), 528), _uniform([1.0], [20.0]), 1, 150, 1e-6
    ),
    "advection-diffusion": Example(
        _advection, lambda: pf.Chebyshev(SQUARE, 496), _uniform([0.0, 1.0], [2 * np.pi, 30.0]), 2, 400, 1e-6
    ),
    "Kovasznay": Example(_kovasznay, lambda: pf.Chebyshev(_FLOW, 190), _uniform([20.0], [100.0]), 1, 40, 1e-6),
}
"""The families, by name."""
