"""Rows in time: fronts, waves, dispersion, chaos, long times."""

import pdofm as pf
from pdofm.challenge.row import Published, Row, of_the_zoo
from pdofm.experiments.evolution import ROWS as KNOWN

QUICK = ("burgers-sine", "wave-modes")
"""The rows of the quick subset."""

ROWS: tuple[Row, ...] = tuple(
    of_the_zoo(
        *(name, "time", KNOWN[name].tol),
        Published(KNOWN[name].published, KNOWN[name].source),
        quick=name in QUICK,
    )
    for name in pf.zoo.names("evolution")
)
"""The evolution problems of the zoo, with the tolerances and published values of their experiment."""
