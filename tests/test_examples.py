"""The examples that take seconds run, and give the digits that they promise."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(("name", "error"), [("05_transfer.py", 1e-10)])
def test_an_example_is_as_accurate_as_it_says(name, error):
    assert runpy.run_path(str(EXAMPLES / name))["main"]() < error
