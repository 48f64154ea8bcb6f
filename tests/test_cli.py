"""The command line, as a user runs it: what it prints where, and its exit codes."""

import json
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pdofm as pf
from pdofm import cli
from pdofm.errors import PdofmError


def run(*arguments: str):
    """A command in this process; standard output and standard error apart."""
    return CliRunner().invoke(cli.app, list(arguments))


def test_list_has_a_line_for_every_problem():
    found = run("list")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert [line.split()[0] for line in lines] == pf.zoo.names()
    assert all(pf.zoo.describe(name) in line for name, line in zip(pf.zoo.names(), lines, strict=True))


def test_solve_prints_the_solution_and_its_true_error():
    found = run("solve", "poisson-1d", "--features", "20")
    assert found.exit_code == 0
    assert re.search(r"Solution of 'poisson-1d': 20 features", found.stdout)
    assert re.search(r"true relative L2 error \d.*maximum error \d", found.stdout)


@pytest.mark.parametrize("method", ["pd-fm", "rfm", "transnet", "chebyshev"])
def test_solve_takes_a_method(method):
    found = run("solve", "poisson-1d", "--features", "20", "--method", method, "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["relative_l2"] < 1e-3


def test_an_unknown_method_is_refused_with_the_nearest():
    found = run("solve", "poisson-1d", "--method", "pd-omf")
    with pytest.raises(PdofmError, match=r"Unknown method 'pd-omf'. Did you mean 'pd-ofm'"):
        raise found.exception


def test_reproduce_writes_results_tables_figures_and_a_report(tmp_path):
    """One small case; the others are measured, not tested."""
    from pdofm import experiments

    def quickest(names=(), *, quick=False):
        return [case for case in experiments.tables.cases() if (case.case, case.method) == ("interval", "Chebyshev")]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "select", quickest)
        found = run("reproduce", "helmholtz", "--seeds", "1", "--workers", "1", "--out", str(tmp_path))
    assert found.exit_code == 0
    written = {Path(line).name for line in found.stdout.split()}
    assert {"results.json", "tables.md", "report.html", "helmholtz-interval-paper.png"} <= written
    rows = json.loads((tmp_path / "results.json").read_text())
    names = ["experiment", "case", "method", "metric", "published", "measured", "low", "high", "seeds", "seconds"]
    assert rows
    assert all(set(names) <= set(row) for row in rows)
    page = (tmp_path / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_reproduce_refuses_an_unknown_experiment_with_the_nearest():
    found = run("reproduce", "helmholz")
    with pytest.raises(PdofmError, match=r"Unknown experiment 'helmholz'. Did you mean 'helmholtz'"):
        raise found.exception


def test_solve_json_is_one_object_on_standard_output():
    found = run("solve", "poisson-1d", "--features", "20", "--json")
    report = json.loads(found.stdout)
    assert found.exit_code == 0
    assert report["problem"] == "poisson-1d"
    assert report["converged"] is True
    assert 0 < report["error_estimate"] < 1e-2
    assert report["relative_l2"] < 1e-6
    assert report["features"] == 20


def test_the_seed_decides_the_numbers():
    same, again, other = (
        json.loads(run("solve", "poisson-1d", "--features", "10", "--json", "--seed", seed).stdout)["relative_l2"]
        for seed in ("0", "0", "1")
    )
    assert same == again != other


def test_a_solution_that_has_not_converged_exits_with_one_and_says_why():
    found = run("solve", "helmholtz-1d", "--features", "5", "--json")
    assert found.exit_code == 1
    report = json.loads(found.stdout)
    assert report["converged"] is False
    assert re.search(r"above 0\.01; use more features", report["reason"])


def test_a_tolerance_without_features_is_searched_for():
    report = json.loads(run("solve", "poisson-1d", "--tol", "1e-8", "--json").stdout)
    assert report["converged"] is True
    assert report["space"] == "polynomials"
    assert [each["change"] is None for each in report["attempts"]] == [True, False]
    assert report["relative_l2"] < 1e-8


def test_a_tolerance_that_is_missed_exits_with_one():
    assert run("solve", "poisson-1d", "--features", "20", "--tol", "1e-17").exit_code == 1


def test_a_folder_gets_a_picture_and_a_vtk_file(tmp_path):
    found = run("solve", "poisson-1d", "--features", "20", "--out", str(tmp_path / "new" / "folder"), "--json")
    assert found.exit_code == 0
    assert Path(json.loads(found.stdout)["picture"]).stat().st_size > 1000
    assert (tmp_path / "new" / "folder" / "poisson-1d.vtu").exists()


FILE = """
import pdofm as pf

problem = pf.Problem(pf.Interval(0, 1), lambda u, x: -pf.laplacian(u)(x), 2.0, [pf.Dirichlet(0.0)]{more})
"""


def test_a_file_that_defines_a_problem_is_solved_under_its_own_name(tmp_path):
    path = tmp_path / "rod.py"
    path.write_text(FILE.format(more=""))
    report = json.loads(run("solve", str(path), "--features", "20", "--json").stdout)
    assert report["problem"] == "rod"
    assert "relative_l2" not in report


def test_a_name_that_a_file_gives_is_kept(tmp_path):
    path = tmp_path / "rod.py"
    path.write_text(FILE.format(more=", name='bar'"))
    assert json.loads(run("solve", str(path), "--features", "20", "--json").stdout)["problem"] == "bar"


REFUSED = {
    "unknown name": ("poisson-sqare", r"Unknown problem 'poisson-sqare'\. Did you mean 'poisson-square'"),
    "missing file": ("nowhere.py", r"There is no file 'nowhere\.py'\. Give a file that defines `problem`, or a name"),
    "file without a problem": (
        "empty.py",
        r"must define a variable `problem` that is a pdofm\.Problem; it defines none",
    ),
    "file with another problem": ("other.py", r"must define a variable `problem` .* it is int"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "empty.py").write_text("answer = 42\n")
    (tmp_path / "other.py").write_text("problem = 42\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_solved_is_refused_with_the_reason(name, folder):
    argument, message = REFUSED[name]
    found = run("solve", argument)
    with pytest.raises(PdofmError, match=message):
        raise found.exception


def test_an_error_is_one_line_on_standard_error_and_exit_code_two(folder):
    """In another process: nothing of it on standard output, and no traceback."""
    command = [sys.executable, "-m", "pdofm.cli", "solve", "poisson-sqare", "--json"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert found.stdout == ""
    said = " ".join(found.stderr.split())
    assert re.search(r"error: Unknown problem 'poisson-sqare'\. Did you mean 'poisson-square'", said)
    assert "Traceback" not in said


def test_a_command_that_does_not_exist_exits_with_two():
    found = run("slove", "poisson-1d")
    assert found.exit_code == 2
    assert re.search(r"No such command 'slove'", found.stderr)


def test_the_version_is_shown():
    assert run("--version").stdout == f"pdofm {pf.__version__}\n"


def test_a_file_with_an_error_names_the_line(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import math\nproblem = math.nothing\n")
    found = run("solve", str(path))
    assert isinstance(found.exception, PdofmError)
    assert re.search(r"broken.py' cannot be run: AttributeError, line 2: .*'nothing'", str(found.exception))


TALKATIVE = """
import pdofm as pf
print("hello")
problem = pf.zoo.get("poisson-1d")
"""


def test_a_file_that_prints_does_not_disturb_json(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(TALKATIVE)
    assert json.loads(run("solve", str(path), "--features", "20", "--json").stdout)["converged"] is True


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "taken"
    path.write_text("")
    for arguments, message in ((("poisson-1d", "--out"), "is a file; give a folder"), ((), r"must end in \.py")):
        with pytest.raises(PdofmError, match=message):
            raise run("solve", *arguments, str(path)).exception


@pytest.fixture
def twice(monkeypatch):
    """A benchmark that measures two seconds against one."""
    from pdofm import bench

    monkeypatch.setitem(bench.BENCHES, "lstsq", lambda: [bench.Row("lstsq", "case", "other", 2.0, 1.0)])


def test_bench_prints_ratios_and_what_they_were_measured_on(twice):
    found = run("bench", "lstsq")
    assert found.exit_code == 0
    assert re.search(r"lstsq .* case .* 2 s .* 2 .* other", found.stdout)
    assert re.search(
        rf"python {platform.python_version()};.* seeds 0.* jax {version('jax')};", " ".join(found.stdout.split())
    )


def test_the_help_of_bench_names_all_of_them():
    from pdofm import bench

    assert set(bench.NAMES) <= set(re.findall(r"\w+", cli.BENCHMARKS))


def test_bench_writes_json_to_standard_output_and_to_a_file(twice, tmp_path):
    found = run("bench", "lstsq", "--json", "--out", str(tmp_path))
    assert found.exit_code == 0
    assert json.loads(found.stdout) == json.loads((tmp_path / "bench.json").read_text())
    assert json.loads(found.stdout)["rows"][0]["ratio"] == 2.0


def test_an_unknown_benchmark_is_refused_with_the_nearest():
    found = run("bench", "lsqst")
    with pytest.raises(PdofmError, match=r"'lsqst'.*'lstsq'"):
        raise found.exception
