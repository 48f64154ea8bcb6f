"""Block least squares against the dense problem that it stands for."""

import numpy as np
import pytest

from pdofm.errors import SolveError
from pdofm.numerics.blocks import BlockQR, Leaf

SIDE, UNKNOWNS, SHARED = 3, 7, 4


def grid_links() -> tuple[list[int], list[list[int]]]:
    """Leaves on a grid, each linked with its neighbours: the sizes of the links, and the links of each leaf."""
    sizes: list[int] = []
    around: list[list[int]] = [[] for _ in range(SIDE**2)]
    for i in range(SIDE):
        for j in range(SIDE):
            for other in ((i + 1, j), (i, j + 1)):
                if max(other) < SIDE:
                    around[SIDE * i + j].append(len(sizes))
                    around[SIDE * other[0] + other[1]].append(len(sizes))
                    sizes.append(SHARED)
    return sizes, around


def random_leaves(rng: np.random.Generator, rows: int, columns: int = 2) -> tuple[list[int], list[Leaf]]:
    sizes, around = grid_links()
    leaves = [
        Leaf(
            rng.standard_normal((rows, UNKNOWNS)),
            rng.standard_normal((rows, columns)),
            [(link, rng.standard_normal((SHARED, UNKNOWNS))) for link in links],
        )
        for links in around
    ]
    return sizes, leaves


def dense(sizes: list[int], leaves: list[Leaf]) -> tuple[np.ndarray, np.ndarray]:
    """The same problem with all unknowns, those of the leaves first."""
    starts = UNKNOWNS * len(leaves) + np.concatenate([[0], np.cumsum(sizes)])
    rows, rights = [], []
    for number, leaf in enumerate(leaves):
        own = slice(UNKNOWNS * number, UNKNOWNS * (number + 1))
        part = np.zeros((len(leaf.own), starts[-1]))
        part[:, own] = leaf.own
        rows.append(part)
        rights.append(leaf.right)
        for link, values in leaf.links:
            part = np.zeros((sizes[link], starts[-1]))
            part[:, own] = values
            part[:, starts[link] : starts[link + 1]] = -np.eye(sizes[link])
            rows.append(part)
            rights.append(np.zeros((sizes[link], leaf.right.shape[1])))
    return np.concatenate(rows), np.concatenate(rights)


@pytest.mark.parametrize("rows", [5, 7, 20])
def test_blocks_solve_the_dense_least_squares_problem(rows, seed):
    sizes, leaves = random_leaves(np.random.default_rng(seed), rows)
    A, b = dense(sizes, leaves)
    found = BlockQR(leaves, sizes)
    expected = np.linalg.lstsq(A, b)[0][: UNKNOWNS * len(leaves)]
    np.testing.assert_allclose(np.concatenate(found.solution), expected, atol=1e-11 * np.abs(expected).max())
    assert found.rank == found.columns == A.shape[1]
    assert 1 <= found.condition <= 10 * np.linalg.cond(A)


def test_a_kept_factorisation_serves_other_right_sides(seed):
    rng = np.random.default_rng(seed)
    sizes, leaves = random_leaves(rng, 9)
    factored = BlockQR(leaves, sizes, keep=True)
    rights = [rng.standard_normal((9, 5)) for _ in leaves]
    others = [Leaf(leaf.own, right, leaf.links) for leaf, right in zip(leaves, rights, strict=True)]
    expected = np.concatenate(BlockQR(others, sizes).solution)
    np.testing.assert_allclose(np.concatenate(factored.solve(rights)), expected, atol=1e-11 * np.abs(expected).max())


def test_a_factorisation_that_was_not_kept_says_so():
    sizes, leaves = random_leaves(np.random.default_rng(0), 9)
    with pytest.raises(SolveError, match="keep=True"):
        BlockQR(leaves, sizes).solve([leaf.right for leaf in leaves])


def test_a_single_leaf_is_ordinary_least_squares(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((12, 5)), rng.standard_normal((12, 1))
    np.testing.assert_allclose(BlockQR([Leaf(A, b, [])], []).solution[0], np.linalg.lstsq(A, b)[0], atol=1e-12)


def test_a_function_that_no_row_sees_lowers_the_rank():
    """Two leaves that are linked, with rows that see neither's last unknown."""
    rng = np.random.default_rng(0)
    rows, link = rng.standard_normal((6, 3)), rng.standard_normal((2, 3))
    rows[:, 2] = link[:, 2] = 0.0
    found = BlockQR([Leaf(rows, np.ones((6, 1)), [(0, link)]) for _ in range(2)], [2])
    assert found.rank == found.columns - 2
    assert all(np.isfinite(each).all() for each in found.solution)
