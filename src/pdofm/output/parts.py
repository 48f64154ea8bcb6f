"""What is drawn of a solution: its components, or of complex unknowns the real part, the imaginary part, the modulus or
the phase."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from pdofm._types import Vector
from pdofm.calculus.terms import Layout
from pdofm.errors import SolveError, unknown_name

Components = Float[np.ndarray, "n C"]


@dataclass(frozen=True)
class View:
    """A real quantity that is computed from the components of a solution at points.

    Attributes:
        label: the quantity as mathematics in TeX without the dollar signs.
        of: the quantity from the real components, (n,) from (n, C).
        is_angle: whether it is an angle, between -π and π.
    """

    label: str
    of: Callable[[Components], Vector]
    is_angle: bool = False

    def distance(self, values: Vector, exact: Vector) -> Vector:
        """How far values are from exact ones."""
        difference = values - exact
        return np.abs(np.angle(np.exp(1j * difference)) if self.is_angle else difference)

    @property
    def error_label(self) -> str:
        """The error as mathematics."""
        return rf"|{self.label} - {self.label}^*|" if "(" not in self.label else rf"\mathrm{{error\ of}}\ {self.label}"


PARTS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "real": (np.real, r"\mathrm{Re}(%s)"),
    "imaginary": (np.imag, r"\mathrm{Im}(%s)"),
    "modulus": (np.abs, r"\mathrm{abs}(%s)"),
    "phase": (np.angle, r"\mathrm{arg}(%s)"),
}
"""The parts of a complex number, with how they are written."""


def views(layout: Layout, unknown: str | None, part: str | None) -> list[View]:
    """What to draw for an unknown, a component, or all of them; of complex ones a part, or both real components."""
    if part is not None and part not in PARTS:
        raise unknown_name("part of a complex number", part, PARTS)
    if part is not None and not layout.is_complex:
        raise SolveError(f"part={part!r} belongs to complex solutions, and this one is real. Leave part= out.")
    if part is None:
        names = layout.component_names
        return [View(symbol(names[i]), lambda u, i=i: u[:, i]) for i in components(layout, unknown)]
    function, written = PARTS[part]
    chosen = sorted({i % layout.numbers for i in components(layout, unknown)})

    def of(values: Components, i: int) -> Vector:
        return function(values[:, i] + 1j * values[:, i + layout.numbers])

    return [View(written % symbol(layout.names[i]), lambda u, i=i: of(u, i), is_angle=part == "phase") for i in chosen]


def symbol(name: str) -> str:
    """The name of a component, such as ``v[0]``, as mathematics in TeX without the dollar signs."""
    root, _, index = name.rstrip("]").partition("[")
    letters = root if len(root) == 1 else rf"\mathit{{{root}}}".replace("_", r"\_")
    return f"{letters}_{{{index}}}" if index else letters


def components(layout: Layout, unknown: str | None) -> list[int]:
    """The indices of the components of an unknown, of one component, or of all."""
    choices = {name: [index] for index, name in enumerate(layout.component_names)}
    starts = range(0, layout.components, layout.numbers)  # real parts, and imaginary parts if there are any
    choices |= {n: [s + i for s in starts] for i, n in enumerate(layout.names)}
    choices |= {n: [s + a + i for s in starts for i in range(size)] for n, (a, size) in layout.offsets.items()}
    if unknown is None:
        return list(range(layout.components))
    if unknown not in choices:
        raise unknown_name("unknown of the problem", unknown, choices)
    return choices[unknown]
