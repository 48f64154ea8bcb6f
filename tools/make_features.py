"""Make the trained features that come with the package: ``python tools/make_features.py``, about two minutes.

A network of 500 features on [-1, 1]^d is trained by variable projection for 20 random solutions of Poisson's equation,
sums of five Gaussians, then rounded to half precision so that its file takes about one megabyte (the rounded weights
are the features; nothing is lost when they are loaded).

It runs on one thread, so that it gives the same bits however many cores there are and whatever else they do.
"""

import os
import sys
from pathlib import Path

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"  # before JAX starts

import jax
import jax.numpy as jnp
import numpy as np
import optax

import pdofm as pf

DATA = Path(pf.__file__).parent / "data"
SIZE, STEPS, SOLUTIONS, GAUSSIANS = 500, 60, 20, 5


def family(dim: int):
    """Random solutions: half of them wide and central, half narrow and anywhere."""
    rng = np.random.default_rng(7)
    narrow = (np.arange(SOLUTIONS) % 2).astype(float)[:, None, None]
    shape = (SOLUTIONS, GAUSSIANS, dim)
    width = jnp.asarray(rng.uniform(0.2, 1.0, shape) * (1 - narrow / 2) * (dim / 2))
    centre = jnp.asarray(rng.uniform(-0.5, 0.5, shape) * (1 + narrow))
    weight = jnp.asarray(rng.standard_normal(shape[:2]))

    def solutions(x: jax.Array) -> jax.Array:
        scaled = (x[None, None, :] - centre) / width
        return jnp.sum(weight * jnp.exp(-jnp.sum(scaled**2, axis=2) / 2), axis=1)

    return solutions


def half(features: pf.Features) -> pf.Features:
    """Weights rounded to half precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf).astype(np.float16).astype(np.float64)), features)


def make(dim: int) -> pf.Features:
    """Train features for Poisson's equation in `dim` dimensions."""
    cube = pf.Box([-1] * dim, [1] * dim)
    problem = pf.Problem(
        cube,
        operator=lambda u, x: -pf.laplacian(u)(x),
        source=1.0,
        conditions=[pf.Dirichlet(0.0)],
        name=f"poisson-{dim}d",
    )
    start = pf.NetworkFeatures(cube, SIZE, key=0).rescaled(1.3)
    trained = pf.pretrain(
        *(problem, start),
        physics=pf.losses.Projected(family(dim)),
        orthogonality=0.0,
        precision="float64",
        steps=STEPS,
        tol=0.0,
        points=4 * SIZE,
        boundary_points=SIZE,
        optimiser=optax.adam(optax.cosine_decay_schedule(3e-4, STEPS)),
    )
    first, last = (-trained.history["loss"][i] for i in (0, -1))
    print(f"poisson-{dim}d: digits of the residual {first:.2f} -> {last:.2f}")
    return half(trained.features)


if __name__ == "__main__":
    for dim in (2, 3):
        pf.save((Path(sys.argv[1]) if len(sys.argv) > 1 else DATA) / f"poisson-{dim}d.safetensors", make(dim))
