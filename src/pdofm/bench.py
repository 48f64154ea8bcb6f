"""Speed, as ratios that are measured in one run, never as seconds alone."""

import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.linalg import lapack

import pdofm as pf
from pdofm.assemble import assemble, collocate, evaluate
from pdofm.errors import unknown_name
from pdofm.features.trigonometry import cos, sin

REPEATS = 15


@dataclass(frozen=True)
class Row:
    """One measurement: `seconds` of the task, `reference` seconds of what it is compared with, both medians."""

    bench: str
    case: str
    against: str
    seconds: float
    reference: float

    @property
    def ratio(self) -> float:
        """How many times the reference the task takes."""
        return self.seconds / self.reference


def median_seconds(*tasks: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """Median seconds of each task; the tasks take turns, so that a change of the machine's speed meets all of them."""
    for task in tasks:
        jax.block_until_ready(task())
    seconds = np.empty((repeats, len(tasks)))
    for turn in range(repeats):
        for i, task in enumerate(tasks):
            start = time.perf_counter()
            jax.block_until_ready(task())
            seconds[turn, i] = time.perf_counter() - start
    return np.median(seconds, axis=0).tolist()


def _products(rows: int, width: int, dtype: Any = np.float64) -> Callable[[], Any]:
    """One product (rows, width) x (width, width)."""
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.standard_normal((n, width)), dtype) for n in (rows, width))
    product = jax.jit(lambda a, b: a @ b)
    return lambda: product(a, b)


def bench_assembly() -> list[Row]:
    """The least-squares matrix of the Laplacian, 1024 points x 500 features of a residual network of depth 2.

    The least arithmetic: the first hidden layer sees the values only (n rows; the first derivatives of its input are
    the same at all points), the second one values, two first derivatives and the Laplacian (4 n rows).
    """
    features = pf.NetworkFeatures(_SQUARE, width=500, depth=2)
    task, reference = median_seconds(_assembly(features), _products(5 * 1024, 500))
    rows = [Row("assembly", "Laplacian, 1024 x 500, depth 2", "bare float64 GEMMs", task, reference)]
    x = jnp.linspace(-30, 30, 2**20)
    ours, plain = (jax.jit(lambda x, pair=pair: [f(x) for f in pair]) for pair in ((sin, cos), (jnp.sin, jnp.cos)))
    task, reference = median_seconds(lambda: ours(x), lambda: plain(x))
    return [*rows, Row("assembly", "sine and cosine of 2^20 numbers", "those of XLA", task, reference)]


def bench_training() -> list[Row]:
    """One training step for Poisson's equation on the square: 1024 + 128 points, 500 features, depth 2, float32.

    The least arithmetic, in products of (1024, 500) x (500, 500): 5 forward (see `bench_assembly`) and twice that
    backward; 0.75 for the values on the boundary; the Gram matrix and its derivative 2 more with orthogonality.
    """
    problem, features = pf.zoo.get("poisson-square"), pf.NetworkFeatures(_SQUARE, width=500, depth=2)

    def training(orthogonality: float, precision: str) -> Callable[[], Any]:
        fixed = {"steps": 20, "tolerance": 0.0, "resample": False, "progress": False}
        options = fixed | {"orthogonality": orthogonality, "precision": precision}
        return lambda: pf.pretrain(problem, features, **options).coefficients

    *steps, bare_with, bare_without = median_seconds(
        training(1.0, "float32"),
        training(0.0, "float32"),
        training(1.0, "float64"),
        _products(18 * 1024, 500, np.float32),
        _products(16 * 1024, 500, np.float32),
        repeats=5,
    )
    orthogonal, plain, double = (seconds / 20 for seconds in steps)
    return [
        Row("training", "step with orthogonality", "bare float32 GEMMs", orthogonal, bare_with),
        Row("training", "step without orthogonality", "bare float32 GEMMs", plain, bare_without),
        Row("training", "step with orthogonality", "step without", orthogonal, plain),
        Row("training", "step in float64", "step in float32", double, orthogonal),
    ]


def bench_partition() -> list[Row]:
    """Random features under a partition of unity with 4, 16 and 64 subdomains, against one global basis of the same
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


def bench_corner() -> list[Row]:
    """The singular solution r^(2/3) sin(2θ/3) on the L: smooth features with the singular function added, whole
    solve."""
    lshape = _SQUARE - pf.Box([0, 0], [1, 1])

    def corner(x: Array) -> Array:
        square, angle = jnp.sum(x**2), jnp.mod(jnp.arctan2(x[1], x[0]) - jnp.pi / 2, 2 * jnp.pi)
        return jnp.where(square > 0, square, 1.0) ** (1 / 3) * jnp.sin(2 * angle / 3) * jnp.where(square > 0, 1.0, 0.0)

    problem = pf.Problem(
        lshape, lambda u, x: -pf.laplacian(u)(x), source=0.0, conditions=[pf.Dirichlet(corner)], exact=corner
    )
    basis = pf.Concatenate(pf.Chebyshev(lshape, 30), pf.Functions(lshape, [corner]))
    error = pf.solve(problem, basis).errors().relative_l2
    task, reference = median_seconds(lambda: pf.solve(problem, basis).coefficients, _products(5 * 1024, 500))
    case = f"{basis.size} features, relative L2 error {error:.0e}"
    return [Row("corner", case, "bare GEMMs of 1024 x 500", task, reference)]


def bench_transfer() -> list[Row]:
    """Features of the square, 500 of a residual network of depth 2, for other sources and for other domains.

    A thousand sources at once against one product of the transposed matrix with them. A new domain, from its points to
    the solution for one source, against the least arithmetic: the products of `bench_assembly` for every interior
    point, two per boundary point (its values only), and a bare Householder QR of the matrix.
    """
    problem, features = pf.zoo.get("poisson-square"), pf.NetworkFeatures(_SQUARE, width=500, depth=2)
    solver = pf.factor(problem, features)
    waves = np.random.default_rng(0).uniform(-3, 3, (2, 1000))
    sources = np.cos(solver.points["equation"] @ waves)
    matrix, sides = np.ones((500, solver.stats.rows)), np.ones((solver.stats.rows, 1000))
    task, reference = median_seconds(lambda: solver.solve(sources).coefficients, lambda: matrix @ sides)
    rows = [
        Row("transfer", "one of 1000 sources, 500 features", "bare float64 GEMM", task / 1000, reference / 1000),
    ]
    for name in ("poisson-lshape", "poisson-annulus"):
        elsewhere = pf.zoo.get(name)
        there = pf.factor(elsewhere, features)
        inside, total = len(there.points["equation"]), there.stats.rows
        tall = np.asfortranarray(np.random.default_rng(0).standard_normal((total, 500)))
        work = int(lapack.dgeqrf_lwork(total, 500)[0])
        task, products, qr = median_seconds(
            lambda elsewhere=elsewhere: pf.factor(elsewhere, features).solve().coefficients,
            _products(5 * inside + 2 * (total - inside), 500),
            lambda tall=tall, work=work: lapack.dgeqrf(tall, lwork=work),
            repeats=7,
        )
        rows.append(Row("transfer", f"{name} with features of the square", "bare GEMMs and QR", task, products + qr))
    return rows


_SQUARE = pf.Box([-1, -1], [1, 1])


def _assembly(features: pf.Features) -> Callable[[], Any]:
    """The matrix of the Laplacian at 1024 points of the square."""
    problem = pf.Problem(_SQUARE, lambda u, x: -pf.laplacian(u)(x), source=1.0, conditions=[pf.Dirichlet(0.0)])
    blocks, zero = collocate(problem, 1024, 16)[:1], np.zeros((features.size, 1))
    return lambda: assemble(problem.layout, features, blocks, zero).A


def _evaluation(features: pf.Features) -> Callable[[], Any]:
    """The values of a function in the space at 4096 points of the square."""
    points, ones = _SQUARE.sample(4096), np.ones((features.size, 1))
    return lambda: evaluate(features, ones, points)


BENCHES: dict[str, Callable[[], list[Row]]] = {
    "assembly": bench_assembly,
    "training": bench_training,
    "partition": bench_partition,
    "corner": bench_corner,
    "transfer": bench_transfer,
}


def run(names: list[str]) -> list[Row]:
    """The rows of the named benchmarks, all of them for ``["all"]`` or an empty list."""
    chosen = list(BENCHES) if not names or names == ["all"] else names
    for name in chosen:
        if name not in BENCHES:
            raise unknown_name("benchmark", name, BENCHES)
    return [row for name in chosen for row in BENCHES[name]()]


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    packages = ("pdofm", "jax", "numpy", "scipy")
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        **{name: version(name) for name in packages},
    }


def as_json(rows: list[Row]) -> dict[str, Any]:
    """The rows and the machine, ready for json.dumps."""
    return {"machine": machine(), "rows": [asdict(row) | {"ratio": row.ratio} for row in rows]}
