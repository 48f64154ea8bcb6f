"""Nothing wrong looks right, and nothing bad gets in: samples of the hostile collections, all of them by
`make test-hostile`."""

import contextlib
import os
import random
import resource
import subprocess
import sys
import time
import warnings

import collection
import files
import fuzz
import illposed  # noqa: F401 (registers its kinds)
import mistakes
import narrow  # noqa: F401
import numpy as np
import pytest
import scales  # noqa: F401
import wellposed  # noqa: F401

import pdofm as pf

SEED = int(os.environ.get("PDOFM_TEST_SEED", "0"))
TOLERANCES = (None, 1e-6)

FILES, SOME_FILES = 2000, 40
MOST_SECONDS, MOST_MEMORY = 1.0, 200 * 2**20
"""What reading a file may take."""

CAUTIOUS = 0.03
"""The fraction of right answers to well-posed problems that may be called not converged."""

SOLVES, LEAST_MEMORY = 500, 2**30
"""Different solves in one process, and the memory that they may take."""


def solved(name: str, tol: float | None) -> collection.Outcome:
    with warnings.catch_warnings(action="ignore"):
        return collection.outcome(collection.get(name), tol)


# ---- problems


def test_the_collection_is_large_and_of_all_kinds():
    names = collection.names()
    assert len(names) >= 200
    assert sum(not kind.is_well_posed for kind in collection.KINDS.values()) >= 10


@pytest.mark.parametrize("name", random.Random(SEED).sample(collection.names(), 4))
def test_some_hostile_problems_do_not_deceive(name):
    for tol in TOLERANCES:
        found = solved(name, tol)
        assert not found.is_deceiving, found


@pytest.mark.hostile
def test_no_hostile_problem_deceives_and_few_right_answers_are_doubted():
    deceiving, right, doubted = [], 0, []
    for name in collection.names():
        for tol in TOLERANCES:
            found = solved(name, tol)
            if found.is_deceiving:
                deceiving.append((name, tol, found))
            if collection.get(name).is_well_posed and found.error <= (1e-3 if tol is None else 0.1 * tol):
                right += 1
                doubted += [] if found.converged else [(name, tol, found)]
    assert not deceiving
    assert len(doubted) <= CAUTIOUS * right, doubted


# ---- mistakes

MISTAKES = list(mistakes.names())


def test_there_are_three_hundred_mistakes():
    assert len(MISTAKES) >= 300


def refused(name: str) -> None:
    with warnings.catch_warnings(action="ignore"), pytest.raises(pf.errors.PdofmError) as caught:
        mistakes.make(name)
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize("name", random.Random(SEED).sample(MISTAKES, 60))
def test_a_mistake_is_an_error_with_a_remedy(name):
    refused(name)


@pytest.mark.hostile
@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_is_an_error_with_a_remedy(name):
    refused(name)


# ---- files


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return files.contents(tmp_path_factory.mktemp("whole"))


def read_mutated(whole, path, number: int) -> None:
    """Read a file with mutations: it is refused, or describes an object that works."""
    rng = np.random.default_rng([SEED, number])
    names = sorted(whole)
    path.write_bytes(fuzz.mutated(whole[names[rng.integers(len(names))]], rng))
    start = time.perf_counter()
    try:
        found = pf.load(path)
    except pf.errors.PdofmError:
        found = None
    assert time.perf_counter() - start < MOST_SECONDS, number
    if found is not None:
        with contextlib.suppress(pf.errors.PdofmError):
            files.use(found)


def test_a_whole_file_of_every_kind_is_read(whole, tmp_path):
    path = tmp_path / "file"
    for content in whole.values():
        path.write_bytes(content)
        files.use(pf.load(path))


def test_some_changed_files_are_refused_or_work(whole, tmp_path):
    for number in range(SOME_FILES):
        read_mutated(whole, tmp_path / "file", number)


@pytest.mark.hostile
def test_all_changed_files_are_refused_or_work_in_little_memory(whole, tmp_path):
    read_mutated(whole, tmp_path / "file", 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(FILES):
        read_mutated(whole, tmp_path / "file", number)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_MEMORY


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
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MANY], timeout=1200, check=True, capture_output=True, text=True
    )
    assert int(done.stdout) < LEAST_MEMORY
