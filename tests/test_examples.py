"""The examples run and give the digits that they promise; of those that take minutes, a part."""

import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
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


def test_a_wave_is_scattered_as_hankel_functions_say(tmp_path):
    with jax.numpy_dtype_promotion("standard"):  # as users have it
        _scatter(tmp_path)


def _scatter(tmp_path: Path) -> None:
    example = runpy.run_path(str(EXAMPLES / "13_scattering.py"))
    u = example["main"](k=4.0, boxes=5, degree=16)
    assert u.converged
    assert example["error"](u, k=4.0) < 5e-6
    example["plot"](u, tmp_path / "wave.png", k=4.0)
    assert (tmp_path / "wave.png").stat().st_size > 10_000


def test_the_drum_has_its_first_tone(tmp_path):
    example = runpy.run_path(str(EXAMPLES / "14_drums.py"))
    modes = example["main"](k=1, tol=1e-8)
    assert modes.converged
    assert example["error"](modes) < 1e-8
    example["plot"](modes, tmp_path / "drums.png")
    assert (tmp_path / "drums.png").stat().st_size > 3_000


def test_a_flow_rate_determines_the_pressure_that_drives_it():
    """A rod in the middle has an exact solution: w is a combination of 1, r² and log r."""
    example = runpy.run_path(str(EXAMPLES / "15_flow_rate.py"))
    found, radius = example["main"](offset=0.0), example["RADIUS"]
    assert found.converged
    assert found.g == pytest.approx(example["concentric"](), rel=1e-12)
    share = -(radius**2) / (1 - radius**2) - 1 / (2 * math.log(radius))
    assert example["drag_on_rod"](found) == pytest.approx(share, rel=1e-9)


def test_every_example_is_in_the_gallery_with_its_picture_if_it_draws_one():
    page, pictures = (EXAMPLES.parent / "docs" / name for name in ("gallery.md", "images/gallery"))
    text = page.read_text()
    for example in sorted(EXAMPLES.glob("*.py")):
        assert example.name in text
        draws = "\ndef plot(" in example.read_text()
        assert (pictures / f"{example.stem}.png").exists() == draws
        assert (f"images/gallery/{example.stem}.png" in text) == draws
