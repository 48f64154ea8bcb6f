"""One space for many members of a family: points and derivatives of the features that all of them share."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pdofm._types import Key
from pdofm.calculus.terms import Term
from pdofm.discrete.collocate import Block
from pdofm.discrete.discretisation import Discretisation, discretise
from pdofm.discrete.memory import Memory
from pdofm.discrete.right import RightSides
from pdofm.features import Features
from pdofm.problem.interface import layout_of
from pdofm.problem.parametric import Parameters, Parametric


@dataclass(eq=False)
class Space:
    """Features, and collocation points that do not depend on the parameters.

    Attributes:
        blocks, held_out: the terms with parametric left sides; the normals lack the parameters.
        memory: the derivatives of the features at all points.
        last: the coefficients of the last member of a nonlinear problem.
    """

    parametric: Parametric
    discretisation: Discretisation
    memory: Memory = field(default_factory=lambda: Memory().iterating())
    last: Any = None

    @staticmethod
    def of(parametric: Parametric, features: Any, sampling: str, key: Key) -> "Space":
        """A space with the usual numbers of points."""
        found = discretise("Family", parametric.example, features, None, None, sampling, key)
        return Space(parametric, found.with_held_out())

    @property
    def features(self) -> Features:
        return self.discretisation.features

    def at(self, mu: Parameters) -> Discretisation:
        """The discretisation of the member with parameters `mu`."""
        own = self.discretisation
        known = Memory(RightSides(), self.memory.jets, {}, self.memory.bytes)
        # What is learned of the derivatives of the features is kept for the next member.
        self.memory = known
        return replace(
            own,
            problem=self.parametric.problem(
                mu.reshape(self.parametric.shape) if self.parametric.shape else float(mu[0])
            ),
            blocks=self.placed(own.blocks, mu),
            held_out=self.placed(own.held_out, mu),
            memory=known,
        )

    def placed(self, blocks: Sequence[Block], mu: Parameters) -> list[Block]:
        """Blocks with the terms of the family and the parameters beside the normals."""
        return [self._placed(block, mu) for block in blocks]

    def _placed(self, block: Block, mu: Parameters) -> Block:
        data = self.parametric.data.get(block.term.name)
        if data is None:  # a term that the features add
            return block
        left = next(term.lhs for term in self.parametric.terms if term.name == block.term.name)
        normals = np.concatenate([block.normals, np.broadcast_to(mu, (len(block.points), len(mu)))], axis=1)
        return replace(block, term=replace(block.term, lhs=left), right_side=data, normals=normals)


def is_traceable(parametric: Parametric) -> str | None:
    """Why the problem cannot be traced with its parameters as arguments; None if it can."""
    import jax

    dim = parametric.example.domain.dim
    sizes = dim, parametric.space_dim + parametric.size
    z, normal = (jax.ShapeDtypeStruct((n,), np.float64) for n in sizes)

    def evaluating(term: Term) -> Any:
        layout, data = layout_of(term, parametric.example.layout), parametric.data[term.name]

        def evaluated(z: Any, normal: Any) -> Any:
            u = layout.fields(lambda y: jax.numpy.sum(y) * jax.numpy.ones(layout.components))
            one = getattr(term.lhs, "lhs", term.lhs)
            return one(u, u, layout.arguments(z), normal), data(layout, layout.arguments(z), normal)

        return evaluated

    try:
        for each in parametric.terms:
            jax.eval_shape(evaluating(each), z, normal)
    except Exception as error:  # noqa: BLE001 (whatever the user's function raises for traced parameters)
        return str(error).splitlines()[0].rstrip(".")
    return None
