"""The experiments: what is registered, that runs resume, and that numbers mean what they say."""

import dataclasses
import json
import os
import pickle
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm import experiments
from pdofm.errors import UnknownNameError
from pdofm.experiments import claims, forms, recipes, report, runner, tables, transfer
from pdofm.experiments.case import Case, Measured
from pdofm.experiments.methods import METHODS, Setup, quiet


def case(name: str, run, **options) -> Case:
    return Case("test", name, "PD-OFM", "paper", run, **options)


def measured(cases: list[Case], seeds: int, out) -> list[dict]:
    assert runner.run(cases, seeds, out) == []
    return runner.collect(cases, out)


def test_every_case_has_a_name_of_its_own():
    slugs = [each.slug for each in experiments.every()]
    assert len(slugs) == len(set(slugs))


def test_every_table_has_all_methods_with_both_settings():
    for experiment, problem in tables.SETUPS:
        found = {(c.method, c.settings) for c in tables.cases() if (c.experiment, c.case) == (experiment, problem)}
        assert found == {(method, settings) for method in METHODS for settings in ("paper", "ours")}


def test_an_evolution_is_measured_against_its_reference():
    (beam,) = (each for each in experiments.every() if (each.experiment, each.case) == ("evolution", "beam"))
    found = beam.run(0).metrics
    assert beam.published == {"relative L2": 9.3e-9}
    assert found["converged"] == 1
    assert found["relative L2"] < 1e-10
    assert 0.1 * found["relative L2"] < found["estimated error"] < 1e-10


def test_an_unknown_experiment_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Unknown experiment 'helmholz'. Did you mean 'helmholtz'"):
        experiments.select(["helmholz"])


def test_all_means_all_and_quick_means_fewer():
    assert len(experiments.select(["all"])) == len(experiments.select())
    assert 0 < len(experiments.select(quick=True)) < len(experiments.select())


def test_what_is_not_in_the_paper_runs_by_name_only():
    assert {each.experiment for each in experiments.select(["forms"])} == {"forms"}
    beside = {"forms", "recipes", "tolerance", "local", "evolution"}
    assert not beside & {each.experiment for each in experiments.select()}
    assert beside < set(experiments.names())


def test_results_are_medians_with_their_range_beside_the_published_value(tmp_path):
    each = case("numbers", lambda seed: Measured({"error": float(10**seed)}, {}), published={"error": 5.0})
    (row,) = measured([each], 3, tmp_path)
    assert (row["measured"], row["low"], row["high"], row["published"], row["seeds"]) == (10.0, 1.0, 100.0, 5.0, 3)
    assert json.loads((tmp_path / "results.json").read_text()) == [row]


def test_finished_cases_are_kept_and_a_killed_run_loses_one_at_most(tmp_path):
    done = []

    def run(seed: int) -> Measured:
        if len(done) == 2:
            raise KeyboardInterrupt("killed")
        done.append(seed)
        return Measured({"error": float(seed)}, {})

    with pytest.raises(KeyboardInterrupt, match="killed"):
        runner.run([case("a", run)], 4, tmp_path)
    assert done == [0, 1]
    done.clear()
    (row,) = measured([case("a", run)], 4, tmp_path)
    assert done == [2, 3]
    assert row["seeds"] == 4


def test_a_case_may_ask_for_fewer_seeds(tmp_path):
    (row,) = measured([case("a", lambda seed: Measured({"error": 1.0}, {}), seeds=1)], 5, tmp_path)
    assert row["seeds"] == 1


def test_another_version_measures_again(tmp_path, monkeypatch):
    runs = []
    each = case("a", lambda seed: Measured({"error": float(len(runs))}, {}) if not runs.append(seed) else None)
    measured([each], 1, tmp_path)
    monkeypatch.setattr(runner, "VERSION", "another")
    measured([each], 1, tmp_path)
    assert runs == [0, 0]


def test_an_error_is_reported_and_the_other_cases_go_on(tmp_path):
    def fail(seed: int) -> Measured:
        raise pf.errors.ProblemError("impossible")

    cases = [case("bad", fail), case("good", lambda seed: Measured({"error": 1.0}, {}))]
    failures = runner.run(cases, 1, tmp_path)
    assert [(failure.job.case.case, failure.message) for failure in failures] == [("bad", "impossible")]
    assert [row["case"] for row in runner.collect(cases, tmp_path)] == ["good"]


def test_a_run_of_some_cases_keeps_the_results_of_the_others(tmp_path):
    a, b = (case(name, lambda seed: Measured({"error": 1.0}, {})) for name in "ab")
    runner.run([a], 1, tmp_path)
    runner.run([b], 2, tmp_path)
    assert [(row["case"], row["seeds"]) for row in runner.collect([a, b], tmp_path)] == [("a", 1), ("b", 2)]


def test_a_diverged_value_is_the_largest_and_valid_json(tmp_path):
    each = case("a", lambda seed: Measured({"error": [1.0, np.nan, np.inf][seed]}, {}))
    (row,) = measured([each], 3, tmp_path)
    assert (row["measured"], row["low"], row["high"]) == (None, 1.0, None)
    assert json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail) == [row]
    assert "| diverged | 1 | diverged |" in report.markdown([row])


def test_processes_side_by_side_measure_the_same(tmp_path):
    cases = [each for each in experiments.select(["helmholtz"]) if each.method == "Chebyshev"]
    here, there = tmp_path / "here", tmp_path / "there"
    rows = measured(cases, 1, here)
    assert runner.run(cases, 1, there, pool=pf.cluster.Processes(2)) == []
    for a, b in zip(rows, runner.collect(cases, there), strict=True):
        np.testing.assert_allclose(a["measured"], b["measured"], atol=1e-13)


def test_the_table_has_published_and_measured_values(tmp_path):
    rows = measured([case("a", lambda seed: Measured({"error": 2e-9}, {}), published={"error": 3e-8})], 1, tmp_path)
    assert "| PD-OFM | paper | error | 3.0e-08 | 2.0e-09 |" in report.markdown(rows)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("settings", ["paper", "ours"])
def test_every_method_solves_a_small_problem(method, settings):
    setup = Setup(lambda: pf.zoo.get("poisson-1d"), 20, 0.1, 20, 100, 2)
    assert setup.solution(method, settings, 0).errors().relative_l2 < 1e-2


def test_the_source_of_a_random_solution_is_its_negative_laplacian():
    solutions = transfer.gaussians("stated", 7, 3)
    x = jnp.array([0.2, -0.4])
    hessian = jax.hessian(solutions.values)(x)
    np.testing.assert_allclose(solutions.sources(x), -np.trace(hessian, axis1=1, axis2=2), rtol=1e-10)


@pytest.mark.parametrize("distribution", transfer.DISTRIBUTIONS)
def test_covariances_are_in_the_stated_range(distribution):
    low, high = {"released": (0.2, 1.0), "stated": (0.1, 0.5)}[distribution]
    covariance = np.linalg.inv(np.asarray(transfer.gaussians(distribution, 200, 0).precisions))
    deviations = np.sqrt(np.diagonal(covariance, axis1=2, axis2=3))
    assert low <= deviations.min() < 1.1 * low
    assert 0.95 * high < deviations.max() <= high + 1e-12


@pytest.mark.parametrize("distribution", transfer.DISTRIBUTIONS)
def test_no_test_solution_is_a_training_solution(distribution):
    seeds = (transfer.TRAINING_SEED, transfer.TEST_SEED)
    training, test = (np.asarray(transfer.gaussians(distribution, 50, seed).values(jnp.zeros(2))) for seed in seeds)
    assert np.abs(training[:, None] - test).min() > 0


def row(experiment: str, problem: str, method: str, settings: str, value: float | None, **more) -> dict:
    base = {"experiment": experiment, "case": problem, "method": method, "settings": settings, "measured": value}
    return base | {"metric": "relative L2", "published": None} | more


def table(ofm: float | None, rival: float | None, problem=("helmholtz", "interval")) -> list[dict]:
    """One problem with rows for PD-OFM and its rivals, paper settings."""
    others = [row(*problem, m, "paper", rival, published=1e-6) for m in ("RFM", "TransNet")]
    return [row(*problem, "PD-OFM", "paper", ofm, published=1e-9), *others]


def verdict(rows: list[dict], words: str) -> str:
    (found,) = [each.verdict for each in claims.verdicts(rows) if words in each.claim]
    return found


@pytest.mark.parametrize(
    ("measured", "ours", "expected"),
    [
        (1e-10, None, claims.HOLDS),
        (1.1e-9, None, claims.HOLDS),
        (1e-8, 1e-10, claims.OURS_ONLY),
        (1e-8, 1e-8, claims.FAILS),
        (1e-8, None, claims.FAILS),
        (None, None, claims.FAILS),
    ],
)
def test_a_published_value_is_judged_by_what_was_measured(measured, ours, expected):
    rows = table(measured, 1e-6) + ([] if ours is None else [row("helmholtz", "interval", "PD-OFM", "ours", ours)])
    assert verdict(rows, "reaches") == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((1e-9, 1e-6), (1e-9, 1e-6), claims.HOLDS),
        ((1e-9, 1e-6), (1e-9, 1e-8), claims.PARTLY),
        ((1e-9, 1e-8), (1e-9, 1e-8), claims.FAILS),
        ((1e-9, 1e-6), (None, 1e-8), claims.PARTLY),  # a diverged PD-OFM counts against it
        ((1e-9, None), (1e-9, None), claims.HOLDS),
        ((None, None), (1e-9, 1e-8), claims.FAILS),  # where both diverge nothing is compared
    ],
)
def test_orders_of_magnitude_are_counted_over_the_problems(first, second, expected):
    rows = table(*first) + table(*second, problem=("poisson-2d", "square"))
    assert verdict(rows, "lower than RFM") == expected


@pytest.mark.parametrize(
    ("with_penalty", "expected"), [(1e-9, claims.HOLDS), (9e-9, claims.FAILS), (None, claims.FAILS)]
)
def test_orthogonality_must_pay(with_penalty, expected):
    rows = [*table(with_penalty, 1e-5), row("helmholtz", "interval", "PD-FM", "paper", 1e-8)]
    assert verdict(rows, "Orthogonality makes") == expected


@pytest.mark.parametrize(("ofm", "expected"), [(1e-9, claims.HOLDS), (1e-7, claims.FAILS), (None, claims.FAILS)])
def test_our_recipe_is_not_counted_for_the_claim_on_transfer(ofm, expected):
    metric = {"metric": "geometric mean, square, released"}
    rows = [row("transfer", "a", m, "paper", value, **metric) for m, value in (("PD-OFM", ofm), ("PD-FM", 1e-8))]
    rows.append(row("transfer", "trained for a family", "variable projection", "ours", 1e-12, **metric))
    assert verdict(rows, "improves transfer") == expected


def test_claims_about_nothing_that_was_measured_are_not_judged():
    assert claims.verdicts([]) == []


def test_cases_can_be_sent_to_other_processes():
    for each in experiments.every():
        assert pickle.loads(pickle.dumps(each)).fingerprint == each.fingerprint


def test_other_settings_are_another_measurement(tmp_path):
    runs = []

    def run(steps: int, seed: int) -> Measured:
        runs.append(steps)
        return Measured({"error": 1.0}, {})

    for steps in (100, 100, 200):
        measured([case("a", partial(run, steps))], 1, tmp_path)
    assert runs == [100, 200]


def test_an_interrupted_training_is_not_kept(tmp_path):
    """Pretraining returns what it has when it is interrupted; an experiment must not take that for its result."""
    setup = Setup(lambda: pf.zoo.get("poisson-1d"), 10, 0.1, 100, 50, 2)

    def interrupt(features: pf.Features) -> float:
        raise KeyboardInterrupt

    def run(seed: int) -> Measured:
        setup.trained(setup.problem(), "PD-OFM", "paper", seed, record={"stop": interrupt}, tol=0.0)
        return Measured({"error": 1.0}, {})

    with pytest.raises(KeyboardInterrupt):
        runner.run([case("a", run)], 1, tmp_path)
    assert runner.collect([case("a", run)], tmp_path) == []


def test_a_seed_that_failed_does_not_hide_the_others(tmp_path):
    def run(seed: int) -> Measured:
        if seed == 0:
            raise ValueError("unlucky")
        return Measured({"error": float(seed)}, {})

    (failure,) = runner.run([case("a", run)], 3, tmp_path)
    assert failure.message == "ValueError: unlucky"
    (row,) = runner.collect([case("a", run)], tmp_path)
    assert (row["seeds"], row["measured"]) == (2, 1.5)


class TestForms:
    """Penalties on features, at points where two of them are orthonormal and a third is twice the first."""

    POINTS = jnp.linspace(-1, 1, 400, endpoint=False)[:, None] + 1 / 400

    def value(self, penalty, functions) -> float:
        features = pf.Functions(pf.Interval(-1, 1), functions)
        return float(penalty(features, jnp.zeros((len(functions), 1)), SimpleNamespace(interior=self.POINTS)))

    @staticmethod
    def wave(k: int, size: float = 1.0):
        return lambda x: size * jnp.sin(k * jnp.pi * x[0])

    def test_angles_do_not_depend_on_sizes(self):
        assert self.value(forms.normalised, [self.wave(1, 5.0), self.wave(2, 0.1)]) < 1e-12
        assert self.value(forms.normalised, [self.wave(1), self.wave(1, 2.0)]) == pytest.approx(2**0.5)

    def test_the_determinant_is_smallest_for_an_orthonormal_basis(self):
        unit = 2.0**0.5  # mean of sin² is 1/2
        best = self.value(forms.log_determinant, [self.wave(1, unit), self.wave(2, unit)])
        assert best == pytest.approx(2.0, abs=1e-5)
        assert self.value(forms.log_determinant, [self.wave(1, 2.0), self.wave(2, unit)]) > best
        assert self.value(forms.log_determinant, [self.wave(1, unit), self.wave(1, unit)]) > best + 5


def test_compressed_features_are_the_largest_directions_and_orthonormal():
    """Of x, 2 x and 1000 sin(3x), sampled, two directions are left: a third is of the size of rounding."""
    box = pf.Interval(-1, 1)
    points = box.sample(200)
    plain = pf.Functions(box, [lambda x: x[0], lambda x: 2 * x[0], lambda x: 1000 * jnp.sin(3 * x[0])])
    few = recipes.compressed(plain, points, 2)
    U = np.asarray(jax.vmap(few)(jnp.asarray(points)))
    np.testing.assert_allclose(U.T @ U, np.eye(2), atol=1e-9)
    projected = U @ (U.T @ points[:, 0])
    np.testing.assert_allclose(projected, points[:, 0], atol=1e-9)


def test_gauss_newton_steps_bring_the_network_to_the_solution():
    """u'' = eˣ with its end values: least squares in six features, before and after, medians over seeds."""
    line = pf.Problem(
        pf.Interval(-1, 1), lambda u, x: pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=lambda x: jnp.exp(x[0])
    )
    errors = []
    for seed in range(3):
        start = pf.NetworkFeatures(line.domain, 6, activation="tanh", scale=1.0, key=seed)
        trained = recipes.gauss_newton(line, start, 40, 30, seed)
        with quiet():
            errors.append([pf.solve(line, each, points=60).errors().relative_l2 for each in (start, trained)])
    before, after = np.median(errors, axis=0)
    assert after < before / 10


def test_the_scaled_residual_is_that_of_rows_whose_largest_entry_is_100():
    """u = c with 2 c = 2 inside and c = 1 at the ends: c = 3 is off by 2 in every row, once it is scaled."""
    problem = pf.Problem(
        pf.Interval(0, 1), lambda u, x: 2 * u(x), conditions=[pf.Dirichlet()], exact=lambda x: 1.0 + 0 * x[0]
    )
    features = pf.Functions(problem.domain, [lambda x: 1.0 + 0 * x[0]])
    with quiet():  # one feature leaves no coarser space to estimate the error from
        off = dataclasses.replace(pf.solve(problem, features), coefficients=np.array([[3.0]]))
    setup = Setup(lambda: problem, 1, 0.0, 1, 16, 2)
    assert tables.scaled_residual(setup, off, 0) == pytest.approx(200.0)


def test_a_killed_run_leaves_no_process_behind():
    script = """
import multiprocessing, os, signal, time
from concurrent.futures import ProcessPoolExecutor
from pdofm.cluster.processes import start_worker
pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), start_worker, (None,))
print(pool.submit(os.getpid).result(), flush=True)
pool.submit(time.sleep, 600)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, stdout=subprocess.PIPE, text=True, timeout=120)
    worker = int(done.stdout)
    for _ in range(100):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("the worker still runs")
