"""Rows in many dimensions."""

from pdofm.challenge.row import Published, Row, of_the_zoo

_GROUP = "many dimensions"

_PINNACLE = "the best of ten PINN variants in Hao et al., PINNacle (2023, arXiv 2306.08827)"
_FASTLSQ = "FastLSQ, Sulc (2026, arXiv 2602.10541)"
_FROZEN = "Frozen-PINN, Datar et al. (2024, arXiv 2405.20836)"

ROWS: tuple[Row, ...] = (
    of_the_zoo("sines-5d", _GROUP, 1e-8, Published(4.8e-7, f"{_FASTLSQ}; {_PINNACLE}: 2.4e-4"), quick=True),
    of_the_zoo("sines-10d", _GROUP, 1e-8),
    of_the_zoo("heat-ball-5d", _GROUP, 1e-4, Published(1.2e-4, _PINNACLE)),
    of_the_zoo("heat-ball-100d", _GROUP, 1e-8, Published(4.1e-4, _FROZEN)),
)
