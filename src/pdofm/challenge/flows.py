"""Rows of viscous flow."""

from collections.abc import Callable
from functools import partial

import numpy as np

import pdofm as pf
from pdofm.challenge.row import Answer, Published, Row, answered, estimated, largest_relative, of_the_zoo

_GROUP = "flows"

_SPECTRAL = "spectral values of Botella and Peyret, Computers & Fluids 27 (1998), velocities on the centre lines"
_OWN = "no spectral values known to us; compared with a Galerkin method of our own, tools/references/cavity.py"
_CHANNEL = "spectral values of Nabh (1998) and of John and Matthies (2001), quoted by the FEATFLOW benchmark page"

CENTRE_LINES = {
    "cavity-100": (-0.214042378, 0.179572836, -0.253803004),
    "cavity-400": (-0.32873021, 0.30383259, -0.45406545),
    "cavity-1000": (-0.38856979, 0.37694468, -0.52707726),
}
"""The smallest horizontal velocity on the vertical centre line, and the largest and the smallest vertical velocity on
the horizontal one, by problem: what tools/references/cavity.py prints."""

GALERKIN = {"cavity-100": 5e-9, "cavity-400": 2e-8, "cavity-1000": 3e-8}
"""Their relative errors: the distance of two degrees, and their digits."""

PUBLISHED = {
    "cavity-100": (-0.2140424, 0.1795728, -0.2538030),
    "cavity-1000": (-0.3885698, 0.3769447, -0.5270771),
}
"""The same as Botella and Peyret print it, who move the lid to the left; here it moves to the right."""

FORCES = (5.57953523384, 0.010618948146, 0.11752016697)
"""Drag and lift of the cylinder, and the difference of the pressures before and behind it."""

DIGITS = 1e-9
"""Their relative error: the lift is printed to eleven digits, the last ones of which differ between publications."""

SECONDS = 900.0
"""The budget of a row: the rows need up to a few minutes, and more where other work shares the machine."""

ASKED = {"cavity-100": 2e-7, "cavity-400": 1e-6, "cavity-1000": 1e-6}
"""The tolerances of the classical cavities: relative to their values, those at Reynolds number 100 are printed to more
digits."""

STRICTER = 400.0
"""The flow is asked for so many times more accurately than the three numbers: the lift is 500 times smaller than the
drag, and an error of the stress counts so many times more in it than in the stress."""


def _extremes(solution: pf.Solution) -> tuple[float, float, float]:
    """What `CENTRE_LINES` contains, from Chebyshev interpolants of the velocities on the lines."""
    from numpy.polynomial import Chebyshev

    def along(line: Callable[[np.ndarray], np.ndarray], component: int) -> np.ndarray:
        found = Chebyshev.interpolate(lambda s: solution(line(s))[:, component], 200, domain=[0, 1])
        places = found.deriv().roots()
        inside = np.real(places[(np.abs(np.imag(places)) < 1e-8) & (np.real(places) > 0) & (np.real(places) < 1)])
        return found(inside)

    down = along(lambda s: np.stack([np.full_like(s, 0.5), s], axis=1), 0)
    across = along(lambda s: np.stack([s, np.full_like(s, 0.5)], axis=1), 1)
    return float(down.min()), float(across.max()), float(across.min())


def _cavity(name: str, tol: float) -> Answer:
    solution = pf.solve(pf.zoo.get(name), tol=tol, max_seconds=SECONDS)
    return answered(solution, largest_relative(_extremes(solution), CENTRE_LINES[name]), GALERKIN[name])


def _published(name: str) -> Published:
    """How far the published velocities in a cavity are from accurate ones."""
    if name not in PUBLISHED:
        return Published(None, _OWN)
    return Published(largest_relative(np.array(PUBLISHED[name]), np.array(CENTRE_LINES[name])), _SPECTRAL)


def _cylinder(tol: float) -> Answer:
    problem = pf.zoo.get("cylinder-flow")
    solution = pf.solve(problem, tol=tol / STRICTER, max_seconds=SECONDS)
    cylinder, scale = problem.domain.part("circle"), 2 / (0.2**2 * 0.1)
    stress = pf.zoo.published.cylinder_stress
    forces = [solution.integral(of=lambda u, x, normal, i=i: stress(u, x, normal)[i], on=cylinder) for i in range(2)]
    before, behind = solution([[0.15, 0.2], [0.25, 0.2]])[:, 2]
    # The normal of the domain points into the cylinder.
    found = (*(-scale * float(each) for each in forces), before - behind)
    errors = (*(scale * each.error_estimate for each in forces), solution.error_estimate * (abs(before) + abs(behind)))
    answer = answered(solution, largest_relative(found, FORCES), DIGITS)
    return estimated(answer, float(np.max(np.abs(errors) / np.abs(found))), tol)


ROWS: tuple[Row, ...] = (
    of_the_zoo("kovasznay", _GROUP, 1e-12, quick=True),
    of_the_zoo("cavity-regular", _GROUP, 1e-6, Published(4e-2, "PINN")),
    *(
        Row(
            name,
            _GROUP,
            pf.zoo.describe(name),
            partial(_cavity, name),
            ASKED[name],
            _published(name),
            measure="largest relative error of three extreme velocities",
        )
        for name in CENTRE_LINES
    ),
    Row(
        "cylinder-flow",
        _GROUP,
        pf.zoo.describe("cylinder-flow"),
        _cylinder,
        2e-8,
        Published(None, _CHANNEL),
        measure="largest relative error of drag, lift and pressure difference",
    ),
)
