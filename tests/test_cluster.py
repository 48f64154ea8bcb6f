"""The same work on dask.distributed: the same numbers, whatever the workers and whatever happens to them."""

import os
import signal
import sys
import threading
import time

import dask
import jax.numpy as jnp
import numpy as np
import pytest
from distributed import Client, LocalCluster

import pdofm as pf
from pdofm import experiments
from pdofm.adaptive import together
from pdofm.cluster.packing import pack
from pdofm.errors import ClusterError, SolveError
from pdofm.experiments import runner
from pdofm.numerics.executor import Serial, Share, executor_of
from pdofm.numerics.sized import Sized


@pytest.fixture(scope="module")
def client():
    """Two processes of one thread. They import pdofm once for all tests."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
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


def test_schedulers_are_told_the_size_of_results():
    class Result(Sized):
        def __init__(self):
            self.triangle, self.parts, self.name = np.zeros((100, 100)), [np.zeros(500), (b"12345",)], "name"

    assert 80_000 + 4000 + 5 <= sys.getsizeof(Result()) < 85_000


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
        with pytest.raises(ClusterError, match=r"the problem.*variable 'log' is <_io\.TextIO.*inside the function"):
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


POINTS = {"points": 4000}  # four shares of 60 features


def test_solving_on_a_cluster_finds_the_same_solution(client):
    problem = pf.zoo.get("poisson-1d")
    here, there = (pf.solve(problem, 60, cluster=each, **POINTS) for each in (None, client))
    x = problem.domain.sample(200)
    np.testing.assert_allclose(there(x), here(x), atol=1e-14)
    assert there.stats.rows == here.stats.rows == 4002
    assert there.stats.residuals.keys() == here.stats.residuals.keys()
    assert 0.1 < there.error_estimate / here.error_estimate < 10
    assert there.errors().relative_l2 < 1e-13


@pytest.mark.parametrize("method", [None, pf.Picard()], ids=["newton", "picard"])
def test_iterations_run_on_a_cluster(client, method):
    problem = pf.zoo.get("burgers")
    found = pf.solve(problem, 100, method=method, cluster=pf.cluster.Dask(client, shares=3), points=1200)
    assert found.converged
    assert found.errors().relative_l2 < 1e-9
    assert found.error_estimate < 1e-9


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wave-periodic", {}),
        ("heat", {"sampling": "grid"}),
        ("heat", {"sampling": "clustered"}),
    ],
)
@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")  # thirty features are few
def test_shares_have_as_many_points_as_one_machine_and_the_same(name, options):
    problem = pf.zoo.get(name)
    here, there = (pf.solve(problem, 30, points=1000, cluster=each, **options) for each in (None, Serial()))
    assert there.stats.rows == here.stats.rows
    for term, found in here.stats.residuals.items():
        np.testing.assert_allclose(there.stats.residuals[term].fitted, found.fitted, rtol=1e-6)
        np.testing.assert_allclose(there.stats.residuals[term].held_out, found.held_out, rtol=1e-6)
    np.testing.assert_allclose(there.error_estimate, here.error_estimate, rtol=1e-4)


def test_means_and_given_points_are_in_one_share():
    x = np.array([[0.25, 0.5], [0.75, 0.5]])
    problem = pf.Problem(
        pf.Box([0, 0], [1, 1]),
        operator=lambda u, x: -pf.laplacian(u)(x),
        source=lambda x: 2 * jnp.pi**2 * jnp.cos(jnp.pi * x[0]) * jnp.cos(jnp.pi * x[1]),
        conditions=[pf.Neumann(0.0), pf.Mean(0.0), pf.Dirichlet(0.0, on=x, name="points")],
    )
    here, there = (pf.solve(problem, 100, points=4000, cluster=each) for each in (None, Serial()))
    assert there.stats.rows == here.stats.rows
    z = problem.domain.sample(50)
    np.testing.assert_allclose(there(z), np.cos(np.pi * z[:, 0]) * np.cos(np.pi * z[:, 1]), atol=1e-4)
    np.testing.assert_allclose(there(z), here(z), atol=1e-6)


def test_searches_side_by_side_reach_the_tolerance(client):
    problem = pf.zoo.get("poisson-lshape")
    found = pf.solve(problem, tol=1e-6, cluster=client)
    assert found.converged
    assert found.errors().relative_l2 < 1e-6
    assert found.problem is problem


def test_the_best_of_searches_side_by_side_remains_if_none_converges(monkeypatch):
    monkeypatch.setattr(together, "FIRST", together.FIRST[:-1])  # networks take long
    problem = pf.zoo.get("helmholtz-1d")
    with pytest.warns(pf.errors.ConvergenceWarning):
        found = pf.solve(problem, tol=1e-12, max_features=4, max_seconds=0.0, cluster=Serial())
    assert not found.converged
    assert found.problem is problem
    assert len(found.attempts) > 1


def test_a_sweep_over_a_family_is_divided_among_workers(client):
    def rod(mu):
        return pf.Problem(
            pf.Interval(0, 1), lambda u, x: -pf.laplacian(u)(x) + mu * u(x), source=1.0, conditions=[pf.Dirichlet(0.0)]
        )

    family, mus = pf.Family(rod, pf.Chebyshev(pf.Interval(0, 1), 20)), np.linspace(1.0, 9.0, 4)
    sweeps = [family.sweep(mus, lambda u: u([0.5]), cluster=each) for each in (None, Serial(shares=2), client)]
    exact = (1 - 1 / np.cosh(np.sqrt(mus) / 2)) / mus
    for found in sweeps:
        assert found.converged.all()
        np.testing.assert_allclose(found.values, exact, rtol=1e-12)


def test_a_factored_problem_stays_on_the_cluster(client):
    problem = pf.zoo.get("poisson-1d")
    here, there = (pf.factor(problem, 60, cluster=each, **POINTS) for each in (None, client))
    sources = [lambda x, k=k: jnp.sin(k * x[0]) for k in (1, 2, 3)]
    x = problem.domain.sample(100)
    np.testing.assert_allclose(there.solve(sources)(x), here.solve(sources)(x), atol=1e-13)
    np.testing.assert_array_equal(there.points["equation"], here.points["equation"])
    values = np.sin(there.points["equation"] * [1, 2, 3])
    found = there.solve(values, {"dirichlet": 0.5})
    np.testing.assert_allclose(found(x), here.solve(values, {"dirichlet": 0.5})(x), atol=1e-13)
    assert not found.is_held_out
    assert max(found.residuals) < 1e-12
    kinked = np.abs(there.points["equation"])
    with pytest.warns(pf.errors.ConvergenceWarning):
        rough = [each.solve(np.where(kinked > 0.5, 1.0, 0.0)).residuals for each in (here, there)]
    np.testing.assert_allclose(*rough, rtol=1e-2)


def test_evaluation_is_divided_among_workers(client):
    u = pf.solve(pf.zoo.get("poisson-1d"), 60)
    x = u.problem.domain.sample(200_000)
    np.testing.assert_allclose(pf.cluster.evaluate(u, x, client), u(x), atol=1e-15)


def test_what_a_cluster_does_not_do_is_refused(client):
    problem = pf.zoo.get("poisson-square")
    with pytest.raises(SolveError, match="policy= belongs to a search in one process"):
        pf.solve(problem, tol=1e-8, cluster=client, policy=lambda search: None)
    boxes = pf.BoxPolynomials.grid(problem.domain, 2, 4)
    mean = problem.replace(conditions=[pf.Neumann(0.0), pf.Mean(0.0)])
    with pytest.raises(SolveError, match="condition on a mean"):
        pf.solve(mean, boxes, cluster=client)


@pytest.mark.parametrize("name", ["poisson-square", "poisson-lshape", "burgers"])
def test_boxes_are_eliminated_in_parts(client, name):
    problem = pf.zoo.get(name)
    boxes = pf.BoxPolynomials.grid(problem.domain, 6 if problem.domain.dim == 1 else 4, 8)
    cluster = pf.cluster.Dask(client, shares=3) if name == "poisson-square" else Serial(shares=3)
    here, there = (pf.solve(problem, boxes, tol=1.0, cluster=each) for each in (None, cluster))
    x = problem.domain.sample(100)
    np.testing.assert_allclose(there(x), here(x), atol=1e-11)
    assert (there.stats.rank, there.stats.rows) == (here.stats.rank, here.stats.rows)
    np.testing.assert_allclose(there.error_estimate, here.error_estimate, rtol=1e-2)
    assert there.stats.undetermined < 1e-8


def test_boxes_factored_in_parts_are_solved_for_other_data(client):
    problem = pf.zoo.get("poisson-square")
    boxes = pf.BoxPolynomials.grid(problem.domain, 4, 8)
    sources = [lambda x, k=k: jnp.sin(k * jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]) for k in (1, 2)]
    x = problem.domain.sample(100)
    expected = pf.factor(problem, boxes).solve(sources)(x)
    for cluster in (pf.cluster.Dask(client, shares=3), Serial(shares=4)):
        found = pf.factor(problem, boxes, cluster=cluster).solve(sources)
        np.testing.assert_allclose(found(x), expected, atol=1e-11)
        assert found.converged.all()


def test_parts_see_what_the_problem_leaves_free():
    free = pf.Problem(
        pf.Box([0, 0], [1, 1]), lambda u, x: -pf.laplacian(u)(x), source=0.0, conditions=[pf.Neumann(0.0)]
    )
    boxes = pf.BoxPolynomials.grid(free.domain, 3, 4)
    for cluster in (None, Serial(shares=4)):
        with pytest.warns(pf.errors.ConvergenceWarning, match="not unique"):
            assert not pf.solve(free, boxes, cluster=cluster).converged


def test_neither_the_number_of_workers_nor_their_death_changes_a_bit(client):
    problem = pf.zoo.get("poisson-1d")
    expected = pf.solve(problem, 60, cluster=pf.cluster.Dask(client, shares=12), **POINTS).coefficients
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10m"})
    local = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
    with patient, local as alone, Client(alone) as other:
        executor = pf.cluster.Dask(other, shares=12)
        with_one = pf.solve(problem, 60, cluster=executor, **POINTS).coefficients
        (pid,) = other.run(os.getpid).values()
        killer = threading.Timer(0.2, os.kill, [pid, signal.SIGKILL])
        killer.start()
        killed = pf.solve(problem, 60, cluster=executor, **POINTS).coefficients
        killer.join()
    np.testing.assert_array_equal(with_one, expected)
    np.testing.assert_array_equal(killed, expected)


def test_a_cluster_without_workers_is_reported():
    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster, Client(cluster) as client:
        executor = pf.cluster.Dask(client, patience=0.0)
        with pytest.raises(ClusterError, match="has had no workers"):
            executor.result(executor.submit(len, "", name="pdofm-test"))


def test_a_lost_scheduler_is_reported():
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        client = Client(cluster)
        executor = pf.cluster.Dask(client)
        waiting = executor.submit(time.sleep, 60, name="pdofm-test")
        threading.Timer(0.5, client.close).start()
        with pytest.raises(ClusterError, match="To resume, start a scheduler"):
            executor.result(waiting)
