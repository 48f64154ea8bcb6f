"""Nothing wrong looks right, and nothing bad gets in: samples of the hostile collections, all of them by
`make test-hostile`. They run in processes of their own, without the checks of types that these tests switch on."""

import os
import subprocess
import sys
from pathlib import Path

import collection
import details  # noqa: F401 (registers its kinds)
import fuzz
import illposed  # noqa: F401
import mistakes
import narrow  # noqa: F401
import pytest
import scales  # noqa: F401
import wellposed  # noqa: F401

import pdofm as pf

SEED = os.environ.get("PDOFM_TEST_SEED", "0")

HERE = Path(__file__).parent

SOLVES, MOST_MEMORY = 500, 2**30
"""Different solves in one process, and the memory that they may take."""


def broken_promises(*arguments: str) -> str:
    """What a run of a collection reports."""
    command = [sys.executable, str(HERE / "run.py"), *arguments]
    paths = os.pathsep.join(map(str, (HERE, HERE.parent, Path(pf.__file__).parent.parent)))
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


# ---- problems, mistakes, files


def test_the_collections_are_large():
    assert len(collection.names()) >= 200
    assert sum(kind.count for kind in collection.KINDS.values() if not kind.is_well_posed) >= 40
    assert len(list(mistakes.names())) >= 300


def test_some_hostile_problems_do_not_deceive():
    assert not broken_promises("problems", "--some", "2", "--seed", SEED)


def test_some_mistakes_are_errors_with_a_remedy():
    assert not broken_promises("mistakes", "--some", "60", "--seed", SEED)


def test_some_changed_files_are_refused_or_work():
    assert not broken_promises("files", "--some", "40")


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(20))
def test_no_hostile_problem_deceives_and_few_right_answers_are_doubted(part):
    assert not broken_promises("problems", "--part", f"{part}/20")


@pytest.mark.hostile
def test_every_mistake_is_an_error_with_a_remedy():
    assert not broken_promises("mistakes")


@pytest.mark.hostile
def test_all_changed_files_are_refused_or_work_in_little_memory():
    assert not broken_promises("files")


def test_a_degree_that_the_arrays_do_not_hold_is_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "file"
    pf.save(path, pf.Chebyshev(pf.Box([0, 0], [1, 1]), degree=3))
    header, body = fuzz.parsed(path.read_bytes())
    about = header["__metadata__"]
    about["tree"] = about["tree"].replace('"value": 3', '"value": 100000')
    path.write_bytes(fuzz.joined(header, body))
    with pytest.raises(pf.errors.FeaturesError, match="more than 100000 functions"):
        pf.load(path)


def test_files_are_written_whole_and_only_where_there_is_no_link(tmp_path):
    features = pf.Chebyshev(pf.Box([0, 0], [1, 1]), 10)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "folder").mkdir()
    for name, message in (("link", "is a link"), ("folder", "is a folder")):
        with pytest.raises(pf.errors.FeaturesError, match=message):
            pf.save(tmp_path / name, features)
    pf.save(tmp_path / "file", features)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "link"]


# ---- resources

FORKED = """
import os, sys
import pdofm as pf
problem = pf.zoo.get("poisson-1d")
pf.solve(problem, pf.Chebyshev(problem.domain, 20))
if os.fork() == 0:
    try:
        pf.solve(problem, pf.Chebyshev(problem.domain, 20))
    except pf.errors.SolveError as error:
        os._exit(0 if "spawn" in str(error) else 1)
    os._exit(2)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_solve_in_a_forked_process_is_refused_with_a_remedy():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=120, check=False)
    assert done.returncode == 0


MANY = f"""
import resource
import pdofm as pf
line = pf.Interval(0, 1)
for k in range({SOLVES}):
    operator = lambda u, x, k=k: -pf.laplacian(u)(x) + k * u(x)
    problem = pf.Problem(line, operator, lambda x, k=k: k * x[0], [pf.Dirichlet(lambda x, k=k: k + x[0])])
    assert pf.solve(problem, pf.Chebyshev(line, 12), sampling="clustered").coefficients.shape == (12, 1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.hostile
def test_many_different_solves_take_bounded_memory():
    command = [sys.executable, "-W", "ignore", "-c", MANY]
    done = subprocess.run(command, timeout=1800, check=True, capture_output=True, text=True)
    assert int(done.stdout) < MOST_MEMORY
