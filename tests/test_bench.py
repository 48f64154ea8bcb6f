"""Benchmarks: what they compare is the same thing, and the arithmetic of their tables is right. Nothing is timed."""

import json
import math
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import pdofm as pf
from pdofm import bench, cli
from pdofm.bench import accuracy, cluster, contest, growth, phases, start
from pdofm.bench.accuracy import Run, cheapest, compare
from pdofm.bench.contenders import PROBLEMS, Level, coordinates, kovasznay_velocity, swelling
from pdofm.bench.contenders import pdofm as ours
from pdofm.bench.contenders.local import stated
from pdofm.bench.process import Answer, ask, failed
from pdofm.bench.start import covered, first_solve
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


def test_an_unknown_benchmark_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match=r"'assemby'.*'assembly'"):
        bench.run(["assemby"])


def test_a_report_can_be_written_as_json():
    report = bench.Report([Row("b", "case", "against", 1.0, 2.0)], [Run("pdofm", "poisson-square", "level", 0.1, 1e-9)])
    written = json.loads(json.dumps(report.as_json()))
    assert written["rows"][0]["ratio"] == 0.5
    assert written["runs"][0]["error"] == 1e-9
    assert {"python", "cores", "jax", "pdofm"} <= written["machine"].keys()


def test_the_table_has_dashes_for_what_could_not_be_measured(monkeypatch):
    rows = [failed("lstsq", "case", "failed, signal 6 (SIGABRT)"), Row("lstsq", "count", "", 7.0, math.nan, "")]
    monkeypatch.setitem(bench.BENCHES, "lstsq", lambda: rows)
    lines = CliRunner().invoke(cli.app, ["bench", "lstsq"], env={"COLUMNS": "120"}).stdout.splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│ lstsq" in line]
    assert cells == [["lstsq", "case", "–", "–", "failed, signal 6 (SIGABRT)"], ["lstsq", "count", "7", "–", ""]]


# ---- what is compared is the same


def test_what_assembly_is_compared_with_computes_the_same(monkeypatch):
    """The loops give Laplacians of the first features, and our sines and cosines are those of JAX."""
    timed = []
    monkeypatch.setattr(phases, "median_seconds", lambda *tasks, **_: timed.append(tasks) or [1.0] * len(tasks))
    phases.bench_assembly()
    (assembly, _), *loops, (ours, plain) = timed
    features, points = pf.NetworkFeatures(SQUARE, size=500, depth=2), SQUARE.sample(1024)
    expected = features.jets(points, [(2, 0), (0, 2)]).sum(axis=0)
    assert assembly().shape == expected.shape
    assert len(loops) == 2
    for (loop,) in loops:
        np.testing.assert_allclose(np.stack(loop(), axis=1), expected[:, : phases.LOOPED], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours(), plain(), rtol=0, atol=1e-15)


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_levels_of_this_package_solve_the_problem_better_and_better(problem):
    """The cheapest level and one in the middle; the expensive ones belong to the benchmark."""
    first, *_, middle = ours.levels(problem)[:3]
    solved = stated(problem)
    points = solved.domain.sample(1000, "random", key=1)
    exact = solved.exact_values(points)
    found = [np.asarray(level.solve()(points)).reshape(exact.shape) for level in (first, middle)]
    errors = [np.linalg.norm(values - exact) / np.linalg.norm(exact) for values in found]
    assert errors[1] < max(errors[0], 1e-12)
    assert errors[1] < 1e-2


@pytest.fixture
def reported(monkeypatch):
    """What the contest reports of a contender that has these levels or sources."""

    def measured(*arguments: str, **contender) -> list:
        lines, module = [], ModuleType("played")
        vars(module).update(contender)
        monkeypatch.setitem(sys.modules, "pdofm.bench.contenders.played", module)
        monkeypatch.setattr(contest, "results", lambda: lines.append)
        contest.main("played", *arguments)
        return lines

    return measured


def test_the_error_of_a_contender_is_that_of_its_worst_component(reported):
    exact = pf.zoo.get("kovasznay").exact_values

    def wrong(points: np.ndarray) -> np.ndarray:
        return exact(points) * np.array([1.0, 1.5, 1.1])

    measured, count = reported("kovasznay", levels=lambda problem: [Level("wrong", lambda: wrong, repeats=1)])
    assert count == 1
    assert measured["level"] == "wrong"
    assert measured["error"] == pytest.approx(0.5, rel=1e-12)


def test_extra_sources_are_those_of_the_exact_solutions():
    frequencies, points = np.array([[0.3, -1.0], [1.0, 0.5]]), SQUARE.sample(100)
    found, exact = ours.sources()(frequencies)(points), swelling(points, frequencies)[:, -1]
    assert np.linalg.norm(found - exact) < 1e-9 * np.linalg.norm(exact)


def test_the_error_of_extra_sources_is_that_of_the_last_one(reported):
    def solve(frequencies: np.ndarray):
        return lambda points: 1.25 * swelling(points, frequencies[-1:])[:, 0]

    measured, count = reported("sources", "30", sources=lambda: solve)
    assert count == 1
    assert measured["error"] == pytest.approx(0.25, rel=1e-12)


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


def test_where_this_package_has_measured_nothing_the_table_says_so():
    (row,) = compare([RUNS[2]])
    assert "not measured" in row.case
    assert "NGSolve" in row.against
    assert math.isnan(row.ratio)


@pytest.mark.parametrize("runs", [RUNS, RUNS[2:], [*RUNS, Run("NGSolve", "kovasznay", "order 8", 0.1, 1e-9)]])
def test_the_picture_of_a_contest_is_written_even_if_some_are_missing(runs, tmp_path):
    bench.plot(runs, tmp_path / "accuracy.png")
    assert (tmp_path / "accuracy.png").stat().st_size > 5000


def test_a_package_that_is_not_installed_is_left_out(monkeypatch):
    def missing(name: str) -> str:
        if name in ("pdofm", "jax"):
            return "1.0"
        raise accuracy.PackageNotFoundError(name)

    monkeypatch.setattr(accuracy, "version", missing)
    assert accuracy.installed() == {"pdofm": {"pdofm": "1.0", "jax": "1.0"}}


# ---- contenders that fail


FAKE = """
import os, sys, time
name = sys.argv[1]
if name == "garbage":
    print("no licence found")
elif name == "hangs":
    print('{"level": "first", "seconds": 1.0, "error": 0.5}', flush=True)
    time.sleep(60)
elif name == "incomplete":
    print('{"level": "first", "seconds": 1.0, "error": 0.5}')
else:
    from types import ModuleType, SimpleNamespace
    import pdofm as pf
    from pdofm.bench import contest
    from pdofm.bench.contenders import Level
    fake = sys.modules["pdofm.bench.contenders." + name] = ModuleType(name)
    def solve():
        os.system("echo printed by compiled code")
        return pf.zoo.get(sys.argv[2]).exact_values
    end = os.abort if name == "aborts" else solve
    fake.levels = lambda problem: [Level("first", solve, 1), Level("second", end, 1)]
    contest.main(*sys.argv[1:])
"""


@pytest.fixture
def contenders(monkeypatch, tmp_path):
    """Makes a contest on one problem of contenders that `FAKE` plays."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)

    def enter(*names: str) -> None:
        for name in names:
            module = ModuleType(name)
            module.PACKAGES, module.ENVIRONMENT = (), {}
            monkeypatch.setitem(sys.modules, f"pdofm.bench.contenders.{name}", module)
        monkeypatch.setattr(accuracy, "CONTEST", (str(script),))
        monkeypatch.setattr(accuracy, "PROBLEMS", ("poisson-1d",))
        monkeypatch.setattr(accuracy, "CONTENDERS", {name: name.title() for name in names})

    return enter


def test_a_contender_that_crashes_loses_its_row_and_keeps_the_levels_before(contenders):
    contenders("aborts", "talks")
    runs, (row,) = accuracy.race()
    assert [(run.contender, run.level) for run in runs] == [
        ("Aborts", "first"),
        ("Talks", "first"),
        ("Talks", "second"),
    ]
    assert all(run.error == 0 for run in runs)
    assert (row.case, row.against) == ("poisson-1d", "Aborts: failed, signal 6 (SIGABRT)")
    assert math.isnan(row.value)
    assert math.isnan(row.ratio)


def test_output_that_is_no_json_or_ends_early_is_a_failure(contenders):
    contenders("garbage", "incomplete")
    runs, (garbage, incomplete) = accuracy.race()
    assert [run.contender for run in runs] == ["Incomplete"]
    assert garbage.against == "Garbage: failed, output is not JSON: 'no licence found'"
    assert incomplete.against == "Incomplete: failed, ended before it had finished"


def test_a_contender_that_hangs_is_stopped_and_keeps_the_levels_before(contenders):
    contenders("hangs")
    (run,), (row,) = accuracy.race(limit=2.0)
    assert run == Run("Hangs", "poisson-1d", "first", 1.0, 0.5)
    assert row.against == "Hangs: failed, still running after 2 s"


def test_extra_sources_that_fail_are_rows_of_the_table(contenders, monkeypatch):
    contenders("pdofm", "ngsolve")
    monkeypatch.setattr(accuracy, "CONTEST", ("-c", "raise ValueError('no mesh')"))
    rows = accuracy.extra_sources()
    assert [row.against for row in rows] == [
        f"{name}: failed, exit code 1: ValueError: no mesh" for name in ("Pdofm", "Ngsolve")
    ]


def test_failures_are_in_the_report_and_need_no_runs(contenders):
    contenders("garbage")
    report = bench.run(["accuracy"])
    assert report.runs == []
    (row,) = report.as_json()["rows"]
    assert "Garbage: failed" in row["against"]


# ---- new processes


def test_a_process_answers_with_the_values_of_its_lines():
    answer = ask("-c", "print(1); print('[2, 3]')")
    assert answer.lines == [1, [2, 3]]
    assert answer.failure == ""
    assert answer.seconds > 0


def test_the_last_words_of_a_process_that_fails_are_part_of_its_failure_and_all_are_passed_on(capsys):
    answer = ask("-c", "import sys; print(1); print('first', file=sys.stderr); sys.exit('last')")
    assert answer.lines == [1]
    assert answer.failure == "failed, exit code 1: last"
    assert math.isnan(answer.seconds)
    assert capsys.readouterr().err == "first\nlast\n"


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [([], 0.0), ([(0.0, 1.0), (2.0, 3.0)], 2.0), ([(1.0, 2.0), (0.0, 4.0)], 4.0), ([(0.0, 2.0), (1.0, 3.0)], 3.0)],
    ids=["none", "apart", "nested", "overlapping"],
)
def test_nested_and_overlapping_spans_count_once(spans, seconds):
    assert covered(spans) == seconds


def test_the_first_solve_of_a_problem_is_measured_in_a_new_process():
    rows = {row.case.removeprefix("poisson-1d: "): row for row in first_solve("poisson-1d")}
    assert list(rows) == ["import pdofm", "first solve", "tracing and compiling", "functions compiled"]
    assert 0 < rows["tracing and compiling"].value < rows["first solve"].value
    assert rows["first solve"].ratio > 1
    assert rows["functions compiled"].value >= 1
    assert rows["functions compiled"].unit == ""


def test_a_problem_whose_process_fails_is_a_row_of_the_table(monkeypatch):
    monkeypatch.setattr(start, "CHILD", "import os; os.abort()")
    (row,) = first_solve("poisson-1d")
    assert row.case == "poisson-1d: first solve"
    assert row.against == "failed, signal 6 (SIGABRT)"
    assert math.isnan(row.ratio)


# ---- growth


def test_growth_is_reported_with_its_exponents(monkeypatch):
    """Solves are played: they hold a matrix of points x features, and the k-th of a kind takes 2^(2.5 k) seconds."""

    def solve(problem, features, *, points=1, **options):
        return SimpleNamespace(coefficients=np.ones((points, features.size)))

    monkeypatch.setattr(pf, "solve", solve)
    monkeypatch.setattr(growth, "median_seconds", lambda *tasks, **_: [2 ** (2.5 * k) for k in range(len(tasks))])
    monkeypatch.setattr(growth, "ask", lambda *_: Answer([{"rows": 1000, "peak": 7.0, "error": 1e-9}]))
    *rows, peak = growth.bench_growth()
    found = {row.case: row for row in rows}
    time = found["points N: 4000 to 32000, time grows with exponent 2.50"]
    assert (time.value, time.reference) == (2**7.5, 1.0)
    memory = found["points N: 4000 to 32000, memory grows with exponent 1.00"]
    assert memory.value == pytest.approx(32000 * 200 * 8 / 2**20, rel=0.01)
    assert memory.unit == "MiB"
    assert "features m, 4000 points: 100 to 800, memory grows with exponent 1.00" in found
    assert "dimensions d, 300 features: 1 to 4, memory grows with exponent 0.00" in found
    assert "unknowns N in boxes: 8100 to 202500, memory grows with exponent 1.00" in found
    assert (peak.value, peak.reference) == (7.0, 8 * 1000 * growth.FEATURES / 2**20)


def test_clusters_are_compared_with_one_worker(monkeypatch):
    line = {"rows": 4000, "features": 9, "shares": 8, "peak": 300.0, "sent": 2**20, "hash": "a", "difference": 1e-14}
    lines = [
        line | {"workers": w, "seconds": s, "hash": h} for w, s, h in ((0, 9.0, "c"), (1, 10.0, "a"), (2, 5.0, "b"))
    ]
    monkeypatch.setattr(cluster, "ask", lambda *_, **__: Answer(lines))
    rows = cluster.bench_cluster()
    assert [row.ratio for row in rows[1::4]] == [1.0, 0.5]
    assert ["OTHER BITS" in row.case for row in rows[1::4]] == [False, True]
    assert rows[0].value == 1e-14
    assert rows[3].value == 1.0
    assert rows[3].reference == pytest.approx(2 * 8 * 100 * 3 / 2**20)
    monkeypatch.setattr(cluster, "ask", lambda *_, **__: Answer([], "failed, exit code 1"))
    assert "exit code 1" in cluster.bench_cluster()[0].against
