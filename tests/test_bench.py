"""Benchmarks: what they compare is the same thing, and the arithmetic of their tables is right. Nothing is timed."""

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm import bench
from pdofm.bench import accuracy, contest, growth, phases
from pdofm.bench.accuracy import Run, cheapest, compare
from pdofm.bench.contenders import PROBLEMS, Level, coordinates, kovasznay_velocity, swelling
from pdofm.bench.contenders import pdofm as ours
from pdofm.bench.timing import Row, median_seconds
from pdofm.errors import UnknownNameError

SQUARE = pf.Box([-1, -1], [1, 1])


# ---- rows


def test_the_ratio_is_task_over_reference():
    assert Row("b", "case", "against", 3.0, 1.5).ratio == 2.0


def test_tasks_take_turns_and_the_first_run_does_not_count():
    calls = []
    seconds = median_seconds(lambda: calls.append("a"), lambda: calls.append("b"), repeats=3)
    assert calls == ["a", "b"] * 4
    assert len(seconds) == 2
    assert min(seconds) >= 0


def test_an_unknown_benchmark_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match=r"'assemby'.*'assembly'"):
        bench.run(["assemby"])


def test_a_report_can_be_written_as_json():
    report = bench.Report([Row("b", "case", "against", 1.0, 2.0)], [Run("pdofm", "poisson-square", "level", 0.1, 1e-9)])
    written = json.loads(json.dumps(report.as_json()))
    assert written["rows"][0]["ratio"] == 0.5
    assert written["runs"][0]["error"] == 1e-9
    assert {"python", "cores", "jax", "pdofm"} <= written["machine"].keys()


# ---- what is compared is the same


@pytest.mark.parametrize("compiled", [True, False])
def test_the_loop_over_features_gives_the_columns_of_the_matrix(compiled):
    features = pf.NetworkFeatures(phases._SQUARE, width=20, depth=2)
    columns = np.stack(phases._loop(features, compiled)(), axis=1)
    points = phases._SQUARE.sample(1024)
    values = [float(pf.laplacian(lambda x, j=j: features(x)[j])(jnp.asarray(points[7]))) for j in range(phases.LOOPED)]
    assert columns.shape == (1024, phases.LOOPED)
    np.testing.assert_allclose(columns[7], values, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_levels_of_this_package_solve_the_problem_better_and_better(problem):
    """The cheapest level and one in the middle; the expensive ones belong to the benchmark."""
    first, *_, middle = ours.levels(problem)[:3]
    errors = [contest._measured(level, problem)["error"] for level in (first, middle)]
    assert errors[1] < max(errors[0], 1e-12)
    assert errors[1] < 1e-2


def test_the_error_of_a_contender_is_that_of_its_worst_component():
    problem = pf.zoo.get("kovasznay")
    exact = problem.exact_values

    def wrong(points: np.ndarray) -> np.ndarray:
        return exact(points) * np.array([1.0, 1.5, 1.1])

    assert contest._error(wrong, "kovasznay") == pytest.approx(0.5, rel=1e-12)
    measured = contest._measured(Level("wrong", lambda: wrong, repeats=1), "kovasznay")
    assert measured["level"] == "wrong"
    assert measured["error"] == pytest.approx(0.5, rel=1e-12)


def test_extra_sources_are_those_of_the_exact_solutions():
    frequencies, points = np.array([[0.3, -1.0], [1.0, 0.5]]), SQUARE.sample(100)
    found, exact = ours.sources()(frequencies)(points), swelling(points, frequencies)[:, -1]
    assert np.linalg.norm(found - exact) < 1e-9 * np.linalg.norm(exact)


def test_the_error_of_extra_sources_is_that_of_the_last_one():
    def solve(frequencies: np.ndarray):
        return lambda points: 1.25 * swelling(points, frequencies[-1:])[:, 0]

    assert contest._sources(solve, 30)["error"] == pytest.approx(0.25, rel=1e-12)


def test_the_exact_velocity_of_the_flow_is_that_of_the_zoo():
    points = SQUARE.sample(20)
    exact = pf.zoo.get("kovasznay").exact_values(points)[:, :2]
    np.testing.assert_allclose(np.stack(kovasznay_velocity(*points.T), axis=1), exact, rtol=1e-12)


def test_coordinates_are_columns():
    x, y = coordinates(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(x, [1.0, 3.0])
    np.testing.assert_array_equal(y, [2.0, 4.0])


# ---- time to accuracy


RUNS = [
    Run("pdofm", "poisson-square", "small", 0.01, 1e-4),
    Run("pdofm", "poisson-square", "large", 0.04, 1e-10),
    Run("NGSolve", "poisson-square", "order 8", 0.02, 1e-9),
    Run("NGSolve", "poisson-square", "order 12", 0.05, 1e-12),
    Run("DeepXDE", "poisson-square", "a PINN", 100.0, 1e-3),
]


def test_the_cheapest_run_that_reaches_the_target_counts():
    assert cheapest(RUNS, 1e-9) == RUNS[2]
    assert cheapest(RUNS, 1e-10) == RUNS[1]
    assert cheapest(RUNS, 1e-13) is None


def test_others_are_compared_at_the_target_or_at_the_best_that_they_reach():
    against_ngsolve, against_deepxde = compare(RUNS)
    assert (against_ngsolve.value, against_ngsolve.reference) == (0.04, 0.02)
    assert (against_deepxde.value, against_deepxde.reference) == (0.01, 100.0)
    assert "DeepXDE" in against_deepxde.against


def test_where_this_package_does_not_reach_the_target_the_table_says_so():
    (row,) = compare([RUNS[0], RUNS[2]])
    assert "not reached" in row.case
    assert math.isnan(row.ratio)


def test_the_picture_of_a_contest_is_written(tmp_path):
    bench.plot(RUNS, tmp_path / "accuracy.png")
    assert (tmp_path / "accuracy.png").stat().st_size > 5000


def test_a_package_that_is_not_installed_is_left_out(monkeypatch):
    def missing(name: str) -> str:
        if name in ("pdofm", "jax"):
            return "1.0"
        raise accuracy.PackageNotFoundError(name)

    monkeypatch.setattr(accuracy, "version", missing)
    assert accuracy.installed() == {"pdofm": {"pdofm": "1.0", "jax": "1.0"}}


# ---- growth


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_the_exponent_of_a_power_is_found(power):
    sizes = (100, 200, 400, 800)
    assert growth._exponent(sizes, [3 * size**power for size in sizes]) == pytest.approx(power, abs=1e-12)


def test_the_memory_of_a_task_is_that_of_its_arrays():
    assert growth._traced(lambda: np.ones(2**20)) == pytest.approx(8.0, rel=0.01)
