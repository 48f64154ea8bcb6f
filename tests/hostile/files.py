"""Whole files of every kind that the package reads, and what is done with an object that was read."""

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from test_features import FEATURES

import pdofm as pf

BOX = pf.Box([0, -1], [2, 1])
CODE = ("functions", "concatenate-functions")


def solutions() -> dict[str, Any]:
    """Solutions and a reduced family, small ones."""
    square = pf.Box([0, 0], [1, 1])
    poisson = lambda f: pf.Problem(square, lambda u, x: -pf.laplacian(u)(x), f, [pf.Dirichlet(0.0)], name="poisson")
    system = pf.Problem(
        pf.Disk([0, 0], 1.0) - pf.Disk([0, 0], 0.3),
        lambda u, x: (-pf.laplacian(u.a)(x), u.b(x)),
        lambda x: jnp.ones(2),
        [pf.Dirichlet(0.0)],
        unknowns={"a": 1, "b": 1},
    )
    family = pf.Family(lambda mu: poisson(lambda x: jnp.exp(mu[0] * x[0])), tol=1e-3)
    with warnings.catch_warnings(action="ignore"):
        return {
            "solution": pf.solve(poisson(1.0), pf.Chebyshev(square, 40)),
            "system": pf.solve(system, pf.Chebyshev(system.domain, 40)),
            "boxes": pf.solve(poisson(1.0), pf.BoxPolynomials.grid(square, 2, 4)),
            "reduced": family.reduce(np.linspace(0, 1, 8)[:, None], tol=1e-2),
        }


@cache
def contents(folder: Path) -> dict[str, bytes]:
    """The files by name."""
    found = {}
    made = {name: FEATURES[name](BOX, 12, 7) for name in FEATURES if name not in CODE}
    for name, what in (made | solutions()).items():
        path = folder / "whole"
        pf.save(path, what)
        found[name] = path.read_bytes()
    return found


def use(found: Any) -> None:
    """What a user does with an object from a file: it must work, or raise an error of pdofm."""
    repr(found)
    if isinstance(found, pf.Features):
        lower, upper = np.asarray(found.lower), np.asarray(found.upper)
        points = lower + np.linspace(0.1, 0.9, 4)[:, None] * (upper - lower)
        values = found.jets(points, [(0,) * found.dim])
        assert values.shape == (1, 4, found.size)
    elif isinstance(found, pf.Solution):
        points = found.problem.domain.sample(4)
        assert len(np.asarray(found(points))) == 4
