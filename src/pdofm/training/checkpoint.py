"""Checkpoints of a training run: written so that a killed writer leaves the old one, read without running code."""

import hashlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pdofm import archives
from pdofm.discrete.collocate import collocate
from pdofm.discrete.leftsides import entries
from pdofm.discrete.right import right_values
from pdofm.errors import FeaturesError
from pdofm.features import Features
from pdofm.problem.problem import Problem
from pdofm.training.loop import State


def write(path: Path, state: State, history: dict[str, list[float]], settings: dict[str, Any]) -> None:
    """Write a checkpoint; a killed writer leaves the old one."""
    arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
    archives.write(path, archives.packed({"settings": settings, "history": history}, arrays))


def fingerprint(problem: Problem, features: Features) -> str:
    """What the features are at the start, and what the problem asks at a few points."""
    digest = hashlib.sha256(problem.name.encode())
    for leaf in jax.tree.leaves(features):
        digest.update(np.asarray(leaf).tobytes())
    for block in collocate(problem, 16, 16):
        digest.update(block.term.name.encode())
        digest.update(right_values(problem.layout, block, entries(problem.layout, block)).tobytes())
    return digest.hexdigest()[:16]


def resume(path: Path, state: State, settings: dict[str, Any]) -> tuple[State, dict[str, list[float]]]:
    """The state and history of a checkpoint; the given ones if there is none yet."""
    if not path.exists():
        return state, {}
    leaves, structure = jax.tree.flatten(state)
    try:
        with path.open("rb") as file:
            header, arrays = archives.unpacked(file)
        stored = [arrays[f"leaf{i}"] for i in range(len(leaves))]
        history = {str(name): [float(value) for value in values] for name, values in header["history"].items()}
        own = header["settings"]
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise FeaturesError(
            f"{str(path)!r} is not a checkpoint of pretraining ({error}). Delete it, or name another."
        ) from error
    pairs = list(zip(leaves, stored, strict=True))
    if own != settings or any(a.shape != b.shape for a, b in pairs):
        raise FeaturesError(
            f"The checkpoint {str(path)!r} belongs to another run (its settings are {own}, these are {settings}). "
            "Delete it, or name another. To train longer, go on from the features of the finished run."
        )
    if any(b.dtype != a.dtype or (b.dtype.kind == "f" and not np.isfinite(b).all()) for a, b in pairs):
        raise FeaturesError(
            f"The checkpoint {str(path)!r} has arrays of another type, or with values that are not finite. Delete it, "
            "or name another."
        )
    return jax.tree.unflatten(structure, [jnp.asarray(new, old.dtype) for old, new in pairs]), history
