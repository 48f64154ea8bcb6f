"""The phases of a solve, each compared with the least arithmetic that it needs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.linalg import lapack, lstsq

import pdofm as pf
from pdofm.bench.timing import Row, median_seconds, products
from pdofm.discrete.assemble import assemble
from pdofm.discrete.collocate import collocate
from pdofm.discrete.evaluate import evaluate
from pdofm.features.trigonometry import cos, sin

_SQUARE = pf.Box([-1, -1], [1, 1])

LOOPED = 4
"""Number of features, of 500, that are assembled one by one; the time for all is extrapolated from theirs."""


def bench_assembly() -> list[Row]:
    """Assembly of the least-squares matrix of the Laplacian, for 1024 points and 500 features of a network of depth 2.

    The least arithmetic consists of matrix products: with n rows in the first hidden layer, which needs only values,
    since the derivatives of its input are the same at all points; and with 4 n rows in the second one, for values, two
    first derivatives and the Laplacian.
    """
    features = pf.NetworkFeatures(_SQUARE, size=500, depth=2)
    task, reference = median_seconds(_assembly(features), products(5 * 1024, 500))
    case = "Laplacian, 1024 x 500, depth 2"
    rows = [Row("assembly", case, "its matrix products in float64 alone", task, reference)]
    for how, compiled in (("compiled", True), ("not compiled", False)):
        (loop,) = median_seconds(_loop(features, compiled), repeats=2)
        rows.append(Row("assembly", case, f"assembly feature by feature, {how}", task, loop * 500 / LOOPED))
    x = jnp.linspace(-30, 30, 2**20)
    ours, plain = (jax.jit(lambda x, pair=pair: [f(x) for f in pair]) for pair in ((sin, cos), (jnp.sin, jnp.cos)))
    task, reference = median_seconds(lambda: ours(x), lambda: plain(x))
    return [*rows, Row("assembly", "sine and cosine of 2^20 numbers", "sine and cosine of XLA", task, reference)]


def _loop(features: pf.NetworkFeatures, compiled: bool) -> Callable[[], Any]:
    """A task that assembles columns of the matrix of the Laplacian feature by feature, in reverse mode: the gradient of
    the sum of a feature over all points, then the gradient of each of its entries."""
    points = jnp.asarray(_SQUARE.sample(1024))

    def column(features: pf.Features, points: Array, j: int | Array) -> Array:
        def feature(x: Array) -> Array:
            return jnp.sum(jax.vmap(features)(x)[:, j])

        def slope(x: Array, axis: int) -> Array:
            return jnp.sum(jax.grad(feature)(x)[:, axis])

        return jnp.add(*(jax.grad(slope)(points, axis)[:, axis] for axis in range(2)))

    of_feature = jax.jit(column) if compiled else column
    return lambda: [of_feature(features, points, j) for j in range(LOOPED)]


def bench_lstsq() -> list[Row]:
    """Factor a matrix of 1024 x 500 and solve for one right-hand side: for features of a network, which are numerically
    dependent, and for polynomials, which are well conditioned."""
    rows = []
    for name, features in (
        ("features of a network", pf.NetworkFeatures(_SQUARE, size=500, depth=2)),
        ("polynomials", pf.Chebyshev(_SQUARE, 500)),
    ):
        A = _assembly(features)()
        b = np.cos(np.arange(len(A)))
        task, reference = median_seconds(
            lambda A=A, b=b: pf.QR().factor(A).solve(b), lambda A=A, b=b: lstsq(A, b, 1e-15, lapack_driver="gelsy")
        )
        rows.append(Row("lstsq", f"{name}, {A.shape[0]} x {A.shape[1]}", "gelsy of LAPACK", task, reference))
    return rows


def bench_training() -> list[Row]:
    """One training step for the Poisson equation on the square: 1024 + 128 points, 500 features, depth 2, float32.

    The least arithmetic, counted in products of (1024, 500) x (500, 500), is 5 forward (see `bench_assembly`), twice as
    many backward, and 0.75 for the values on the boundary; with orthogonality, the Gram matrix and its derivative are 2
    more.
    """
    problem, features = pf.zoo.get("poisson-square"), pf.NetworkFeatures(_SQUARE, size=500, depth=2)

    def training(orthogonality: float, precision: str) -> Callable[[], Any]:
        fixed = {"steps": 20, "tolerance": 0.0, "resample": False, "progress": False, "keep": "last"}
        options = fixed | {"orthogonality": orthogonality, "precision": precision}
        return lambda: pf.pretrain(problem, features, **options).coefficients

    *steps, bare_with, bare_without = median_seconds(
        training(1.0, "float32"),
        training(0.0, "float32"),
        training(1.0, "float64"),
        products(18 * 1024, 500, np.float32),
        products(16 * 1024, 500, np.float32),
        repeats=5,
    )
    orthogonal, plain, double = (seconds / 20 for seconds in steps)
    alone = "matrix products in float32 alone"
    return [
        Row("training", "step with orthogonality", f"its {alone}", orthogonal, bare_with),
        Row("training", "step without orthogonality", f"its {alone}", plain, bare_without),
        Row("training", "step with orthogonality", "step without orthogonality", orthogonal, plain),
        Row("training", "step with orthogonality in float64", "the same in float32", double, orthogonal),
    ]


def bench_partition() -> list[Row]:
    """Random features in a partition of unity with 4, 16 and 64 subdomains, compared with a global basis of the same
    size."""
    plain = pf.RandomFeatures(_SQUARE, 512)
    rows = []
    for count in (2, 4, 8):
        local = 512 // count**2
        split = pf.PartitionOfUnity(
            lambda box, key, local=local: pf.RandomFeatures(box, local, key=key), _SQUARE, (count, count)
        )
        seconds = median_seconds(_assembly(split), _assembly(plain), _evaluation(split), _evaluation(plain))
        case, against = f"{count**2} subdomains, 512 features", "one global basis"
        rows.append(Row("partition", f"assembly, {case}", against, seconds[0], seconds[1]))
        rows.append(Row("partition", f"evaluation, {case}", against, seconds[2], seconds[3]))
    return rows


def bench_transfer() -> list[Row]:
    """The 500 features of a network of depth 2 on the square, for other sources and on other domains.

    Solving for a thousand sources at once is compared with one product of the transposed matrix and the sources. A
    solve on a new domain, from the points to the solution, is compared with the least arithmetic: the products of
    `bench_assembly` for every interior point, two products for every boundary point, which needs only values, and a
    Householder QR of the matrix.
    """
    problem, features = pf.zoo.get("poisson-square"), pf.NetworkFeatures(_SQUARE, size=500, depth=2)
    solver = pf.factor(problem, features)
    waves = np.random.default_rng(0).uniform(-3, 3, (2, 1000))
    sources = np.cos(solver.points["equation"] @ waves)
    matrix, sides = np.ones((500, solver.stats.rows)), np.ones((solver.stats.rows, 1000))
    task, reference = median_seconds(lambda: solver.solve(sources).coefficients, lambda: matrix @ sides)
    rows = [
        Row(
            "transfer",
            "one of 1000 sources, 500 features",
            "its matrix product in float64 alone",
            task / 1000,
            reference / 1000,
        ),
    ]
    for name in ("poisson-lshape", "poisson-annulus"):
        elsewhere = pf.zoo.get(name)
        there = pf.factor(elsewhere, features)
        inside, total = len(there.points["equation"]), there.stats.rows
        tall = np.asfortranarray(np.random.default_rng(0).standard_normal((total, 500)))
        work = int(lapack.dgeqrf_lwork(total, 500)[0])
        task, multiply, qr = median_seconds(
            lambda elsewhere=elsewhere: pf.factor(elsewhere, features).solve().coefficients,
            products(5 * inside + 2 * (total - inside), 500),
            lambda tall=tall, work=work: lapack.dgeqrf(tall, lwork=work),
            repeats=7,
        )
        rows.append(
            Row(
                "transfer",
                f"new domain {name}, features of the square",
                "its matrix products and QR alone",
                task,
                multiply + qr,
            )
        )
    return rows


def _assembly(features: pf.Features) -> Callable[[], Any]:
    """A task that assembles the matrix of the Laplacian at 1024 points of the square."""
    problem = pf.Problem(_SQUARE, lambda u, x: -pf.laplacian(u)(x), source=1.0, conditions=[pf.Dirichlet(0.0)])
    blocks, zero = collocate(problem, 1024, 16)[:1], np.zeros((features.size, 1))
    return lambda: assemble(problem.layout, features, blocks, zero).A


def _evaluation(features: pf.Features) -> Callable[[], Any]:
    """A task that evaluates a function of the space at 4096 points of the square."""
    points, ones = _SQUARE.sample(4096), np.ones((features.size, 1))
    return lambda: evaluate(features, ones, points)
