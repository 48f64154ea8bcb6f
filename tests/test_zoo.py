"""Every basic problem of the zoo: its exact solution solves it, and by default it is solved as README.md says."""

import re
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.discrete.collocate import collocate
from pdofm.errors import PdofmError, UnknownNameError

NAMES = pf.zoo.names("basic")

PUBLISHED = ["sines-5d", "sines-10d", "heat-ball-5d", "heat-scales"]
"""The problems of that group with exact solutions; in a hundred dimensions it takes long to evaluate them."""


class Claim(NamedTuple):
    """A row of the table "How accurate it is" of README.md."""

    features: str
    error: float
    estimate: float


def claims() -> dict[str, Claim]:
    """The table of README.md by problem, so that it is stated once and tested as it stands there."""
    text = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    section = text.split("## How accurate it is\n")[1].split("\n## ")[0]
    row = re.compile(r"^\| (\S+) \| .+ \| ([\dx ]+) \| (\d\.\de[+-]\d+) \| (\d\.\de[+-]\d+) \|$", re.MULTILINE)
    return {name: Claim(size, float(error), float(estimate)) for name, size, error, estimate in row.findall(section)}


CLAIMS = claims()

UNRESOLVED = ("interior-layer", "two-layers", "slanted-layer")
"""Layers that default features cannot resolve: a tolerance must be asked for."""

LARGE = ("poisson-cube", "poisson-5d", "kovasznay")
"""Problems of which one seed takes seconds."""


@pytest.fixture(scope="module", params=NAMES)
def problem(request) -> pf.Problem:
    return pf.zoo.get(request.param)


# ---- names


def test_the_zoo_has_the_problems_of_the_paper_and_others():
    paper = ["helmholtz-1d", "poisson-1d", "poisson-square", "poisson-lshape", "poisson-annulus", "poisson-cube"]
    assert {*paper, "wave-periodic", "kovasznay"} <= set(NAMES)
    others = ["heat", "boundary-layer", "burgers", "biharmonic-plate", "elasticity", "poisson-polygon", "poisson-5d"]
    assert set(others) <= set(NAMES)
    assert len(NAMES) == len(set(NAMES))


def test_groups_make_up_the_zoo():
    groups = ("basic", "evolution", "local", "materials", "published")
    assert pf.zoo.names() == [name for group in groups for name in pf.zoo.names(group)]
    assert len(set(pf.zoo.names())) == len(pf.zoo.names())
    with pytest.raises(UnknownNameError, match=r"Unknown group of problems 'locla'. Did you mean 'local'"):
        pf.zoo.names("locla")


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_knows_its_name_and_its_exact_solution(name):
    problem = pf.zoo.get(name)
    assert problem.name == name
    assert problem.exact is not None


def test_every_problem_is_described_in_one_line():
    for name in pf.zoo.names():
        assert 10 < len(pf.zoo.describe(name)) <= 120
        assert "\n" not in pf.zoo.describe(name)


@pytest.mark.parametrize("ask", [pf.zoo.get, pf.zoo.describe])
def test_a_name_with_a_typo_gets_the_nearest(ask):
    with pytest.raises(UnknownNameError, match=r"Unknown problem 'poison-sqare'. Did you mean 'poisson-square'"):
        ask("poison-sqare")
    with pytest.raises(PdofmError, match=r"Unknown problem 'xyz'. Known: .*kovasznay.*wave-periodic"):
        ask("xyz")


def test_an_unknown_name_is_a_lookup_error():
    with pytest.raises(LookupError, match="Unknown problem"):
        pf.zoo.get("")


# ---- the exact solution


@pytest.mark.parametrize("problem", [*NAMES, *PUBLISHED], indirect=True)
def test_the_exact_solution_satisfies_the_equation_and_all_conditions(problem):
    """lhs(exact) = rhs at points of every term, relative to the size of what the left side adds up."""
    layout, exact = problem.layout, problem.exact_fields
    blocks = collocate(problem, 64, 32 * len(problem.terms), sampling="random", key=9)
    for block in blocks:

        def residual(z, normal, block=block):
            args = layout.arguments(z)
            return block.term.lhs(exact, exact, args, normal) - block.right_side(layout, args, normal)

        points, normals = jnp.asarray(block.points), jnp.asarray(block.normals)
        found = np.asarray(jax.jit(jax.vmap(residual))(points, normals))
        scale = np.abs(problem.exact_values(block.points)).max()
        assert np.isfinite(found).all()
        assert np.abs(found).max() <= 1e-10 * max(scale, 1.0), block.term.name


def test_the_reference_of_the_four_holes_agrees_with_a_solution_in_boxes():
    """The file comes from harmonic functions that know the symmetries; boxes know nothing of them."""
    reference = pf.zoo.reference("holes-laplace")
    assert reference is not None
    assert reference.error < 1e-12
    solution = solve_in_boxes(pf.zoo.get("holes-laplace"), 1e-6)
    assert reference.relative_l2(solution) < 3e-6


SOURCES = {
    # -Δ sin πx sin πy … = d π² sin πx sin πy …
    "poisson-square": lambda x: 2 * np.pi**2 * np.prod(np.sin(np.pi * x), axis=1),
    "poisson-lshape": lambda x: 2 * np.pi**2 * np.prod(np.sin(np.pi * x), axis=1),
    "poisson-annulus": lambda x: 2 * np.pi**2 * np.prod(np.sin(np.pi * x), axis=1),
    "poisson-cube": lambda x: 3 * np.pi**2 * np.prod(np.sin(np.pi * x), axis=1),
    "poisson-1d": lambda x: np.ones(len(x)),
    "poisson-5d": lambda x: 5 * np.cos(x.sum(axis=1)),
    # (1 + 9 - 1) exp(x) cos 3y
    "poisson-polygon": lambda x: 9 * np.exp(x[:, 0]) * np.cos(3 * x[:, 1]),
    "wave-periodic": lambda x: np.zeros(len(x)),
    "heat": lambda x: np.zeros(len(x)),
    "burgers": lambda x: np.zeros(len(x)),
    # ΔΔ of ¼ (1 - cos 2πx)(1 - cos 2πy)
    "biharmonic-plate": lambda x: (
        4
        * np.pi**4
        * (4 * np.prod(np.cos(2 * np.pi * x), axis=1) - np.cos(2 * np.pi * x[:, 0]) - np.cos(2 * np.pi * x[:, 1]))
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_source_is_the_one_of_the_formula(name):
    problem = pf.zoo.get(name)
    points = problem.domain.sample(20)
    right = problem.right_side(problem.terms[0])
    normal = jnp.zeros(problem.domain.dim - problem.layout.has_time)
    at = jax.jit(jax.vmap(lambda z: right(problem.layout, problem.layout.arguments(z), normal)))
    found = at(jnp.asarray(points))
    np.testing.assert_allclose(np.asarray(found)[:, 0], SOURCES[name](points), rtol=1e-10, atol=1e-10)


# ---- solving, with nothing chosen


def test_the_readme_reports_every_problem():
    assert list(CLAIMS) == NAMES


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
def test_the_default_solve_is_as_accurate_as_the_readme_says_and_knows_it(problem):
    """Errors and estimates are at most ten times those reported, for every seed, and no estimate is below a tenth of
    the true error. Where nothing is resolved estimates mean nothing, but then no solution may pass for converged."""
    claim = CLAIMS[problem.name]
    solutions = [pf.solve(problem, key=seed) for seed in ((0,) if problem.name in LARGE else (0, 1, 2))]
    errors, estimates = [u.errors().relative_l2 for u in solutions], [u.error_estimate for u in solutions]
    assert max(errors) <= 10 * claim.error, errors
    stats = solutions[0].stats
    assert claim.features == (f"{stats.components} x " if stats.components > 1 else "") + f"{stats.features}"
    if problem.name in UNRESOLVED:
        assert not any(u.converged for u in solutions)
    else:
        assert max(estimates) <= 10 * claim.estimate, estimates
        assert all(estimate >= error / 10 for estimate, error in zip(estimates, errors, strict=True))
        assert max(len(u.stats.steps) for u in solutions) <= 10


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")  # rtol = 1e-10 takes a few steps more
def test_picard_solves_kovasznay_in_twenty_steps():
    u = pf.solve(pf.zoo.get("kovasznay"), 300, method=pf.Picard(max_steps=20))
    assert all(e.relative_l2 <= 1e-7 for e in u.errors().components.values())
