"""The examples that take seconds run, and give the digits that they promise."""

import runpy
from pathlib import Path

import pytest

import pdofm as pf

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("name", "error"), [("01_poisson.py", 1e-11), ("02_navier_stokes.py", 1e-6), ("05_transfer.py", 1e-10)]
)
def test_an_example_is_as_accurate_as_it_says(name, error):
    found = runpy.run_path(str(EXAMPLES / name))["main"]()
    assert (found.errors().relative_l2 if isinstance(found, pf.Solution) else found) < error
