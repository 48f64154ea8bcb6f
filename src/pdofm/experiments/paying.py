"""What `pretrain` gains with its defaults: every basic problem of the zoo, in untrained and in trained features.

`pretrain` decides by what it can know, residuals and estimated errors; here the true errors are compared.
"""

from collections.abc import Iterator
from functools import partial

import pdofm as pf
from pdofm.experiments.case import OURS, Case, Measured
from pdofm.experiments.methods import pretrain, quiet

SIZES = {1: 100}
"""Number of features, by dimension."""

SIZE, SIZE_OF_SYSTEMS = 500, 200
"""The same in more dimensions, and in systems per component."""


def cases() -> Iterator[Case]:
    """Every basic problem of the zoo."""
    for name in pf.zoo.names("basic"):
        yield Case("pretrain", name, "PD-OFM", OURS, partial(_run, name))


def _run(name: str, seed: int) -> Measured:
    problem = pf.zoo.get(name)
    usual = SIZES.get(problem.domain.dim, SIZE)
    size = usual if problem.layout.components == 1 else SIZE_OF_SYSTEMS
    given = pf.NetworkFeatures(problem.domain, size, key=seed)

    def error(features: pf.Features) -> float:
        with quiet():
            return pf.solve(problem, features, key=seed).errors().relative_l2

    with quiet():
        run = pretrain(problem, given, key=seed, keep="best")
    assert run.last is not None
    untrained, trained = error(given), error(run.last)
    kept = untrained if run.kept == "given" else error(run.features)
    metrics = {
        "untrained": untrained,
        "trained": trained,
        "kept": kept,
        "untrained over kept": untrained / kept,
        "untrained over trained": untrained / trained,
        "gain that pretrain states": run.gain,
    }
    return Measured(metrics, {"kept": [run.kept]})
