"""The examples run and give the digits that they promise; of those that take minutes, a part."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pdofm as pf

EXAMPLES = Path(__file__).parent.parent / "examples"


def main_of(name: str) -> Callable[..., Any]:
    return runpy.run_path(str(EXAMPLES / name))["main"]


@pytest.mark.parametrize(
    ("name", "error"), [("01_poisson.py", 1e-11), ("02_navier_stokes.py", 1e-6), ("05_transfer.py", 1e-10)]
)
def test_an_example_is_as_accurate_as_it_says(name, error):
    found = main_of(name)()
    assert (found.errors().relative_l2 if isinstance(found, pf.Solution) else found) < error


def test_a_row_of_the_zoo_has_the_medians_over_its_seeds():
    (row,) = main_of("03_zoo.py")(["burgers"], seeds=(0, 1, 2))
    assert (row.name, row.features) == ("burgers", "100")
    assert row.error < 4e-11
    assert str(row).startswith("| burgers | Steady viscous Burgers' equation")


def test_the_random_feature_method_has_its_published_error_and_gains_by_another_scale():
    ((name, errors),) = main_of("04_baselines.py")(["helmholtz-1d"], seeds=(0,))
    assert name == "helmholtz-1d"
    assert errors["window b"] < 9.64e-9 == errors["RFM published"]
    assert errors["RFM, scale chosen"] < 1e-9


def test_the_heat_of_a_chip_passes_the_gap_to_its_sink():
    example = runpy.run_path(str(EXAMPLES / "08_heat_sink.py"))
    u = example["main"]()
    through = -example["CHIP"] * float(u.side("chip").flux(u.problem.domain.part("chip|sink")))
    assert u.converged
    assert through == pytest.approx(10.0, abs=1e-7)


def test_the_forces_on_both_sides_of_an_elastic_body_are_equal():
    example = runpy.run_path(str(EXAMPLES / "10_elastic_fibre.py"))
    u = example["main"](tol=1e-3)
    right, left = (example["force"](u, part) for part in ("x0=upper", "x0=lower"))
    assert u.converged
    assert right == pytest.approx(0.0315, abs=1e-4)
    assert left == pytest.approx(-right, rel=1e-2)


def test_the_unknown_numbers_are_found_and_drawn(tmp_path):
    example = runpy.run_path(str(EXAMPLES / "07_unknown_numbers.py"))
    found = example["main"]()
    assert found.converged
    assert abs(found.k - 2) < 0.1
    example["plot"](found, tmp_path / "numbers.png")
    assert (tmp_path / "numbers.png").stat().st_size > 10_000


def test_every_example_is_in_the_gallery_with_its_picture_if_it_draws_one():
    page, pictures = (EXAMPLES.parent / "docs" / name for name in ("gallery.md", "images/gallery"))
    text = page.read_text()
    for example in sorted(EXAMPLES.glob("*.py")):
        assert example.name in text
        draws = "\ndef plot(" in example.read_text()
        assert (pictures / f"{example.stem}.png").exists() == draws
        assert (f"images/gallery/{example.stem}.png" in text) == draws
