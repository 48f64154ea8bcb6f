"""Rows with holes, corners, fronts, scales, high frequencies, and interfaces between materials."""

from pdofm.challenge.row import Published, Row, of_the_zoo

_GROUP = "holes, corners, scales"

_PINNACLE = "the best of ten PINN variants in Hao et al., PINNacle (2023, arXiv 2306.08827)"

_INTERFACES = {
    "straight-jump-strong": 1e-8,
    "round-inclusion": 1e-8,
    "concentric-layers": 1e-8,
    "elastic-inclusion": 1e-8,
    "interface-corner": 1e-8,
    "kellogg-checkerboard": 1e-4,
}
"""Problems with several materials, with the tolerances that are asked for."""

ROWS: tuple[Row, ...] = (
    of_the_zoo("holes-laplace", _GROUP, 1e-9, Published(1e-2, _PINNACLE)),
    of_the_zoo("heat-scales", _GROUP, 1e-8, Published(0.13, _PINNACLE)),
    of_the_zoo("poisson-corner", _GROUP, 1e-9, quick=True),
    *(
        of_the_zoo(name, _GROUP, 1e-8)
        for name in ("slit", "mixed-side", "peak", "front", "reaction-layers", "helmholtz-square", "plate-with-hole")
    ),
    *(of_the_zoo(name, "interfaces", tol) for name, tol in _INTERFACES.items()),
)
