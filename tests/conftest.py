"""Hostile numerics: what a user may only meet by accident, the tests meet on purpose."""

import gc
import os
import sys
import zlib
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"  # read by matplotlib when it is first imported, in subprocesses too
if "PYTEST_XDIST_WORKER" in os.environ:  # the workers share the cores: threads of their own would wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"

from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    import pdofm

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pdofm" / "jax"


def pytest_configure(config: pytest.Config) -> None:
    """Import pdofm such that its annotations are checked, and make its numerics strict. The process that only hands out
    tests to others, which wait for it, does without."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return
    if "pdofm" in sys.modules:
        raise RuntimeError("pdofm was imported before tests/conftest.py; its annotations would go unchecked.")
    import annotations
    import jax

    annotations.install()

    import pdofm  # noqa: F401 (for what it sets)

    if not jax.config.jax_enable_x64:
        raise RuntimeError("`import pdofm` did not switch float64 on; call jax.config.update in pdofm/__init__.py.")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    jax.config.update("jax_compilation_cache_dir", str(_CACHE))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def pytest_collection_finish() -> None:
    """Leave what stays until the end out of garbage collection, which would look at it again and again."""
    gc.collect()
    gc.freeze()


# The first example compiles and the others do not, so a deadline would measure the compiler.
hypothesis.settings.register_profile("pdofm", deadline=None, derandomize=True)
hypothesis.settings.load_profile("pdofm")

_SESSION_SEED = os.environ.get("PDOFM_TEST_SEED", "0")


@pytest.fixture(autouse=True, scope="module")
def _start_afresh():
    """Check annotations again in each file, and forget compiled code: thousands of compiled functions use up the memory
    maps that the system allows a process."""
    import annotations
    import jax

    annotations.start_again()
    yield
    jax.clear_caches()


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A seed of the test's own: the same in every run, another one for another PDOFM_TEST_SEED; shown on failure."""
    return zlib.crc32(f"{_SESSION_SEED}:{request.node.nodeid}".encode())


@pytest.fixture(scope="module")
def annulus() -> "pdofm.Solution":
    """A solution to draw and to export."""
    import pdofm

    return pdofm.solve(pdofm.zoo.get("poisson-annulus"), 80)


@pytest.fixture(scope="module")
def system() -> "pdofm.Solution":
    """A vector and a scalar that are not coupled: cheap, and linear."""
    import jax.numpy as jnp

    import pdofm

    problem = pdofm.Problem(
        pdofm.Box([-1, -1], [1, 1]),
        operator=lambda u, x: (pdofm.laplacian(u.v)(x), pdofm.laplacian(u.p)(x)),
        conditions=[pdofm.Dirichlet()],
        unknowns={"v": 2, "p": 1},
        exact={"v": lambda x: jnp.stack([x[0] * x[1], jnp.cos(x[1])]), "p": lambda x: jnp.exp(x[0])},
    )
    return pdofm.solve(problem, 60)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    drawn = getattr(item, "funcargs", {}).get("seed")
    if report.failed and drawn is not None:
        report.sections.append(("Seed", f"seed = {drawn} with PDOFM_TEST_SEED={_SESSION_SEED}"))
    return report
