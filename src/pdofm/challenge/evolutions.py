"""Rows in time: fronts, waves, dispersion, chaos, long times."""

from functools import partial

import pdofm as pf
from pdofm.challenge.row import Published, Row, of_the_zoo, solved
from pdofm.experiments.evolution import ROWS as KNOWN

QUICK = ("burgers-sine", "wave-modes")
"""The rows of the quick subset."""

LONG = "heat-nonlinear"
"""A row that takes minutes."""

_PINNACLE = "the best of ten PINN variants in Hao et al., PINNacle (2023, arXiv 2306.08827): not one digit"

ROWS: tuple[Row, ...] = (
    *(
        of_the_zoo(
            *(name, "time", KNOWN[name].tol),
            Published(KNOWN[name].published, KNOWN[name].source),
            quick=name in QUICK,
        )
        for name in pf.zoo.names("evolution")
    ),
    Row(LONG, "time", pf.zoo.describe(LONG), partial(solved, LONG, max_seconds=600.0), 1e-4, Published(1.0, _PINNACLE)),
)
"""The evolution problems of the zoo, with the tolerances and published values of their experiment, and a long one."""
