"""The metrics against mathematics."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial import legendre

from pdofm import metrics
from pdofm.errors import FeaturesError, PdofmError, ProblemError


def orthonormal_legendre(nodes: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Values √(k + ½) P_k(x_i), k < count, and the Gauss weights: exact inner products on [-1, 1] for count ≤ nodes."""
    x, w = legendre.leggauss(nodes)
    return legendre.legvander(x, count - 1) * np.sqrt(np.arange(count) + 0.5), w


def orthonormal_columns(rows: int, columns: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((rows, columns)))[0]


# ---- errors of solutions


def test_relative_l2_of_a_scaled_solution_is_the_scale():
    exact = np.sin(np.linspace(0, 3, 50))
    assert metrics.relative_l2(1.25 * exact, exact) == pytest.approx(0.25, rel=1e-14)


def test_relative_l2_is_the_formula(seed):
    u, exact = np.random.default_rng(seed).standard_normal((2, 40, 3))
    expected = np.sqrt(np.sum((u - exact) ** 2) / np.sum(exact**2))
    assert metrics.relative_l2(u, exact) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_relative_l2_does_not_depend_on_units_even_where_squares_leave_float64(scale):
    u, exact = np.array([3.0, 5.0]), np.array([3.0, 4.0])
    assert metrics.relative_l2(u * scale, exact * scale) == pytest.approx(0.2, rel=1e-14)


def test_max_error_finds_the_worst_point_of_either_sign():
    assert metrics.max_error([1.0, 2.0, 3.0], [1.0, 2.5, 2.75]) == 0.5


def test_an_exact_answer_has_no_error_and_jax_arrays_are_welcome():
    u = jnp.linspace(1.0, 2.0, 5)
    assert metrics.relative_l2(u, u) == 0.0
    assert metrics.max_error(u, u) == 0.0


def test_a_solution_that_blew_up_has_an_error_that_is_nan():
    assert np.isnan(metrics.relative_l2([1.0, np.nan], [1.0, 2.0]))
    assert np.isnan(metrics.max_error([1.0, np.nan], [1.0, 2.0]))


@pytest.mark.parametrize("error", [metrics.relative_l2, metrics.max_error])
@pytest.mark.parametrize(
    ("u", "exact", "message"),
    [
        (np.ones((3, 1)), np.ones(3), r"shape \(3, 1\) and exact has shape \(3,\).*same points"),
        (np.ones(0), np.ones(0), r"shape \(0,\); expected values at one or more points"),
        (np.array(1.0), np.array(1.0), r"shape \(\); expected values at one or more points"),
        (np.ones(2), np.array([1.0, np.inf]), "exact has values that are not finite"),
        (np.ones(2), np.ones(2) * 1j, "exact has dtype complex128; expected real"),
    ],
)
def test_errors_of_solutions_reject_what_they_cannot_compare(error, u, exact, message):
    with pytest.raises(ProblemError, match=message):
        error(u, exact)


def test_a_relative_error_to_zero_is_refused():
    with pytest.raises(ProblemError, match=r"zero at all 4 points.*max_error"):
        metrics.relative_l2(np.ones(4), np.zeros(4))


# ---- Gram matrix, rank, condition


def test_gram_of_orthonormal_legendre_functions_is_the_identity():
    U, w = orthonormal_legendre(nodes=20, count=12)
    G = metrics.gram(np.sqrt(w)[:, None] * U)
    np.testing.assert_allclose(G, np.eye(12), rtol=0, atol=1e-13)


def test_gram_with_a_measure_approximates_the_inner_products_of_the_domain():
    # Midpoints on [0, 2]: trapezoidal accuracy, which is exact for trigonometric functions of the period.
    x = (np.arange(64) + 0.5) / 32
    U = np.stack([np.ones(64), np.cos(np.pi * x), np.sin(np.pi * x)], axis=1)
    np.testing.assert_allclose(metrics.gram(U, measure=2.0), np.diag([2.0, 1.0, 1.0]), rtol=0, atol=1e-14)


def test_effective_rank_counts_eigenvalues_above_eps():
    Q = orthonormal_columns(6, 6, seed=0)
    G = Q @ np.diag([10.0, 1.0, 2e-3, 5e-4, 1e-8, 0.0]) @ Q.T
    assert metrics.effective_rank(G) == 3
    assert metrics.effective_rank(G, eps=1e-4) == 4
    assert metrics.effective_rank(G, eps=5.0) == 1
    assert metrics.effective_rank(np.zeros((3, 3))) == 0


def test_effective_rank_of_repeated_features_is_the_number_of_different_ones(seed):
    Q = orthonormal_columns(50, 4, seed)
    assert metrics.effective_rank(metrics.gram(np.hstack([Q, Q, 2 * Q]))) == 4


def test_spectrum_and_condition_of_a_matrix_with_known_singular_values(seed):
    sigma = np.array([1e3, 5.0, 1e-2])
    A = orthonormal_columns(30, 3, seed) * sigma @ orthonormal_columns(3, 3, seed + 1).T
    np.testing.assert_allclose(metrics.singular_spectrum(A), sigma, rtol=1e-9)
    assert metrics.condition(A) == pytest.approx(1e5, rel=1e-9)


def test_condition_of_a_singular_matrix_is_infinite():
    assert metrics.condition(np.diag([1.0, 0.0])) == np.inf
    assert metrics.condition(np.zeros((3, 2))) == np.inf


def test_orthogonality_loss_vanishes_for_orthonormal_columns_only(seed):
    Q = orthonormal_columns(40, 5, seed)
    assert metrics.orthogonality_loss(Q) < 1e-28
    assert metrics.orthogonality_loss(np.sqrt(40) * Q, mean=True) < 1e-28
    # UᵀU − I = (4 − 1) I for U = 2Q, of norm 3√5
    assert metrics.orthogonality_loss(2 * Q) == pytest.approx(45.0)
    assert metrics.orthogonality_loss(2 * Q, squared=False) == pytest.approx(3 * np.sqrt(5))
    # and UᵀU/N − I = (4/40 − 1) I with the mean
    assert metrics.orthogonality_loss(2 * Q, mean=True) == pytest.approx(5 * 0.9**2)


# ---- projection


def test_a_function_in_the_span_has_no_projection_error(seed):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((100, 8))
    assert np.all(metrics.projection_error(U, U @ rng.standard_normal((8, 5))) < 1e-13)


def test_projection_error_satisfies_pythagoras(seed):
    Q = orthonormal_columns(60, 6, seed)
    inside, outside = Q[:, :4], Q[:, 4:]
    U = inside @ np.random.default_rng(seed).standard_normal((4, 4))
    Phi = 3.0 * inside[:, :2] + 4.0 * outside  # in the span 3, across it 4: of 5 in all, 4/5 are missed
    np.testing.assert_allclose(metrics.projection_error(U, Phi), 0.8, rtol=1e-12)
    assert metrics.mean_projection_error(U, Phi) == pytest.approx(0.8, rel=1e-12)


def test_a_function_across_the_span_is_missed_entirely():
    U, w = orthonormal_legendre(nodes=30, count=10)
    U = np.sqrt(w)[:, None] * U
    errors = metrics.projection_error(U[:, :9], U[:, 9])
    assert errors.shape == (1,)
    assert errors[0] == pytest.approx(1.0, rel=1e-13)


def test_projection_survives_features_whose_normal_equations_are_singular():
    # Monomials to degree 20 have condition ~1e8 and their Gram matrix ~1e16; cos is resolved by them to rounding.
    x = np.linspace(-1, 1, 400)
    U = np.vander(x, 21)
    assert metrics.condition(metrics.gram(U)) > 1e14
    assert metrics.projection_error(U, np.cos(3 * x))[0] < 1e-13


def test_repeated_and_zero_features_change_nothing(seed):
    rng = np.random.default_rng(seed)
    U, Phi = rng.standard_normal((50, 5)), rng.standard_normal((50, 3))
    padded = np.hstack([U, U[:, :2] + U[:, 2:4], np.zeros((50, 1))])
    np.testing.assert_allclose(metrics.projection_error(padded, Phi), metrics.projection_error(U, Phi), rtol=1e-12)


def test_projection_error_does_not_depend_on_the_scale_of_the_functions(seed):
    rng = np.random.default_rng(seed)
    U, Phi = rng.standard_normal((50, 5)), rng.standard_normal((50, 3))
    scaled = Phi * np.array([1e-200, 1.0, 1e200])
    np.testing.assert_allclose(metrics.projection_error(U, scaled), metrics.projection_error(U, Phi), rtol=1e-12)


def test_rcond_leaves_small_directions_out():
    U, Phi = np.diag([1.0, 1e-6, 0.0])[:, :2], np.array([0.0, 1.0, 0.0])
    assert metrics.projection_error(U, Phi)[0] == 0.0
    assert metrics.projection_error(U, Phi, rcond=1e-3)[0] == 1.0


def test_zero_features_span_nothing():
    assert metrics.projection_error(np.zeros((4, 2)), np.ones(4))[0] == pytest.approx(1.0)


# ---- refused input


@pytest.mark.parametrize(
    "function",
    [metrics.gram, metrics.singular_spectrum, metrics.condition, metrics.orthogonality_loss, metrics.effective_rank],
)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(3), r"has shape \(3,\); expected two axes"),
        (np.ones((0, 3)), r"has shape \(0, 3\) and is empty"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "values that are not finite"),
        (np.eye(2) * 1j, "dtype complex128; expected real"),
        ([["a"]], "expected real numbers"),
    ],
)
def test_matrices_are_checked(function, values, message):
    with pytest.raises(FeaturesError, match=message):
        function(values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.gram(np.eye(2), measure=0.0), "measure is 0.0; expected a positive"),
        (lambda: metrics.gram(np.eye(2), measure=np.inf), "measure is inf; expected a positive"),
        (lambda: metrics.effective_rank(np.ones((3, 2))), r"shape \(3, 2\); expected \(m, m\).*gram\(U\)"),
        (lambda: metrics.effective_rank(np.triu(np.ones((2, 2)))), "not symmetric"),
        (lambda: metrics.effective_rank(np.eye(2), eps=-1.0), "eps is -1.0"),
        (lambda: metrics.projection_error(np.ones((3, 2)), np.ones((4, 2))), "U has 3 rows and Phi has 4"),
        (lambda: metrics.projection_error(np.ones((3, 2)), np.ones((3, 0))), r"Phi has shape \(3, 0\) and is empty"),
        (lambda: metrics.projection_error(np.ones((2, 1)), np.eye(2) * [1, 0]), r"Columns \[1\] of Phi are zero"),
    ],
)
def test_features_that_cannot_be_measured_are_refused_with_a_remedy(call, message):
    with pytest.raises(PdofmError, match=message):
        call()
