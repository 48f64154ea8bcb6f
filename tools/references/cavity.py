"""Flow in a driven square: ``python tools/references/cavity.py``, minutes.

Writes the reference for the lid of speed 4x(1 - x) at Re = 100, and prints the extreme velocities on the centre lines
of the classical cavity (lid of speed 1) that `pdofm challenge` compares with.

The stream function ψ, with velocity (ψ_y, -ψ_x), satisfies νΔ²ψ = v · ∇Δψ. Near the corners of the lid it is a series
Σ rⁿ ψ_n(θ), whose terms follow from ordinary differential equations, plus functions that vanish like r^3.7. A few terms
of the series are subtracted, in all of the square, and what remains is found by Galerkin's method in products of
Legendre polynomials that vanish on the boundary with their normal derivatives (Shen 1994).
"""

import sys
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from common import save
from numpy.polynomial import Chebyshev, Legendre, chebyshev, legendre
from scipy.linalg import eigh, lu_factor, lu_solve

DEGREE = 40
"""Of Chebyshev polynomials of the angle at a corner, and along a side."""

LID = {"regular": (0.0, 4.0, -4.0), "classical": (1.0,)}
"""The speed of the lid, as coefficients of powers of the distance from a corner."""

TERMS = {"regular": 5, "classical": 3}
"""The power of r up to which terms are subtracted."""


@dataclass(frozen=True)
class Corner:
    """The series at a corner, in coordinates (X, Y) from the corner along the lid and down the wall; `sign` is that of
    the lid's speed along X."""

    reynolds: float
    lid: tuple[float, ...]
    terms: int
    sign: int

    @cached_property
    def functions(self) -> list[tuple[Chebyshev, ...]]:
        """ψ_n, its derivative, and the same of W_n, where Δ(rⁿψ_n) = rⁿ⁻² W_n."""
        found: list[tuple[Chebyshev, ...]] = []
        for n in range(1, self.terms + 1):
            force = Chebyshev([0.0], [0, np.pi / 2])
            for m in range(1, n):
                (f, df, _, _), (_, _, w, dw) = found[m - 1], found[n - m - 1]
                force = force + self.reynolds * ((n - m - 2) * df * w - m * f * dw)
            speed = self.sign * self.lid[n - 1] if n <= len(self.lid) else 0.0
            psi = _clamped(n, force, speed)
            w = n**2 * psi + psi.deriv(2)
            found.append((psi, psi.deriv(), w, w.deriv()))
        return found

    def at(self, X: np.ndarray, Y: np.ndarray) -> "Series":
        r, theta = np.hypot(X, Y), np.arctan2(Y, X)
        rows = [tuple(np.asarray(f(theta)) for f in each) for each in self.functions]
        psi, along, across, delta = (np.zeros_like(r) for _ in range(4))
        low = [np.zeros_like(r), np.zeros_like(r)]  # of Δψ∇ψ, radial and angular
        head = np.zeros_like(r)
        for n, (f, df, w, dw) in enumerate(rows, start=1):
            psi, delta = psi + r**n * f, delta + r ** (n - 2.0) * w
            along, across = along + n * r ** (n - 1.0) * f, across + r ** (n - 1.0) * df
            pairs = [(m, rows[m - 1], rows[n - m - 1][2]) for m in range(1, n)]
            radial = sum((m * own[0] * other for m, own, other in pairs), np.zeros_like(r))
            angular = sum((own[1] * other for _, own, other in pairs), np.zeros_like(r))
            low = [low[0] + r ** (n - 3.0) * radial, low[1] + r ** (n - 3.0) * angular]
            slope = dw / self.reynolds + radial  # the radial derivative of the head is r^(n-3) times this
            head = head + (r ** (n - 2.0) / (n - 2) * slope if n != 2 else slope * np.log(r) + self._turned(theta))
        c, s = np.cos(theta), np.sin(theta)
        return Series(
            psi, (c * along - s * across, s * along + c * across), delta,
            (c * low[0] - s * low[1], s * low[0] + c * low[1]), head,
        )  # fmt: skip

    def _turned(self, theta: np.ndarray) -> np.ndarray:
        """The part of the head of order zero that depends on the angle."""
        (_, df, w, _) = self.functions[0]
        return (df * w).integ(lbnd=0)(theta)


@dataclass(frozen=True)
class Series:
    """The sum of a series: ψ, its gradient, Δψ; and, of the terms up to the last order alone, Δψ∇ψ and the head
    p + |v|²/2 that belongs to them."""

    psi: np.ndarray
    gradient: tuple[np.ndarray, np.ndarray]
    delta: np.ndarray
    low: tuple[np.ndarray, np.ndarray]
    head: np.ndarray


def _clamped(n: int, force: Chebyshev, speed: float) -> Chebyshev:
    """The solution of (D² + (n-2)²)(D² + n²) f = force with f = 0 at both ends, f' = speed at 0 and 0 at π/2. The
    unknowns are coefficients of the fourth derivative, which keeps the system well conditioned."""
    half, count = np.pi / 4, DEGREE + 5
    columns = []
    for k in range(count):
        if k < 4:
            columns.append(Chebyshev.basis(k, [0, np.pi / 2]))
        else:
            columns.append(Chebyshev(chebyshev.chebint(np.eye(DEGREE + 1)[k - 4], 4, scl=half), [0, np.pi / 2]))
    nodes = half * (1 + np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1)))
    a, b = n**2 + (n - 2) ** 2, n**2 * (n - 2) ** 2
    rows = np.stack([f.deriv(4)(nodes) + a * f.deriv(2)(nodes) + b * f(nodes) for f in columns], axis=1)
    ends = np.array([0.0, np.pi / 2])
    rows = np.vstack(
        [rows, *(np.stack([g(ends) for g in each], 1) for each in (columns, [f.deriv() for f in columns]))]
    )
    right = np.concatenate([force(nodes), [0.0, 0.0, speed, 0.0]])
    return sum((c * f for c, f in zip(np.linalg.solve(rows, right), columns, strict=True)), 0 * columns[0])


class Cavity:
    """Flow in the unit square at a Reynolds number, in polynomials up to degree `size` + 3 along each axis."""

    def __init__(self, reynolds: float, kind: str, size: int, start: "Cavity | None" = None):
        self.reynolds, self.lid, self.size = reynolds, LID[kind], size
        self.corners = [Corner(reynolds, self.lid, TERMS[kind], sign) for sign in (1, -1)]
        nodes, weights = legendre.leggauss(2 * size)
        self.nodes, self.weights = (nodes + 1) / 2, weights / 2
        x, y = np.meshgrid(self.nodes, self.nodes, indexing="ij")
        self.known = self._series(x, y)
        self.tables = [_shen(self.nodes, size, order) for order in range(4)]
        self.edges = self._edges()
        self.lifted = {each: self._lifted(self.nodes, self.nodes, each) for each in _UP_TO_THIRD}
        self.c = np.zeros((size, size))
        if start is not None:  # the same function, as far as the new series allows
            nodes = start.nodes
            inverse = np.linalg.pinv(_shen(nodes, size, 0))
            series = self._series(*np.meshgrid(nodes, nodes, indexing="ij"))[0] + self._lifted(nodes, nodes, (0, 0))
            self.c = inverse @ (start.known[0] + start._smooth(0, 0) - series) @ inverse.T
        self._newton()

    def _series(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        """ψ, ψ_x, ψ_y, Δψ, the two components of the low part, and the head, of both corners together. The first corner
        is mirrored, which changes the sign of ψ, and the second one turned."""
        a, b = self.corners[0].at(x, 1 - y), self.corners[1].at(1 - x, 1 - y)
        return (
            b.psi - a.psi, -a.gradient[0] - b.gradient[0], a.gradient[1] - b.gradient[1], b.delta - a.delta,
            a.low[0] - b.low[0], -a.low[1] - b.low[1], a.head + b.head,
        )  # fmt: skip

    def _edges(self) -> list[list[Chebyshev]]:
        """What ψ and its derivatives across them must be on the sides x = 0, 1 and y = 0, 1, beyond the series."""
        lid = np.polynomial.Polynomial(self.lid)

        def fit(function) -> Chebyshev:
            return Chebyshev.interpolate(function, DEGREE, domain=[0, 1])

        def series(x, y, which, corners=(0, 1)):
            one = np.ones_like(x + y)
            found = 0.0
            for i, corner in enumerate(self.corners):
                if i in corners:
                    s, sign = corner.at((x if i == 0 else 1 - x) * one, (1 - y) * one), (-1, 1)[i]
                    found = found + (sign * s.psi, -s.gradient[0], (s.gradient[1], -s.gradient[1])[i])[which]
            return found

        # On the wall that it touches, and on the lid, the series of a corner satisfies the conditions of its own.
        left = [fit(lambda y, w=w: -series(0.0, y, w, (1,))) for w in (0, 1)]
        right = [fit(lambda y, w=w: -series(1.0, y, w, (0,))) for w in (0, 1)]
        bottom = [fit(lambda x, w=w: -series(x, 0.0, w)) for w in (0, 2)]
        # Both series drive the lid: one time too many.
        top = [Chebyshev([0.0], [0, 1]), fit(lambda x: -lid(x))]
        return [[left[0], right[0], left[1], right[1]], [bottom[0], top[0], bottom[1], top[1]]]

    def _lifted(self, x: np.ndarray, y: np.ndarray, orders: tuple[int, int]) -> np.ndarray:
        """A derivative of a function that satisfies the conditions, by cubic Hermite blending from the sides."""
        i, j = orders
        hx, hy = (np.stack([h.deriv(k)(t) if k else h(t) for h in _HERMITE]) for t, k in ((x, i), (y, j)))
        fy = np.stack([f.deriv(j)(y) if j else f(y) for f in self.edges[0]])
        gx = np.stack([g.deriv(i)(x) if i else g(x) for g in self.edges[1]])
        twice = np.array([
            [f(0.0), f(1.0), f.deriv()(0.0), f.deriv()(1.0)] for f in self.edges[0]
        ])  # fmt: skip
        return hx.T @ fy + gx.T @ hy - hx.T @ twice @ hy

    def _smooth(self, i: int, j: int) -> np.ndarray:
        """A derivative of ψ without the series, at the nodes."""
        return self.lifted[i, j] + self.tables[i] @ self.c @ self.tables[j].T

    def _fields(self) -> tuple[np.ndarray, ...]:
        """ψ_x, ψ_y, Δψ, and Δ of the smooth part."""
        delta = self._smooth(2, 0) + self._smooth(0, 2)
        return self.known[1] + self._smooth(1, 0), self.known[2] + self._smooth(0, 1), self.known[3] + delta, delta

    def _newton(self) -> None:
        """Find the coefficients c: ν(Δψ, Δφ) + (Δψ v, ∇φ) = 0 for all φ; of the series only what it leaves counts."""
        t0, t1, t2, _ = (each * self.weights[:, None] for each in self.tables)
        p0, p1, p2, _ = self.tables
        for _ in range(20):
            px, py, delta, own = self._fields()
            ex, ey = delta * py - self.known[5], self.known[4] - delta * px
            residual = (t2.T @ own @ t0 + t0.T @ own @ t2) / self.reynolds + t1.T @ ex @ t0 + t0.T @ ey @ t1
            matrix = _form(t1, t0, [(py, p2, p0), (py, p0, p2), (delta, p0, p1)])
            matrix += _form(t0, t1, [(-px, p2, p0), (-px, p0, p2), (-delta, p1, p0)])
            gram = [[a.T @ (self.weights[:, None] * b) for b in (p0, p2)] for a in (p0, p2)]
            for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
                matrix += np.kron(gram[a][b], gram[1 - a][1 - b]) / self.reynolds
            step = lu_solve(lu_factor(matrix, overwrite_a=True, check_finite=False), residual.reshape(-1))
            self.c = self.c - step.reshape(self.c.shape)
            change = np.abs(step).max() / np.abs(self.c).max()
            print(f"  Re {self.reynolds:g}, size {self.size}: change {change:.1e}", file=sys.stderr, flush=True)
            if change < 1e-9:  # the next one would be about the square of it
                return

    def velocity(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """At points (n,), as (n, 2)."""
        known = self._series(x, y)
        tx, ty = ([_shen(t, self.size, k) for k in (0, 1)] for t in (x, y))
        own = [np.einsum("nk,kl,nl->n", tx[1 - k], self.c, ty[k]) for k in (0, 1)]
        lifted = [np.array([self._lifted(x[[i]], y[[i]], (1 - k, k))[0, 0] for i in range(len(x))]) for k in (0, 1)]
        return np.stack([known[2] + own[1] + lifted[1], -known[1] - own[0] - lifted[0]], axis=1)

    def pressure(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """At points (n,), zero in the middle. Of the head p + |v|²/2, whose gradient is ν(Δψ_y, -Δψ_x) + Δψ∇ψ, the part
        that the series leaves is the least-squares fit to its gradient."""
        px, py, delta, _ = self._fields()
        slope_x = (self._smooth(2, 1) + self._smooth(0, 3)) / self.reynolds + delta * px - self.known[4]
        slope_y = -(self._smooth(3, 0) + self._smooth(1, 2)) / self.reynolds + delta * py - self.known[5]
        p0, p1 = (np.stack([_legendre(k, order)(self.nodes) for k in range(self.size)], axis=1) for order in (0, 1))
        w = self.weights[:, None]
        values, vectors = eigh(p1.T @ (w * p1), p0.T @ (w * p0))
        right = (w * p1).T @ slope_x @ (w * p0) + (w * p0).T @ slope_y @ (w * p1)
        sums = values[:, None] + values
        sums[0, 0] = np.inf  # the constant
        c = vectors @ ((vectors.T @ right @ vectors) / sums) @ vectors.T

        def head(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            tx, ty = (np.stack([_legendre(k, 0)(t) for k in range(self.size)], axis=1) for t in (x, y))
            return self._series(x, y)[6] + np.einsum("nk,kl,nl->n", tx, c, ty)

        def at(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return head(x, y) - np.sum(self.velocity(x, y) ** 2, axis=1) / 2

        return at(x, y) - at(np.array([0.5]), np.array([0.5]))

    def extremes(self) -> tuple[float, float, float]:
        """The smallest u for x = 1/2, the largest and the smallest v for y = 1/2."""

        def along(line, component) -> np.ndarray:
            found = Chebyshev.interpolate(lambda s: self.velocity(*line(s))[:, component], 150, domain=[0, 1])
            places = found.deriv().roots()
            inside = np.real(places[(np.abs(places.imag) < 1e-8) & (places.real > 0.01) & (places.real < 0.99)])
            return found(inside)

        down, across = along(lambda s: (0.5 + 0 * s, s), 0), along(lambda s: (s, 0.5 + 0 * s), 1)
        return float(down.min()), float(across.max()), float(across.min())


_UP_TO_THIRD = [(i, j) for i in range(4) for j in range(4 - i)]
_HERMITE = [
    np.polynomial.Polynomial(c)
    for c in ((1.0, 0.0, -3.0, 2.0), (0.0, 0.0, 3.0, -2.0), (0.0, 1.0, -2.0, 1.0), (0.0, 0.0, -1.0, 1.0))
]
"""Cubic polynomials with one value or slope 1 at the ends 0 and 1, all others 0."""


def _legendre(k: int, order: int) -> Legendre:
    found = Legendre.basis(k, [0, 1])
    return found.deriv(order) if order else found


def _shen(t: np.ndarray, size: int, order: int) -> np.ndarray:
    """A derivative of the polynomials that vanish at both ends with their first derivatives, scaled by their energy."""
    columns = []
    for k in range(size):
        c = np.zeros(k + 5)
        c[[k, k + 2, k + 4]] = 1.0, -2 * (2 * k + 5) / (2 * k + 7), (2 * k + 3) / (2 * k + 7)
        f = Legendre(c / np.sqrt(2 * (2 * k + 3) ** 2 * (2 * k + 5)), [0, 1])
        columns.append((f.deriv(order) if order else f)(t))
    return np.stack(columns, axis=1)


def _form(a: np.ndarray, b: np.ndarray, parts) -> np.ndarray:
    """The matrix of Σ over nodes of a_k b_l (Σ c f_k' g_l'), for parts (c, f, g)."""
    size = a.shape[1]
    total = np.zeros((size, size, size, size))
    for c, f, g in parts:
        inner = np.einsum("qk,qm->kmq", a, f).reshape(-1, len(a)) @ c
        total += np.matmul(inner.reshape(size, size, 1, -1) * b.T, g).transpose(0, 2, 1, 3)
    return total.reshape(size**2, size**2)


def main() -> None:
    rng = np.random.default_rng(0)
    cells = np.stack(np.meshgrid(np.arange(36), np.arange(36), indexing="ij"), axis=-1).reshape(-1, 2)
    x = (cells + rng.random(cells.shape)) / 36
    fine, coarse = (Cavity(100.0, "regular", size) for size in (80, 64))
    values, other = (np.column_stack([f.velocity(*x.T), f.pressure(*x.T)]) for f in (fine, coarse))
    error = np.linalg.norm(values - other, axis=0) / np.linalg.norm(values, axis=0)
    how = (
        "Galerkin's method for the stream function with series at the corners; the error is the distance of two degrees"
    )
    save("cavity-regular", x, np.full(len(x), 1 / len(x)), values, error, how)
    found = None
    for reynolds in (100.0, 400.0, 1000.0):
        found = Cavity(reynolds, "classical", 64, found)
        for each in (found, Cavity(reynolds, "classical", 88, found)):
            print(reynolds, each.size, *(f"{value:.10f}" for value in each.extremes()), flush=True)


if __name__ == "__main__":
    main()
