"""The tables of sections 3.1 to 3.5: five methods on the paper's problems."""

from collections.abc import Iterator
from functools import partial

import jax.numpy as jnp
import numpy as np

import pdofm as pf
from pdofm.experiments.case import OURS, PAPER, Case, Measured
from pdofm.experiments.methods import METHODS, Setup, quiet


def _zoo(name: str):
    return partial(pf.zoo.get, name)


def _wave(kind: str) -> pf.Problem:
    """The wave problem with the boundary conditions as printed (values only), with slopes, or with Dirichlet data."""
    wave = pf.zoo.get("wave-periodic")
    if kind == "slope":
        return wave
    sides = pf.Periodic(axis=0, derivatives=0) if kind == "printed" else pf.Dirichlet(0.0)
    return wave.replace(
        conditions=[sides, pf.Initial(lambda x, t: jnp.sin(4 * jnp.pi * x[0]), velocity=0.0)], name=f"wave-{kind}"
    )


SETUPS: dict[tuple[str, str], Setup] = {
    ("helmholtz", "interval"): Setup(_zoo("helmholtz-1d"), 100, 1.0, 1000, 1000, 2, 2),
    ("poisson-2d", "square"): Setup(_zoo("poisson-square"), 500, 0.01, 300, 1024, 128, 4),
    ("poisson-2d", "L-shape"): Setup(_zoo("poisson-lshape"), 500, 0.01, 300, 1024, 128, 3),
    ("poisson-2d", "annulus"): Setup(_zoo("poisson-annulus"), 500, 0.01, 300, 1024, 128, 4),
    ("poisson-3d", "cube"): Setup(_zoo("poisson-cube"), 600, 0.01, 100, 2048, 600, 8),
    ("wave", "printed"): Setup(partial(_wave, "printed"), 500, 0.1, 100, 1024, 256, 4),
    ("wave", "slope"): Setup(partial(_wave, "slope"), 500, 0.1, 100, 1024, 256, 4),
    ("wave", "dirichlet"): Setup(partial(_wave, "dirichlet"), 500, 0.1, 100, 1024, 256, 4),
    ("navier-stokes", "kovasznay"): Setup(_zoo("kovasznay"), 300, 0.01, 500, 1000, 200, 4, picard_steps=20),
}

PUBLISHED: dict[tuple[str, str], tuple[float, float, float, float]] = {
    ("helmholtz", "interval"): (3.98e-13, 1.38e-9, 9.64e-9, 1.43e-3),
    ("poisson-2d", "square"): (2.81e-9, 9.62e-9, 1.73e-5, 1.43e-7),
    ("poisson-2d", "L-shape"): (6.48e-11, 5.82e-9, 2.48e-6, 5.16e-9),
    ("poisson-2d", "annulus"): (1.29e-11, 4.13e-11, 4.50e-8, 2.23e-9),
    ("poisson-3d", "cube"): (1.64e-5, 1.07e-4, 1.38e-1, 2.03e-4),
    ("wave", "printed"): (1.99e-6, 4.77e-6, 1.62e-2, 4.41e-3),
}
"""Relative L2 errors of PD-OFM, PD-FM, RFM and TransNet. For Navier-Stokes the paper has figures only."""

RESOLUTION = 81
"""Points along the longest side of the error maps that are kept for the figures."""


def cases() -> Iterator[Case]:
    """All cells: every problem, method and settings."""
    for (experiment, case), setup in SETUPS.items():
        for settings in (PAPER, OURS):
            for i, method in enumerate(METHODS):
                published = PUBLISHED.get((experiment, case), ())
                yield Case(
                    experiment,
                    case,
                    method,
                    settings,
                    partial(_run, setup, method, settings),
                    {"relative L2": published[i]} if i < len(published) else {},
                    seeds=None if method in ("PD-OFM", "PD-FM") and case not in ("printed", "dirichlet") else 3,
                    quick=experiment == "helmholtz",
                )


def variational_cases() -> Iterator[Case]:
    """Appendix A: the variational loss instead of the residual, on three domains."""
    for case in ("square", "L-shape", "annulus"):
        setup = SETUPS["poisson-2d", case]
        yield Case("variational", case, "PD-OFM", PAPER, partial(_run_variational, setup), seeds=3)


def _run_variational(setup: Setup, seed: int) -> Measured:
    problem = setup.problem()

    def energy(u, x):
        return jnp.sum(pf.grad(u)(x) ** 2) / 2 - 2 * jnp.pi**2 * jnp.prod(jnp.sin(jnp.pi * x)) * u(x)

    loss = pf.losses.Variational(energy)
    with quiet():
        # An energy has no smallest value that is known beforehand: no early stop.
        trained = setup.trained(problem, "PD-OFM", PAPER, seed, physics=loss, tolerance=0.0)
        solution = pf.solve(
            problem, trained.features, points=setup.points, boundary_points=setup.boundary_points, key=seed
        )
    return _measured(solution, seed)


def _run(setup: Setup, method: str, settings: str, seed: int) -> Measured:
    return _measured(setup.solution(method, settings, seed), seed)


def _measured(solution: pf.Solution, seed: int) -> Measured:
    errors = solution.errors()
    if len(errors.components) == 1:
        metrics = {"relative L2": errors.relative_l2, "maximum error": errors.max}
    else:
        metrics = {f"relative L2 of {name}": part.relative_l2 for name, part in errors.components.items()}
    metrics["estimated error"] = solution.error_estimate
    return Measured(metrics, error_map(solution) if seed == 0 else {})


def error_map(solution: pf.Solution) -> dict[str, list]:
    """Absolute errors of all components, at the points of `section_of` the domain."""
    points = section_of(solution.problem.domain)
    found = np.reshape(solution(points), (len(points), -1))
    return {"errors": np.abs(found - solution.problem.exact_values(points)).T.tolist()}


def section_of(domain: pf.Domain) -> np.ndarray:
    """The points of an error map: the interval, or the plane domain, or its middle section."""
    if domain.dim == 1:
        return np.linspace(domain.lower, domain.upper, 401)
    return pf.plot.Section(domain, resolution=RESOLUTION).points
