"""Rows with holes, corners, fronts, interfaces, scales and high frequencies."""

from pdofm.challenge.row import Published, Row, of_the_zoo

_GROUP = "holes, corners, scales"

_PINNACLE = "the best of ten PINN variants in Hao et al., PINNacle (2023, arXiv 2306.08827)"

ROWS: tuple[Row, ...] = (
    of_the_zoo("holes-laplace", _GROUP, 1e-9, Published(1e-2, _PINNACLE)),
    of_the_zoo("heat-scales", _GROUP, 1e-8, Published(0.13, _PINNACLE)),
    of_the_zoo("poisson-corner", _GROUP, 1e-9, quick=True),
    *(
        of_the_zoo(name, _GROUP, 1e-8)
        for name in ("slit", "mixed-side", "peak", "front", "reaction-layers", "helmholtz-square", "plate-with-hole")
    ),
)
