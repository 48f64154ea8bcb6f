"""Least squares against SciPy and against mathematics, on matrices of every temper."""

import numpy as np
import pytest
import scipy.linalg

from pdofm import QR, SVD
from pdofm.errors import PdofmError, SolveError
from pdofm.numerics.lstsq import Folding

SOLVERS = {"svd": SVD, "qr": QR}


@pytest.fixture(params=SOLVERS)
def solver(request):
    return SOLVERS[request.param]


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def unit(A: np.ndarray) -> np.ndarray:
    return A / np.linalg.norm(A, axis=0)


def with_condition(rows: int, columns: int, condition: float, seed: int) -> np.ndarray:
    """A matrix with singular values from 1 down to 1/condition, evenly in the logarithm."""
    left = np.linalg.qr(normal(seed, rows, columns))[0]
    right = np.linalg.qr(normal(seed + 1, columns, columns))[0]
    return left * np.geomspace(1, 1 / condition, columns) @ right.T


def rank_deficient(rows: int, columns: int, rank: int, seed: int) -> np.ndarray:
    return unit(normal(seed, rows, rank) @ normal(seed + 1, rank, columns))


# ---- registry of matrices x what a least-squares solution is

MATRICES = {
    "square": normal(0, 12, 12),
    "tall": normal(1, 40, 12),
    "one column": normal(2, 9, 1),
    "one entry": np.array([[2.0]]),
    "condition 1e5": with_condition(40, 12, 1e5, 3),
    "rank 5 of 12": rank_deficient(40, 12, 5, 4),
    "two equal columns": unit(np.repeat(normal(5, 30, 4), 2, axis=1)),
    "huge": 1e150 * normal(6, 30, 8),
    "tiny": 1e-150 * normal(7, 30, 8),
}


@pytest.fixture(params=MATRICES)
def A(request) -> np.ndarray:
    return MATRICES[request.param]


def test_with_q_formed_the_solutions_are_the_same(solver, A, seed):
    b = normal(seed, len(A), 3) * np.abs(A).max()
    factored = solver(rcond=1e-12).factor(A)
    explicit = factored.explicit
    np.testing.assert_allclose(explicit.complete(explicit.project(b)), factored.solve(b), rtol=1e-8, atol=1e-12)


def test_solutions_are_those_of_scipy(solver, A, seed):
    b = normal(seed, len(A)) * np.abs(A).max()
    expected = scipy.linalg.lstsq(A / np.abs(A).max(), b / np.abs(A).max(), cond=1e-12)[0]
    found = solver(rcond=1e-12).factor(A).solve(b)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_the_residual_is_orthogonal_to_the_columns(solver, A, seed):
    """To rounding, in the sense of backward stability: Aᵀr is of the order ε ‖A‖ (‖b‖ + ‖A‖ ‖c‖)."""
    size = np.abs(A).max()
    unit_free, b = A / size, normal(seed, len(A))
    c = solver(rcond=1e-12).factor(A).solve(size * b)
    length = np.linalg.norm(unit_free)
    bound = 1e-13 * length * (np.linalg.norm(b) + length * np.linalg.norm(c))
    assert np.abs(unit_free.T @ (b - unit_free @ c)).max() <= bound


def test_many_right_hand_sides_equal_one_by_one(solver, A, seed):
    B = normal(seed, len(A), 3) * np.abs(A).max()
    factored = solver(rcond=1e-12).factor(A)
    each = np.stack([factored.solve(b) for b in B.T], axis=1)
    together = factored.solve(B)
    assert together.shape == (A.shape[1], 3)
    np.testing.assert_allclose(together, each, rtol=1e-9, atol=1e-10 * np.abs(each).max())


def test_a_solve_does_not_touch_its_arguments(solver):
    A, b = normal(0, 20, 5), normal(1, 20)
    before = A.copy(), b.copy()
    solver().factor(A).solve(b)
    assert np.array_equal(A, before[0])
    assert np.array_equal(b, before[1])


def test_working_in_place_gives_the_same_answer(solver):
    A, b = normal(0, 20, 5), normal(1, 20)
    expected = solver().factor(A).solve(b)
    found = solver().factor(np.asfortranarray(A), overwrite=True).solve(b)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_the_memory_layout_does_not_matter(solver, order):
    A, b = normal(0, 20, 5), normal(1, 20)
    laid_out = np.repeat(A, 2, axis=0)[::2] if order == "strided" else np.array(A, order=order)
    np.testing.assert_allclose(solver().factor(laid_out).solve(b), scipy.linalg.lstsq(A, b)[0], rtol=1e-12)


# ---- rank, minimum norm, condition


@pytest.mark.parametrize("rank", [1, 5, 11, 12])
def test_the_rank_is_that_of_the_construction(solver, rank, seed):
    assert solver(rcond=1e-12).factor(rank_deficient(40, 12, rank, seed)).rank == rank


def test_equal_columns_share_their_coefficient(solver):
    column = normal(0, 10, 1)
    found = solver(rcond=1e-12).factor(np.hstack([column, column])).solve(6 * column[:, 0])
    np.testing.assert_allclose(found, [3.0, 3.0], rtol=1e-13)


def test_the_solution_is_the_smallest_in_units_of_the_columns(solver, seed):
    """Columns are scaled to norm one before directions are dropped, so it is ‖c · norms‖ that is smallest."""
    norms = np.geomspace(1, 1e6, 12)
    unscaled, b = rank_deficient(40, 12, 5, seed), normal(seed + 2, 40)
    expected = np.linalg.pinv(unscaled, rcond=1e-12) @ b
    np.testing.assert_allclose(
        solver(rcond=1e-12).factor(unscaled * norms).solve(b) * norms, expected, rtol=1e-8, atol=1e-10
    )


def test_a_zero_column_gets_a_zero_coefficient(solver):
    A = normal(0, 20, 4)
    A[:, 2] = 0.0
    b = normal(1, 20)
    factored = solver().factor(A)
    found = factored.solve(b)
    assert factored.rank == 3
    assert found[2] == 0.0
    np.testing.assert_allclose(np.delete(found, 2), scipy.linalg.lstsq(np.delete(A, 2, 1), b)[0], rtol=1e-11)


@pytest.mark.parametrize("condition", [1e1, 1e6, 1e12])
def test_the_svd_reports_the_condition_of_the_matrix_with_unit_columns(condition, seed):
    A = with_condition(40, 12, condition, seed)
    expected = np.linalg.cond(unit(A))
    assert SVD().factor(A).condition == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("condition", [1e1, 1e6, 1e14])
def test_the_condition_from_qr_is_right_within_the_number_of_columns(condition, seed):
    """The 1-norm of a matrix is within √n of its 2-norm, so that condition numbers agree within n. Of a triangle that
    was pivoted, max|r| ≤ σ₁ and min|r| ≥ σₙ; pivoting keeps both near, but for matrices made to defeat it.
    """
    A = with_condition(40, 12, condition, seed)
    expected = np.linalg.cond(unit(A))
    factored = QR().factor(A)
    pivoted = factored.inverse.rotate is not None
    assert expected / 12 <= factored.condition <= expected * (1 + 1e-3 if pivoted else 12)


def test_a_well_conditioned_matrix_is_solved_as_accurately_without_pivoting(seed):
    """Where it is pivoted and where it is not, the right side is reproduced up to rounding; and the solution up to
    rounding times the condition."""
    for condition, pivoted in ((1e8, False), (1e13, False), (1e16, True)):
        A, c = with_condition(60, 20, condition, seed), normal(seed + 2, 20)
        factored = QR(rcond=1e-17).factor(A)
        found = factored.solve(A @ c)
        assert (factored.inverse.rotate is not None) == pivoted
        rounding = 1e-14 * np.linalg.norm(A, 2) * (np.linalg.norm(found) + np.linalg.norm(c))
        assert np.linalg.norm(A @ found - A @ c) <= rounding
        if not pivoted:
            np.testing.assert_allclose(found, c, atol=1e-14 * condition)


@pytest.mark.parametrize("rcond", [1e-15, 1e-12, 1e-6])
def test_it_is_pivoted_where_that_would_drop_something(rcond, seed):
    for condition in np.logspace(2, 18, 33):
        A = with_condition(60, 20, condition, seed)
        factored = QR(rcond=rcond).factor(A)
        if factored.inverse.rotate is None:
            diagonal = np.diag(scipy.linalg.qr(factored.triangle, mode="r", pivoting=True)[0])
            assert np.abs(diagonal).min() > rcond
        if condition < 1e-2 / rcond:
            assert factored.inverse.rotate is None


# ---- rows that come in blocks


@pytest.mark.parametrize("rows", [13, 96, 97, 192, 1000])
def test_folded_rows_have_the_same_solution_and_the_same_residual(solver, rows, seed):
    """96 rows fill the block of 12 columns once and leave nothing; 13 leave it nearly empty."""
    A, b = normal(seed, rows, 11), normal(seed + 1, rows)
    folding, cuts = Folding(11), np.random.default_rng(seed).integers(0, rows, 20)
    for some in np.split(np.arange(rows), np.sort(cuts)):
        folding.add(A[some], b[some])
    small, target = folding.reduced()
    expected = scipy.linalg.lstsq(A, b)[0]
    found = solver().factor(small).solve(target)
    assert small.shape == (12, 11)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(small @ found - target), np.linalg.norm(A @ expected - b), rtol=1e-10)
    np.testing.assert_allclose(small.T @ small, A.T @ A, atol=1e-12 * rows)


def test_the_condition_is_of_what_is_kept(solver):
    orthogonal = np.linalg.qr(normal(0, 20, 3))[0]
    A = np.hstack([orthogonal, orthogonal[:, :1]])  # singular values √2, 1, 1, 0
    factored = solver(rcond=1e-10).factor(A)
    assert factored.rank == 3
    assert factored.condition == pytest.approx(np.sqrt(2) if solver is SVD else 1.0, rel=1e-10)


def test_rcond_decides_what_is_dropped(solver):
    A = np.diag([1.0, 1.0, 1.0])
    A[0, 1] = 1.0
    A[1, 1] = 1e-6  # the first two columns differ by 1e-6
    assert solver(rcond=1e-8).factor(A).rank == 3
    assert solver(rcond=1e-4).factor(A).rank == 2


# ---- hostile matrices


def test_badly_scaled_columns_lose_no_digits(solver, seed):
    """gelsd without scaling would call all columns below 1e-16 of the largest dependent."""
    norms = np.geomspace(1, 1e-30, 10)
    A, c = normal(seed, 40, 10) * norms, normal(seed + 1, 10) / norms
    factored = solver().factor(A)
    assert factored.rank == 10
    np.testing.assert_allclose(factored.solve(A @ c) * norms, c * norms, rtol=1e-12)
    assert scipy.linalg.lstsq(A, A @ c)[2] < 10


def test_laeuchli_defeats_the_normal_equations_but_not_us(solver):
    """Columns (1, ε eᵢ) with 1 + ε² = 1 in float64: AᵀA is the matrix of ones, A has full rank."""
    eps, n = 1e-9, 5
    A = np.vstack([np.ones(n), eps * np.eye(n)])
    assert np.linalg.matrix_rank(A.T @ A) == 1
    factored = solver().factor(A)
    assert factored.rank == n
    b = np.append(1.0, np.zeros(n))
    np.testing.assert_allclose(factored.solve(b), np.full(n, 1 / (n + eps**2)), rtol=1e-6)
    differences = np.append(0.0, eps * np.arange(-2.0, 3.0))
    np.testing.assert_allclose(factored.solve(differences), np.arange(-2.0, 3.0), atol=1e-6)


def test_a_vandermonde_matrix_of_condition_1e13_still_reproduces_its_right_hand_side(solver):
    A = np.vander(np.linspace(0, 1, 200), 18, increasing=True)
    assert np.linalg.cond(A) > 1e12
    b = A @ np.ones(18)
    found = solver().factor(A).solve(b)
    assert np.linalg.norm(A @ found - b) <= 1e-13 * np.linalg.norm(b)


# ---- the parts of a solve


def test_projecting_a_product_is_multiplying_by_the_triangle(solver, seed):
    A, c = normal(seed, 30, 8) * np.geomspace(1, 1e5, 8), normal(seed + 1, 8)
    factored = solver().factor(A)
    np.testing.assert_allclose(factored.multiply(c), factored.project(A @ c), rtol=1e-10, atol=1e-9)


def test_a_projection_keeps_the_length_of_what_lies_in_the_range(solver, seed):
    A, c = normal(seed, 30, 8), normal(seed + 1, 8)
    assert np.linalg.norm(solver().factor(A).project(A @ c)) == pytest.approx(np.linalg.norm(A @ c), rel=1e-13)


@pytest.mark.parametrize("columns", [1, 5, 11, 12])
def test_a_coarse_solution_is_the_one_on_the_leading_columns(solver, columns, seed):
    A, b = with_condition(40, 12, 1e4, seed) * np.geomspace(1, 1e3, 12), normal(seed + 2, 40)
    factored = solver().factor(A)
    coarse = factored.coarse(factored.project(b), columns)
    expected = scipy.linalg.lstsq(A[:, :columns], b)[0]
    np.testing.assert_allclose(coarse[:columns], expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())
    assert not coarse[columns:].any()


def test_a_coarse_solution_of_many_right_hand_sides(solver, seed):
    A, B = normal(seed, 30, 8), normal(seed + 1, 30, 2)
    factored = solver().factor(A)
    expected = scipy.linalg.lstsq(A[:, :4], B)[0]
    np.testing.assert_allclose(factored.coarse(factored.project(B), 4)[:4], expected, rtol=1e-10)


# ---- errors


def test_fewer_rows_than_columns_is_refused(solver):
    with pytest.raises(SolveError, match=r"3 rows for 5 coefficients.*more points.*or fewer features"):
        solver().factor(normal(0, 3, 5))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_matrix_that_is_not_finite_is_refused(solver, bad):
    A = normal(0, 5, 3)
    A[4, 1] = bad
    with pytest.raises(PdofmError, match=r"not finite.*Check the operator and the features"):
        solver().factor(A)


def test_a_zero_matrix_is_refused(solver):
    with pytest.raises(SolveError, match=r"matrix is zero: nothing in the problem depends on the features"):
        solver().factor(np.zeros((5, 3)))
