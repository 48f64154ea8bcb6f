"""Patches that are eliminated by tasks of an executor: each has the patches of a few branches of the tree of boxes."""

from collections.abc import Sequence
from typing import Any

from pdofm._types import Coefficients
from pdofm.discrete.boxed import cover_of
from pdofm.discrete.local import Iterate, LocalProblem
from pdofm.discrete.localterm import LocalTerm
from pdofm.features import InBoxes
from pdofm.numerics.blocks import BlockQR
from pdofm.numerics.executor import Executor, Share
from pdofm.numerics.parts import Part, SharedQR
from pdofm.problem.problem import Problem

PATCHES = 32
"""Patches of a part, at least."""

MOST_PARTS = 64
"""Parts, at most: what is left of all of them is eliminated in one process."""


def eliminated(
    executor: Executor | None,
    local: LocalProblem,
    terms: Sequence[LocalTerm],
    iterate: Iterate | None,
    probe: Coefficients | None,
    *,
    keep: bool = False,
) -> BlockQR:
    """Eliminate all patches, linearised at `iterate`: here, or in parts by an executor. The number of parts follows
    from that of the patches, or from `executor.shares`. They `keep` what other right sides need."""
    if executor is None:
        return local.system(terms, keep=keep, probe=probe)
    patches, (_, sizes) = len(local.patches), local.some(terms, probe)
    count = min(executor.shares or max(1, min(patches // PATCHES, MOST_PARTS)), patches)
    what = f"The problem {local.problem.name!r} with its boxes"
    stated = executor.send((local.problem, local.cover.features), what)
    told = executor.send((iterate, probe), "The last iterate")
    parts = [
        executor.submit(part_of, stated, told, keep, Share(k, count), name="pdofm-eliminate", place=k / count)
        for k in range(count)
    ]
    return SharedQR(executor, parts, sizes, keep=keep)


def part_of(stated: tuple[Problem, InBoxes], told: tuple[Any, Any], keep: bool, share: Share) -> Part:
    """Eliminate the patches of a share."""
    (problem, features), (iterate, probe) = stated, told
    local = LocalProblem(problem, cover_of(problem.domain, features))
    terms = [local.linearised(*each, iterate) for each in local.places()]
    patches = share.of(len(local.patches))
    leaves, sizes = local.some(terms, probe, range(patches.start, patches.stop))
    return Part(leaves, sizes, keep=keep)
