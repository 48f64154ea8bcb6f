"""Several regions: what holds between them, and which region each term belongs to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jax import Array

from pdofm.calculus.symbol import symbol_of
from pdofm.calculus.terms import CONDITION_WEIGHT, Average, Difference, Layout, PairLayout, Term, Where, joined
from pdofm.domain import Part, Regions
from pdofm.domain.csg import flipped
from pdofm.errors import ProblemError, unknown_name
from pdofm.problem.conditions import BaseCondition, Condition, Context, Data, call

PERIODIC_POINTS = 256
"""Points of a face at which the regions on it and on the opposite face are compared."""

EXAMPLE = "Interface(flux=lambda u, x, normal: k * normal_derivative(u, normal)(x))"
"""What messages propose; fluxes of regions that differ are a dictionary."""


@dataclass(frozen=True)
class ValueJump:
    """The values on the first side of an interface minus those on the second."""

    is_linear: ClassVar[bool] = True

    pair: tuple[str, str]
    unknowns: tuple[str, ...]

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        first, second = (self._values(getattr(u, name), args) for name in self.pair)
        return first - second

    def _values(self, u: Any, args: tuple[Array, ...]) -> Array:
        return joined([getattr(u, name)(*args) for name in self.unknowns] if self.unknowns else u(*args))


@dataclass(frozen=True)
class FluxJump:
    """The flux on the first side of an interface minus that on the second, both along the same normal."""

    pair: tuple[str, str]
    fluxes: tuple[Callable[..., Any], Callable[..., Any]]

    def __call__(self, u: Any, w: Any, args: tuple[Array, ...], normal: Array) -> Array:
        first, second = (
            joined(call(flux, (getattr(u, name), *args), normal))
            for name, flux in zip(self.pair, self.fluxes, strict=True)
        )
        return first - second


@dataclass(frozen=True, eq=False, repr=False)
class Interface(BaseCondition):
    """What holds where two regions touch: the values agree, and so do the fluxes.

    Args:
        flux: the flux ``flux(u, x, normal)`` through the interface, for all regions or by region:
            ``{"plate": flux, "inclusion": other}``. In a system it is a vector, such as the traction σ n.
        between: the names of two regions; by default the condition holds on all interfaces that no other one names.
        jump: by how much the values of the first region exceed those of the second, a number or a function; None takes
            it from the exact solution.
        flux_jump: the same for the fluxes, along the normal that points from the first region to the second.
        unknown: in a system, the unknowns whose values are continuous, one name or several; by default all. The
            pressure of a flow, for instance, is not continuous between two fluids.
        on: a part of the interface, as in ``regions.part("plate|inclusion").where(…)``; all of it if omitted.
    """

    flux: Any = None
    _: KW_ONLY
    between: tuple[str, str] | None = None
    jump: Data = 0.0
    flux_jump: Data = 0.0
    unknown: Any = None
    on: Where = None
    name: str = "interface"
    weight: float = CONDITION_WEIGHT

    def terms(self, problem: Context) -> list[Term]:
        regions = problem.domain.materials
        if regions is None:
            raise ProblemError(
                f"Condition {self.name!r} needs a domain with several regions; got {problem.domain!r}. "
                "Use Regions(plate=…, inclusion=…)."
            )
        if self.between is not None:
            pairs = [self._pair(regions)]
        else:
            pairs = [pair for pair in regions.interfaces if pair not in problem.covered]
        if self.on is not None:
            return self._on(regions, problem.layout)
        return [t for pair in pairs for t in self._between(pair, regions.interface(*pair), problem.layout)]

    def _on(self, regions: Regions, layout: Layout) -> list[Term]:
        if not isinstance(self.on, Part):
            raise ProblemError(f"Condition {self.name!r}: on= must be a part of an interface, with normals.")
        found = []
        for first, second, part in regions.sides(self.on):
            if second is None or first == second:
                raise ProblemError(
                    f"Condition {self.name!r}: on= must be part of an interface, but the regions on its two sides are "
                    f"{first!r} and {second!r}. Take it from regions.part('{regions.names[0]}|{regions.names[1]}')."
                )
            if self.between is not None and tuple(self.between) == (second, first):
                found += self._between((second, first), turned(part), layout)
            else:
                found += self._between((first, second), part, layout)
        return found

    def _pair(self, regions: Regions) -> tuple[str, str]:
        if not (isinstance(self.between, tuple | list) and len(self.between) == 2):
            raise ProblemError(
                f"Condition {self.name!r}: between must be the names of two regions; got {self.between!r}."
            )
        first, second = self.between
        regions.interface(first, second)  # raises if they do not touch
        return first, second

    def _between(self, pair: tuple[str, str], on: Part, layout: Layout) -> list[Term]:
        name = f"{self.name} {pair[0]}|{pair[1]}"
        unknowns = (self.unknown,) if isinstance(self.unknown, str) else tuple(self.unknown or ())
        for each in unknowns:
            if each not in layout.offsets:
                raise unknown_name("unknown of the problem", each, layout.offsets)
        terms = [Term(f"{name} value", ValueJump(pair, unknowns), self.jump, on, self.weight, pair=pair)]
        if self.flux is None:
            raise ProblemError(f"Condition {self.name!r} has no flux. Write for instance {EXAMPLE}.")
        lhs = FluxJump(pair, (self._flux(pair[0]), self._flux(pair[1])))
        return [*terms, Term(f"{name} flux", lhs, self.flux_jump, on, self.weight, pair=pair)]

    def _flux(self, region: str) -> Callable[..., Any]:
        return of_region(self.flux, region, f"The flux of condition {self.name!r}")


def turned(part: Part) -> Part:
    """A part with its normals reversed."""
    return Part(tuple(flipped(piece) for piece in part.pieces), part.has_time)


def of_region(given: Any, region: str, what: str) -> Any:
    """What is given for a region, by a dictionary or for all of them alike."""
    if not isinstance(given, Mapping):
        return given
    if region not in given:
        raise ProblemError(f"{what} is given for {sorted(given)}; expected an entry for the region {region!r}, too.")
    return given[region]


def covered_pairs(conditions: Sequence[BaseCondition], regions: Regions) -> set[tuple[str, str]]:
    """The interfaces that conditions name, in the order in which the regions were given."""
    found: set[tuple[str, str]] = set()
    for condition in conditions:
        if isinstance(condition, Interface) and condition.between is not None:
            first, second = condition.between
            found.add((first, second))
        elif isinstance(condition.on, Part):
            found |= {(first, second) for first, second, _ in regions.sides(condition.on) if second is not None}
    return found | {(second, first) for first, second in found}


def check_interfaces(terms: Sequence[Term], regions: Regions, layout: Layout) -> None:
    """Raise if nothing is said about an interface, or if a flux has more entries than there are equations."""
    symbols = {
        term.name: symbol_of(term.lhs, layout_of(term, layout), regions.dim, regions.dim - layout.has_time)
        for term in terms
        if term.on is None or isinstance(term.lhs, FluxJump)
    }
    # An equation of order d needs d conditions in all, one of which is that for the values.
    most = layout.numbers * max(1, max(symbols[term.name].order for term in terms if term.on is None) - 1)
    for term in terms:
        if isinstance(term.lhs, FluxJump) and symbols[term.name].entries > most:
            raise ProblemError(
                f"The flux of {term.name!r} has {symbols[term.name].entries} entries at a point; expected {most}: what "
                f"passes along the normal. Write for instance {EXAMPLE}."
            )
    stated = {pair for term in terms if term.pair for pair in (term.pair, term.pair[::-1])}
    held = {term.region for term in terms if term.kind == "sides"}
    for first, second in regions.interfaces:
        if (first, second) not in stated and not {first, second} <= held:
            raise ProblemError(
                f"The regions {first!r} and {second!r} touch, but no condition says what holds between them. Add "
                f"{EXAMPLE} for continuous values and fluxes, with a dictionary if the fluxes differ: "
                f"Interface(flux={{{first!r}: …, {second!r}: …}}), or a Condition on "
                f"regions.part('{first}|{second}'), which sees u.{first} and u.{second}."
            )


def split(term: Term, condition: BaseCondition, regions: Regions) -> list[Term]:
    """A term of a condition as terms of the regions where it holds. A `Condition` on an interface sees both sides;
    other conditions hold on each side by itself."""
    if term.pair is not None or isinstance(term.on, Average):
        return [term]
    if isinstance(term.lhs, Difference):
        _check_periodic(term, regions)
    found: list[tuple[str, Term]] = []
    if not isinstance(term.on, Part):
        points = np.asarray(term.on, dtype=np.float64)
        which = regions.which(points)
        for i in np.unique(which).tolist():
            name = regions.names[i]
            found.append((name, replace(term, on=points[which == i], region=name)))
    for inner, outer, on in regions.sides(term.on) if isinstance(term.on, Part) else ():
        if outer is None or outer == inner:
            found.append((inner, replace(term, on=on, region=inner)))
        elif isinstance(condition, Condition):
            found.append((f"{inner}|{outer}", replace(term, on=on, pair=(inner, outer))))
        else:
            found.append((inner, replace(term, on=on, region=inner, kind="sides")))
            found.append((outer, replace(term, on=turned(on), region=outer, kind="sides")))
    many = len({name for name, _ in found}) > 1
    return [
        replace(
            each,
            name=f"{each.name} {name}" if many else each.name,
            kind="sides" if each.kind == "sides" else "other",
            rhs=each.rhs if each.region is None else of_region(each.rhs, each.region, f"The data of {each.name!r}"),
        )
        for name, each in found
    ]


def _check_periodic(term: Term, regions: Regions) -> None:
    """Raise unless opposite points of a periodic condition lie in the same region."""
    assert isinstance(term.on, Part)
    assert isinstance(term.lhs, Difference)
    points, _ = term.on.sample(PERIODIC_POINTS)
    # Moved towards the middle of the domain, so that the points lie inside of their regions.
    first, second = (points + np.array(shift) for shift in term.lhs.shifts)
    inward = 1e-8 * (second - first)
    here, there = regions.which(first + inward), regions.which(second - inward)
    if np.any(here != there):
        at = int(np.argmax(here != there))
        raise ProblemError(
            f"Condition {term.name!r} joins {first[at].tolist()} in the region {regions.names[here[at]]!r} and "
            f"{second[at].tolist()} in {regions.names[there[at]]!r}; expected the same region on opposite faces. "
            "Choose the period so that this is the case, or state a symmetry where there is one: Neumann(0.0)."
        )


def layout_of(term: Term, layout: Layout) -> Layout:
    """How a term sees the unknowns: on an interface on both sides of it."""
    if term.pair is None:
        return layout
    return PairLayout(layout.unknowns, layout.has_time, term.pair, is_complex=layout.is_complex)
