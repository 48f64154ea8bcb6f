"""The experiments: what is registered, that runs resume, and that numbers mean what they say."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm import experiments
from pdofm.errors import UnknownNameError
from pdofm.experiments import report, runner, tables, transfer
from pdofm.experiments.case import Case, Measured
from pdofm.experiments.methods import METHODS, Setup


def case(name: str, run, **options) -> Case:
    return Case("test", name, "PD-OFM", "paper", run, **options)


def test_every_case_has_a_name_of_its_own():
    slugs = [each.slug for each in experiments.select()]
    assert len(slugs) == len(set(slugs))


def test_every_table_has_all_methods_with_both_settings():
    for experiment, problem in tables.SETUPS:
        found = {(c.method, c.settings) for c in tables.cases() if (c.experiment, c.case) == (experiment, problem)}
        assert found == {(method, settings) for method in METHODS for settings in ("paper", "ours")}


def test_an_unknown_experiment_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Unknown experiment 'helmholz'. Did you mean 'helmholtz'"):
        experiments.select(["helmholz"])


def test_all_means_all_and_quick_means_fewer():
    assert len(experiments.select(["all"])) == len(experiments.select())
    assert 0 < len(experiments.select(quick=True)) < len(experiments.select())


def test_results_are_medians_with_their_range_beside_the_published_value(tmp_path):
    each = case("numbers", lambda seed: Measured({"error": float(10**seed)}, {}), published={"error": 5.0})
    (row,) = runner.run([each], 3, tmp_path)
    assert (row["measured"], row["low"], row["high"], row["published"], row["seeds"]) == (10.0, 1.0, 100.0, 5.0, 3)
    assert json.loads((tmp_path / "results.json").read_text()) == [row]


def test_finished_cases_are_kept_and_a_killed_run_loses_one_at_most(tmp_path):
    done = []

    def run(seed: int) -> Measured:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(seed)
        return Measured({"error": float(seed)}, {})

    with pytest.raises(KeyboardInterrupt):
        runner.run([case("a", run)], 4, tmp_path)
    assert done == [0, 1]
    done.clear()
    (row,) = runner.run([case("a", run)], 4, tmp_path)
    assert done == [2, 3]
    assert row["seeds"] == 4


def test_a_case_may_ask_for_fewer_seeds(tmp_path):
    (row,) = runner.run([case("a", lambda seed: Measured({"error": 1.0}, {}), seeds=1)], 5, tmp_path)
    assert row["seeds"] == 1


def test_the_table_has_published_and_measured_values(tmp_path):
    rows = runner.run([case("a", lambda seed: Measured({"error": 2e-9}, {}), published={"error": 3e-8})], 1, tmp_path)
    assert "| PD-OFM | paper | error | 3.0e-08 | 2.0e-09 |" in report.markdown(rows)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("settings", ["paper", "ours"])
def test_every_method_solves_a_small_problem(method, settings):
    setup = Setup(lambda: pf.zoo.get("poisson-1d"), 20, 0.1, 20, 100, 2, 2)
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


def test_training_and_test_solutions_differ():
    assert transfer.TEST_SEED != transfer.TRAINING_SEED
