"""Features on another domain: every family moves rightly, or refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import FeaturesError

BOX, THERE = pf.Box([0, -1], [2, 1]), pf.Box([3, 0], [4, 5])
HALVES = pf.Regions(left=pf.Box([0, -1], [1, 1]), right=pf.Box([1, -1], [2, 1]))

MOVING = {
    "network": pf.NetworkFeatures(BOX, 6),
    "random": pf.RandomFeatures(BOX, 6),
    "transnet": pf.TransNet(BOX, 6),
    "chebyshev": pf.Chebyshev(BOX, degree=3),
    "sparse": pf.SparsePolynomials(BOX, degree=4, variables=1),
    "combined": pf.Chebyshev(BOX, degree=3).orthonormal(BOX),
    "fourier": pf.Fourier(BOX, degree=2),
    "hard": pf.HardDirichlet(pf.Chebyshev(BOX, degree=3), BOX),
}

TIED = {
    "partition": (
        pf.PartitionOfUnity(lambda box, key: pf.RandomFeatures(box, 3, key=key), BOX, 2),
        r"its subdomains\. Make the partition",
    ),
    "corner functions": (pf.CornerFunctions(BOX, convex=True), r"the corners of its domain\. Make them"),
    "hole functions": (
        pf.HoleFunctions(BOX - pf.Disk(BOX.lower + 0.5, 0.2), 2),
        r"the holes of its domain\. Make them",
    ),
    "edge functions": (pf.EdgeFunctions(pf.Box([0, 0, 0], [1, 1, 1])), r"the edges of its domain\. Make them"),
    "bore functions": (
        pf.BoreFunctions(pf.Box([0, 0, 0], [1, 1, 1]) - pf.Cylinder([0.5, 0.5, -1], [0.5, 0.5, 2], 0.2)),
        r"the bores of its domain\. Make them",
    ),
    "stretched": (
        pf.StretchedPolynomials(BOX, degree=3, direction=[1, 0], center=1.0, width=0.1),
        r"its layer\. Make them",
    ),
    "boxes": (pf.BoxPolynomials.grid(BOX, 2, 3), r"a tree of boxes\. Solve on the other domain"),
    "features in boxes": (
        pf.BoxFeatures(lambda box, key: pf.RandomFeatures(box, 9, key=key), BOX, 2),
        r"its boxes\. Make it anew on the other domain",
    ),
    "regions": (
        pf.RegionFeatures(HALVES, left=pf.Chebyshev(BOX, degree=2), right=pf.Chebyshev(BOX, degree=2)),
        r"its regions\. Make features of each region",
    ),
    "concatenated": (
        pf.Concatenate(pf.Chebyshev(BOX, degree=2), pf.RandomFeatures(BOX, 3)),
        r"its boxes\. Move its parts with on\(\)",
    ),
    "functions": (
        pf.Functions(BOX, [lambda x: x[0]]),
        r"the coordinates that its functions are written in\. State them",
    ),
}


def all_families() -> set[type]:
    public = (getattr(pf, name) for name in pf.__all__)
    return {each for each in public if isinstance(each, type) and issubclass(each, pf.Features)} - {pf.Features}


def test_every_family_is_looked_at():
    looked_at = {type(features) for features in (*MOVING.values(), *(each for each, _ in TIED.values()))}
    assert all_families() <= looked_at | {pf.HarmonicPolynomials}


def test_harmonic_polynomials_stay_harmonic_and_are_the_same_in_a_similar_box():
    features, larger = pf.HarmonicPolynomials(BOX, 5), pf.Box([3, 0], [7, 4])
    x = BOX.sample(20, "random")
    expected = jax.vmap(features)(jnp.asarray(x))
    moved = features.on(larger)
    np.testing.assert_allclose(jax.vmap(moved)(jnp.asarray(larger.lower + 2 * (x - BOX.lower))), expected, atol=1e-13)
    second = features.on(THERE).jets(THERE.sample(20), [(2, 0), (0, 2)])
    np.testing.assert_allclose(second[0] + second[1], 0, atol=1e-12)


@pytest.mark.parametrize("name", MOVING)
def test_moved_features_have_the_same_values_at_corresponding_points(name):
    features = MOVING[name]
    x = BOX.sample(20, "random")
    y = THERE.lower + (x - BOX.lower) / (BOX.upper - BOX.lower) * (THERE.upper - THERE.lower)
    moved = features.on(THERE)
    expected = jax.vmap(features)(jnp.asarray(x))
    np.testing.assert_allclose(jax.vmap(moved)(jnp.asarray(y)), expected, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(moved.jets(y, [(0, 0)])[0], expected, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal([moved.lower, moved.upper], [THERE.lower, THERE.upper])


@pytest.mark.parametrize("name", TIED)
def test_features_that_cannot_be_moved_say_what_to_do(name):
    features, message = TIED[name]
    with pytest.raises(FeaturesError, match=f"{type(features).__name__} is tied to {message}"):
        features.on(THERE if features.dim == 2 else pf.Box([0, 0, 0], [2, 2, 2]))


def test_features_do_not_move_to_another_dimension():
    with pytest.raises(FeaturesError, match=r"defined in 2 dimensions, the domain has 1. Make or load features"):
        MOVING["network"].on(pf.Interval(0, 1))


def test_hard_conditions_move_to_a_domain_only():
    with pytest.raises(FeaturesError, match=r"vanishes on the boundary of a domain.*Give a domain"):
        MOVING["hard"].on(pf.Chebyshev(THERE, degree=2))


def test_hard_conditions_that_were_moved_solve_there():
    problem = pf.Problem(
        THERE,
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.sin(jnp.pi * (x[0] - 3)) * jnp.sin(jnp.pi * x[1] / 5),
    )
    hard = pf.HardDirichlet(pf.Chebyshev(BOX, degree=14), BOX).on(THERE)
    assert pf.solve(problem, hard).errors().relative_l2 < 1e-9
