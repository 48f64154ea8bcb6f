"""Householder's reflections in the format of LAPACK, and what is solved with triangles."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.linalg import blas, lapack, solve_triangular

from pdofm._types import Matrix
from pdofm.errors import SolveError


def triangularise(A: Matrix, *, overwrite: bool) -> tuple[Matrix, Float[np.ndarray, " cols"]]:
    """Householder QR in the format of LAPACK: R with the reflectors below it, and the factors of the reflectors."""
    work = int(lapack.dgeqrf_lwork(*A.shape)[0])
    reflectors, tau, _, info = lapack.dgeqrf(A, lwork=work, overwrite_a=overwrite)
    check_info(info, "dgeqrf")
    return reflectors, tau


def with_zeros(y: np.ndarray, rows: int) -> np.ndarray:
    """y with zeros appended."""
    return np.concatenate([y, np.zeros((rows - len(y), *y.shape[1:]))])


def reflect(reflectors: Matrix, tau: np.ndarray, y: np.ndarray, trans: str = "T") -> np.ndarray:
    """Qᵀy, with Q in the format of `triangularise`, or with `trans` = "N" Qy."""
    right = y.reshape(len(y), -1)
    work = int(lapack.dormqr("L", trans, reflectors, tau, right, -1)[1][0])
    rotated, _, info = lapack.dormqr("L", trans, reflectors, tau, right, work)
    check_info(info, "dormqr")
    return rotated.reshape(y.shape)


def smallest_solution(
    trapezoid: Float[np.ndarray, "rank cols"],
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """The function that solves with a wide upper trapezoid for the solution of smallest norm, and its transpose. The
    trapezoid is factored as [T 0] Z, with T a triangle and Z orthogonal."""
    rank, columns = trapezoid.shape
    rotated, tau, info = lapack.dtzrzf(trapezoid, lwork=int(lapack.dtzrzf_lwork(rank, columns)[0]))
    check_info(info, "dtzrzf")
    triangle = np.asfortranarray(rotated[:, :rank])

    def rotate(y: np.ndarray, trans: str) -> np.ndarray:
        right = np.array(y.reshape(columns, -1), order="F")
        work = int(lapack.dormrz_lwork(columns, right.shape[1])[0])
        turned, info = lapack.dormrz(rotated, tau, right, trans=trans, lwork=work, overwrite_c=True)
        check_info(info, "dormrz")
        return turned.reshape(y.shape)

    def solve(y: np.ndarray) -> np.ndarray:
        return rotate(with_zeros(back_substitute(triangle, y), columns), "T")

    def transposed(g: np.ndarray) -> np.ndarray:
        return solve_triangular(triangle, rotate(g, "N")[:rank], trans=1)

    return solve, transposed


def back_substitute(upper: Matrix, y: np.ndarray) -> np.ndarray:
    if y.ndim == 1 or not y.flags.c_contiguous:
        return solve_triangular(upper, y, check_finite=False)
    # In C order, y is the transpose of a matrix in Fortran order. Solving from the right needs no transposed copy.
    return blas.dtrsm(1.0, upper, y.T, side=1, trans_a=1).T


def check_info(info: int, routine: str) -> None:
    if info != 0:
        raise SolveError(f"LAPACK {routine} failed with info = {info}. Check the matrix for huge values.")
