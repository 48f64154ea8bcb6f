"""The same work on dask.distributed: the same numbers, whatever the workers and whatever happens to them."""

import threading

import numpy as np
import pytest
from distributed import Client, LocalCluster

import pdofm as pf
from pdofm import experiments
from pdofm.cluster.packing import pack
from pdofm.errors import ClusterError
from pdofm.experiments import runner
from pdofm.numerics.executor import Serial, Share, executor_of


@pytest.fixture(scope="module")
def client():
    """Two processes of one thread. They import pdofm once for all tests."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize(("n", "count"), [(10, 3), (3, 10), (0, 2), (17, 1)])
def test_shares_contain_everything_once(n, count):
    assert [i for k in range(count) for i in range(n)[Share(k, count).of(n)]] == list(range(n))


def test_a_tree_combines_neighbours_in_order(client):
    for executor in (Serial(), executor_of(client)):
        found = executor.tree(_name, ["share "], _joined, 5, name="pdofm-test")
        assert executor.result(found) == "((share 0,share 1),(share 2,(share 3,share 4)))"


def _name(prefix, share):
    return f"{prefix}{share.number}"


def _joined(a, b):
    return f"({a},{b})"


def test_independent_tasks_keep_their_numbers(client):
    executor = executor_of(client)
    assert executor.map(lambda k: k**2, range(7)) == [k**2 for k in range(7)]
    assert sorted(executor.each(len, ["a", "bb", ""], name="pdofm-test")) == [(0, 1), (1, 2), (2, 0)]


def test_workers_use_one_thread_of_blas(client):
    assert set(executor_of(client).map(_blas_threads, range(4))) == {1}


def _blas_threads(_):
    from threadpoolctl import threadpool_info

    return max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")


def test_errors_of_tasks_arrive_as_they_are(client):
    with pytest.raises(pf.errors.DomainError, match="The key is -1"):
        executor_of(client).map(lambda k: pf.Interval(0, 1).sample(3, key=k), [-1])


def test_what_cannot_be_sent_is_named(tmp_path):
    with (tmp_path / "log.txt").open("w") as log:
        source = lambda x: log.write("x") * x[0]
        problem = pf.Problem(
            pf.Interval(0, 1), lambda u, x: -pf.laplacian(u)(x), source=source, conditions=[pf.Dirichlet(0.0)]
        )
        with pytest.raises(ClusterError, match=r"(?s)the problem.*variable 'log' is .*log\.txt.*inside the function"):
            pack(problem, "the problem")
    with pytest.raises(ClusterError, match=r"\['b'\]\[1\] is <unlocked"):
        pack({"a": 1, "b": [2, threading.Lock()]}, "it")


def test_domains_that_functions_give_can_be_sent():
    domain = pf.Implicit(lambda x: x[0] ** 2 + x[1] ** 2 - 1, [-2, -2], [2, 2])
    there = pack(domain, "the domain").value
    np.testing.assert_array_equal(domain.sample(50), there.sample(50))


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (3, "takes a dask.distributed.Client; got int"),
        ("tcp://a:8786", r"Write cluster=dask.distributed.Client\('tcp://a:8786'\)"),
    ],
)
def test_what_is_no_client_is_refused(cluster, message):
    with pytest.raises(ClusterError, match=message):
        executor_of(cluster)


def test_an_address_without_a_scheduler_is_reported():
    with pytest.raises(ClusterError, match=r"No scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        pf.cluster.connect("tcp://127.0.0.1:9", timeout=0.5)


def test_cases_of_experiments_run_on_a_cluster(client, tmp_path):
    cases = [each for each in experiments.select(["helmholtz"]) if each.method == "Chebyshev"]
    found = []
    for name, pool in (("here", None), ("there", pf.cluster.Dask(client))):
        assert runner.run(cases, 1, tmp_path / name, pool=pool) == []
        found.append(runner.collect(cases, tmp_path / name))
    for a, b in zip(*found, strict=True):
        assert [a[name] for name in ("case", "metric", "seeds")] == [b[name] for name in ("case", "metric", "seeds")]
        np.testing.assert_allclose(a["measured"], b["measured"], atol=1e-13)
