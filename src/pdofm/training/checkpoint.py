"""Checkpoints of a training run: written so that a killed writer leaves the old one, read without running code."""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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
    text = np.frombuffer(json.dumps({"settings": settings, "history": history}).encode(), dtype=np.uint8)
    partial_path = path.with_name(path.name + ".part")
    with partial_path.open("wb") as file:
        np.savez(file, header=text, **arrays)  # type: ignore[arg-type]
    partial_path.replace(path)


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
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            stored = [file[f"leaf{i}"] for i in range(len(leaves))]
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise FeaturesError(
            f"{str(path)!r} is not a checkpoint of pretraining ({error}). Delete it, or name another."
        ) from error
    if header["settings"] != settings or any(a.shape != b.shape for a, b in zip(leaves, stored, strict=True)):
        raise FeaturesError(
            f"The checkpoint {str(path)!r} belongs to another run (its settings are {header['settings']}, these are "
            f"{settings}). Delete it, or name another. To train longer, go on from the features of the finished run."
        )
    arrays = [jnp.asarray(new, old.dtype) for new, old in zip(stored, leaves, strict=True)]
    return jax.tree.unflatten(structure, arrays), header["history"]
