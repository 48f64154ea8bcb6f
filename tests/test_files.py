"""Solutions in files and in pickles, and searches that are interrupted."""

import json
import pickle
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load as parsed
from safetensors.numpy import save as serialised

import pdofm as pf
from pdofm.errors import ConvergenceWarning, FeaturesError, ProblemError

KINDS = {
    "polynomials": lambda: solved("poisson-lshape", degree=8),
    "system": lambda: pf.solve(pf.zoo.get("kovasznay"), 40),
    "evolution": lambda: solved("heat", degree=8),
    "corners": lambda: pf.solve(pf.zoo.get("poisson-corner"), tol=1e-6),
    "boxes": lambda: pf.solve(pf.zoo.get("interior-layer"), tol=1e-6),
}


def solved(name, degree):
    problem = pf.zoo.get(name)
    return pf.solve(problem, pf.Chebyshev(problem.domain, degree=degree))


@pytest.fixture(scope="module", params=KINDS)
def solution(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KINDS[request.param]()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "u.pdofm"


def test_a_solution_comes_back_with_the_same_bits_and_all_that_is_known_of_it(solution, path):
    pf.save(path, solution)
    again = pf.load(path)
    points = solution.problem.domain.sample(200)
    np.testing.assert_array_equal(again(points), solution(points))
    np.testing.assert_array_equal(again.gradient(points), solution.gradient(points))
    assert again.verdict == solution.verdict
    assert again.stats == solution.stats
    assert (again.error_estimate, again.space) == (solution.error_estimate, solution.space)
    assert again.search == solution.search
    assert repr(again) == repr(solution)
    assert repr(again.problem.domain) == repr(solution.problem.domain)


def test_a_pickled_solution_is_the_same_function(solution):
    again = pickle.loads(pickle.dumps(solution))
    points = solution.problem.domain.sample(50)
    np.testing.assert_array_equal(again(points), solution(points))


@pytest.fixture(scope="module")
def simple():
    return solved("poisson-lshape", degree=14)


def test_a_loaded_solution_is_drawn_saved_again_and_used_in_another_problem(simple, path, tmp_path):
    pf.save(path, simple)
    again = pf.load(path)
    again.plot(tmp_path / "u.png")
    pf.save(tmp_path / "v.pdofm", again)
    assert (tmp_path / "v.pdofm").read_bytes() == path.read_bytes()
    problem = pf.Problem(
        simple.problem.domain, lambda u, x: u(x) - pf.laplacian(u)(x), source=again, conditions=[pf.Dirichlet(again)]
    )
    assert np.isfinite(pf.solve(problem, pf.Chebyshev(problem.domain, degree=14)).coefficients).all()
    assert float(pf.laplacian(again)(jnp.array([-0.5, 0.5]))) == pytest.approx(
        float(pf.laplacian(simple)(jnp.array([-0.5, 0.5])))
    )


def test_a_loaded_solution_says_that_it_does_not_know_its_equation(simple, path):
    pf.save(path, simple)
    again = pf.load(path)
    assert "without its equation" in repr(again.problem)
    with pytest.raises(ProblemError, match="does not know its equation"):
        pf.solve(again.problem)
    with pytest.raises(ProblemError, match="has no equation"):
        again.problem.replace(source=1.0)
    with pytest.raises(ProblemError, match="no exact solution"):
        again.errors()


def test_a_domain_given_by_a_function_is_replaced_by_its_outline(path):
    class Strange(pf.Disk):
        arguments = None

    domain = Strange()
    problem = pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), source=1.0, conditions=[pf.Dirichlet(0.0)])
    pf.save(path, pf.solve(problem, pf.Chebyshev(domain, degree=4)))
    again = pf.load(path).problem.domain
    assert isinstance(again, pf.Polygon)
    assert again.measure == pytest.approx(np.pi, rel=1e-3)


def test_only_features_and_solutions_are_saved(simple, path):
    with pytest.raises(FeaturesError, match=r"save\(\) writes features or a solution; got list"):
        pf.save(path, [1])  # pyright: ignore[reportArgumentType]
    with pytest.raises(FeaturesError, match="The path comes first"):
        pf.save(simple, path)  # pyright: ignore[reportArgumentType]


def damaged(simple, path, change):
    """A file whose header was changed by `change(header, arrays)`."""
    pf.save(path, simple)
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    about, arrays = json.loads(header["solution"]), dict(parsed(data))
    change(about, arrays)
    path.write_bytes(serialised(arrays, metadata={**header, "solution": json.dumps(about)}))


DAMAGE = {
    "fewer coefficients": lambda about, arrays: arrays.update(coefficients=arrays["coefficients"][:-1].copy()),
    "rounded coefficients": lambda about, arrays: arrays.update(coefficients=arrays["coefficients"].astype("float32")),
    "no coefficients": lambda about, arrays: arrays.pop("coefficients"),
    "more unknowns": lambda about, arrays: about.update(unknowns=[["u", 10**12]]),
    "other domain": lambda about, arrays: about.update(domain={"kind": "Exec", "arguments": {}}),
    "domain of another dimension": lambda about, arrays: about.update(
        domain={"kind": "Interval", "arguments": {"a": {"value": 0}, "b": {"value": 1}}}
    ),
    "argument that is no number": lambda about, arrays: about.update(
        domain={"kind": "Interval", "arguments": {"a": {"value": {"x": 1}}, "b": {"value": 1}}}
    ),
    "unknown status": lambda about, arrays: about["verdict"].update(status="PERFECT"),
    "more statistics": lambda about, arrays: about["stats"].update(run="code"),
    "no domain": lambda about, arrays: about.pop("domain"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_file_that_was_tampered_with_is_refused(simple, path, name):
    damaged(simple, path, DAMAGE[name])
    with pytest.raises(FeaturesError, match="does not describe a solution of this package"):
        pf.load(path)


def test_a_truncated_file_is_refused(simple, path):
    pf.save(path, simple)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FeaturesError, match="not a complete safetensors file"):
        pf.load(path)


# ---- Ctrl-C ----


def test_an_interrupted_search_returns_its_best_solution():
    problem = pf.zoo.get("poisson-lshape")

    def policy(search):
        search.attempt("few polynomials", "a first look", pf.Chebyshev(problem.domain, degree=3))
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="the search was interrupted"):
        u = pf.solve(problem, tol=1e-8, policy=policy)
    assert u.verdict.status is pf.Status.INTERRUPTED
    assert len(u.attempts) == 1
    assert np.isfinite(u(np.array([-0.5, -0.5])))


def test_a_search_that_is_interrupted_before_it_found_anything_is_over():
    def policy(search):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pf.solve(pf.zoo.get("poisson-lshape"), tol=1e-8, policy=policy)
