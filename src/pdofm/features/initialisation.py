"""The names of the initialisations that random families share."""

from pdofm.errors import unknown_name
from pdofm.features.activations import activation_of

INITIALISATIONS = ("default", "xavier", "kaiming", "uniform")


def check_choices(activation: str, initialisation: str) -> None:
    """Raise unless both names are known."""
    activation_of(activation)
    if initialisation not in INITIALISATIONS:
        raise unknown_name("initialisation", initialisation, INITIALISATIONS)
