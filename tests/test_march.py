"""Evolution problems, slab after slab: against exact solutions, for equations and conditions of many kinds."""

import itertools
import math
import pickle
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf, j0, j1, jn_zeros

import pdofm as pf
from pdofm.calculus.symbol import symbol_of
from pdofm.domain.quadrature import quadrature_of
from pdofm.errors import ConvergenceWarning, SolveError
from pdofm.features import Slabs
from pdofm.marching.dyadic import halved, joined
from pdofm.marching.march import can_march
from pdofm.marching.orthogonal import Orthonormal
from pdofm.marching.pulses import pulses_of
from pdofm.marching.radau import radau
from pdofm.marching.record import MAGIC
from pdofm.marching.run import Run
from pdofm.marching.statement import Statement
from pdofm.marching.whole import degrees, next_degree
from pdofm.zoo.evolution import bessel

PI = math.pi

ROUNDING = 1e-13
"""Relative errors below this are rounding, which the estimate bounds but does not measure."""


def d(u, order):
    return pf.partial(u, *[0] * order)


def line(low, high, T):
    return pf.SpaceTime(pf.Interval(low, high), T)


def burgers(nu, T=1.0):
    return pf.Problem(
        line(-1, 1, T),
        operator=lambda u, x, t: pf.dt(u)(x, t) + u(x, t) * d(u, 1)(x, t) - nu * d(u, 2)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(0.0), pf.Initial(lambda x, t: -jnp.sin(PI * x[0]))],
        name="burgers",
    )


def cole_hopf(z, nu):
    """The solution of Burgers' equation from -sin πx, by the trapezoidal rule, which converges geometrically here."""
    s = np.linspace(-25, 25, 2001)
    y = z[:, :1] - np.sqrt(4 * nu * z[:, 1:]) * s
    exponent = -np.cos(PI * y) / (2 * PI * nu) - s**2
    weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return -np.sum(np.sin(PI * y) * weight, axis=1) / np.sum(weight, axis=1)


def relative(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def heat(space, exact, **options):
    return pf.Problem(
        pf.SpaceTime(space, 0.5),
        operator=lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=exact,
        **options,
    )


def smooth(x, t):
    return jnp.exp(-t) * jnp.sin(2 * x[0] + t) + 2


def problems():
    """One problem of each kind, with its exact solution."""
    short = line(0, 1, 0.5)
    yield pf.Problem(
        short,
        lambda u, x, t: pf.dt(u)(x, t) - (1 + x[0] * jnp.cos(3 * t)) * d(u, 2)(x, t) + u(x, t) ** 3,
        conditions=[
            pf.Robin(1.0, 2.0, on=short.part("x0=lower")),
            pf.Condition(
                lambda u, x, t: d(u, 1)(x, t) + u(x, t) ** 4 - d(smooth, 1)(x, t) - smooth(x, t) ** 4,
                on=short.part("x0=upper"),
            ),
            pf.Initial(),
        ],
        exact=smooth,
        name="heat with a reaction, not autonomous, Robin and radiation",
    )
    yield pf.Problem(
        line(0, 1, 2.0),
        lambda u, x, t: pf.dt(u)(x, t) + 2 * d(u, 1)(x, t),
        conditions=[pf.Dirichlet(on=line(0, 1, 2.0).part("x0=lower")), pf.Initial()],
        exact=lambda x, t: jnp.sin(5 * (x[0] - 2 * t)),
        name="advection with inflow",
    )
    yield pf.Problem(
        line(0, 1, 3.0),
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) - 4 * d(u, 2)(x, t),
        conditions=[pf.Dirichlet(0.0), pf.Initial()],
        exact=lambda x, t: (
            jnp.sin(PI * x[0]) * jnp.cos(2 * PI * t) + 0.5 * jnp.sin(4 * PI * x[0]) * jnp.cos(8 * PI * t)
        ),
        name="wave",
    )
    yield pf.Problem(
        line(0, PI, 1.0),
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) + d(u, 4)(x, t),
        conditions=[pf.Dirichlet(0.0), pf.Condition(lambda u, x, t: d(u, 2)(x, t)), pf.Initial()],
        exact=lambda x, t: jnp.sin(x[0]) * jnp.cos(4 * PI * t),
        name="forced beam",
    )
    yield pf.Problem(
        line(-10, 10, 0.5),
        lambda u, x, t: pf.dt(u)(x, t) + 6 * u(x, t) * d(u, 1)(x, t) + d(u, 3)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(), pf.Neumann(on=line(-10, 10, 0.5).part("x0=upper")), pf.Initial()],
        exact=lambda x, t: 2 / jnp.cosh(x[0] - 4 * t) ** 2,
        name="soliton of KdV between walls",
    )
    yield pf.Problem(
        line(0, 1, 1.0),
        lambda u, x, t: (pf.dt(u.w)(x, t) + d(u.q, 1)(x, t), u.q(x, t) + d(u.w, 1)(x, t)),
        unknowns={"w": 1, "q": 1},
        conditions=[pf.Dirichlet(unknown="w"), pf.Initial(unknown="w")],
        exact={
            "w": lambda x, t: jnp.exp(-t) * jnp.sin(x[0]),
            "q": lambda x, t: -jnp.exp(-t) * jnp.cos(x[0]),
        },
        name="heat and flux, an equation without time derivative",
    )
    yield pf.Problem(
        line(0, 2 * PI, 1.0),
        lambda u, x, t: pf.dt(u)(x, t) + 40 * d(u, 1)(x, t),
        source=0.0,
        conditions=[pf.Periodic(0), pf.Initial()],
        exact=lambda x, t: jnp.sin(x[0] - 40 * t),
        name="periodic advection",
    )


@pytest.mark.parametrize("problem", list(problems()), ids=lambda problem: problem.name)
def test_every_kind_of_equation_is_solved_to_its_tolerance_and_the_estimate_holds(problem):
    u = pf.march(problem, tol=1e-8)
    points = problem.domain.sample(1500, "random", key=2)
    truth = problem.exact_values(points)
    found = u(points).reshape(len(points), -1)
    error = max(relative(found[:, c], truth[:, c]) for c in range(found.shape[1]))
    assert u.converged
    assert error < 1e-8
    assert 0.1 * error < u.error_estimate < 10 * max(error, ROUNDING)


def test_the_front_of_burgers_equation_is_followed():
    u = pf.march(burgers(0.01 / PI), tol=1e-9)
    points = u.problem.domain.sample(2000, "random", key=3)
    error = relative(u(points), cole_hopf(points, 0.01 / PI))
    assert error < 1e-9
    assert 0.1 * error < u.error_estimate < 10 * error
    sizes = [slab.features for slab in u.slabs]
    assert max(sizes) > 4 * sizes[0]  # intervals are halved where the front forms


def test_a_front_travels_into_an_unstable_state_for_a_long_time():
    """In the unstable state u = 0 errors grow as exp(t), by 1e13 until the front of the Fisher-KPP equation has passed;
    relative to the solution they do not."""
    problem = pf.zoo.evolution.fisher_front(30.0)
    u = pf.march(problem, tol=1e-8)
    assert u.converged
    points = problem.domain.sample(1000, "random", key=5)
    error = relative(u(points), problem.exact_values(points)[:, 0])
    assert error < 1e-8
    assert 0.1 * error < u.error_estimate < 10 * error


def test_a_smaller_tolerance_gives_a_smaller_error():
    problem = burgers(0.03, T=0.5)
    points = problem.domain.sample(1000, "random", key=4)
    truth = cole_hopf(points, 0.03)
    errors = [relative(pf.march(problem, tol=tol)(points), truth) for tol in (1e-4, 1e-7, 1e-10)]
    assert errors[0] < 1e-4
    assert errors[1] < 1e-7
    assert errors[2] < 1e-10
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_a_start_that_contradicts_the_conditions_is_resolved():
    problem = pf.Problem(
        line(0, 1, 0.5),
        lambda u, x, t: pf.dt(u)(x, t) - d(u, 2)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(0.0), pf.Initial(1.0)],
    )
    u = pf.march(problem, tol=1e-6)
    points = problem.domain.sample(500, "random", key=1)
    points = points[points[:, 1] > 1e-3]
    odd = np.arange(1, 201, 2)
    series = 4 / (PI * odd) * np.sin(PI * odd * points[:, :1]) * np.exp(-((PI * odd) ** 2) * points[:, 1:])
    assert u.converged
    assert relative(u(points), series.sum(axis=1)) < 1e-6
    assert u.slabs[0].end < 1e-4


def test_a_flow_in_two_dimensions_with_pressure():
    nu = 0.01

    def navier_stokes(u, x, t):
        momentum = pf.dt(u.v)(x, t) + pf.grad(u.v)(x, t) @ u.v(x, t) - nu * pf.laplacian(u.v)(x, t)
        return momentum + pf.grad(u.p)(x, t), pf.div(u.v)(x, t)

    def vortex(x, t):
        y = x - t
        return 1 + jnp.exp(-2 * nu * t) * jnp.stack([jnp.sin(y[0]) * jnp.cos(y[1]), -jnp.cos(y[0]) * jnp.sin(y[1])])

    def pressure(x, t):
        return jnp.exp(-4 * nu * t) * (jnp.cos(2 * (x[0] - t)) + jnp.cos(2 * (x[1] - t))) / 4

    problem = pf.Problem(
        pf.SpaceTime(pf.Box([0, 0], [2 * PI, 2 * PI]), 0.25),
        navier_stokes,
        source=0.0,
        conditions=[pf.Periodic(0), pf.Periodic(1), pf.Initial(unknown="v")],
        unknowns={"v": 2, "p": 1},
        exact={"v": vortex, "p": pressure},
    )
    u = pf.march(problem, tol=1e-8)
    assert u.converged
    assert u.errors().relative_l2 < 1e-8


def test_heat_on_an_l_shaped_domain():
    lshape = pf.Box([-1, -1], [1, 1]) - pf.Box([0, 0], [1, 1])
    u = pf.march(heat(lshape, lambda x, t: jnp.exp(-t) * jnp.sin(x[0] + t) * jnp.cos(x[1])), tol=1e-5)
    assert u.converged
    assert u.errors().relative_l2 < 1e-5


@pytest.mark.parametrize("kind", [pf.Dirichlet, pf.Neumann])
def test_heat_at_a_reentrant_corner_is_as_accurate_as_elsewhere(kind):
    """Bessel functions J(2k/3) of the radius times sines, or cosines, of angles: r^(2/3) at the corner of the L."""
    space = pf.Box([-1, -1], [1, 1]) - pf.Box([0, 0], [1, 1])
    function = jnp.sin if kind is pf.Dirichlet else jnp.cos

    def exact(x, t):
        angle = jnp.arctan2(x[0] - x[1], -(x[0] + x[1])) + 3 * PI / 4
        modes = [(2 / 3, 1.0), (4 / 3, 1.5)]
        return sum(
            jnp.exp(-(k**2) * t) * bessel(order, k * jnp.hypot(x[0], x[1])) * function(order * angle)
            for order, k in modes
        )

    problem = pf.Problem(
        pf.SpaceTime(space, 0.2),
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        source=0.0,
        conditions=[kind(), pf.Initial()],
        exact=exact,
    )
    u = pf.march(problem, tol=1e-6)
    points = problem.domain.sample(1000, "random", key=1)
    error = relative(u(points), problem.exact_values(points)[:, 0])
    assert u.converged
    assert error < 1e-6
    assert u.error_estimate > 0.1 * error
    assert u.spectral_radius < 1 + 1e-9


def test_polynomials_and_singular_functions_are_made_orthonormal_with_their_derivatives():
    space = pf.Box([-1, -1], [1, 1]) - pf.Box([0, 0], [1, 1])
    rule = quadrature_of(space).whole(40)
    corner = pf.CornerFunctions(space, highest=3.0, radial=True)
    basis = Orthonormal(pf.Chebyshev(space, degree=12), [(corner, np.arange(corner.size))], rule.points, rule.weights)
    which = [(0, 0), (1, 0), (0, 2)]
    jets = basis.jets(rule.points, which)
    gram = jets[0].T @ (jets[0] * rule.weights[:, None])
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-8)
    joined = np.concatenate(
        [f.jets(rule.points, [(0, 0), (1, 0), (0, 2)]) for f in (basis.polynomials, corner)], axis=2
    )
    np.testing.assert_allclose(joined @ basis.matrix, jets, atol=1e-6 * np.abs(jets).max())


def test_solve_marches_by_itself_and_says_so():
    u = pf.solve(burgers(0.1), tol=1e-6)
    assert isinstance(u, pf.Evolution)
    assert u.converged
    assert "slab of time" in u.search
    points = u.problem.domain.sample(500, "random", key=1)
    assert relative(u(points), cole_hopf(points, 0.1)) < 1e-6


def test_a_blow_up_ends_with_a_verdict_and_the_last_good_time():
    """u_t = u² from 1 has the solution 1 / (1 - t)."""
    problem = pf.Problem(
        line(0, 1, 2.0),
        lambda u, x, t: pf.dt(u)(x, t) - u(x, t) ** 2 - d(u, 2)(x, t),
        source=0.0,
        conditions=[pf.Neumann(0.0), pf.Initial(1.0)],
    )
    with pytest.warns(ConvergenceWarning, match="cannot be continued beyond t ="):
        u = pf.march(problem, tol=1e-4)
    assert u.verdict.status is pf.Status.DIVERGED
    assert 0.9 < u.slabs[-1].end < 1.001
    assert abs(u(0.5, 0.5) - 2) < 1e-3
    assert np.isnan(u(0.5, 1.5))
    with pytest.warns(ConvergenceWarning, match="cannot be continued beyond t ="):
        assert isinstance(pf.solve(problem, tol=1e-2), pf.Evolution)


class Killed(BaseException):
    """Stands for the end of the process."""


def test_a_march_that_was_killed_again_and_again_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    problem, path = burgers(0.05, T=0.25), tmp_path / "march.bin"
    whole = pf.march(problem, tol=1e-5)
    advance = Run.advance
    for slabs in (1, 2, len(whole.slabs)):  # the last time in the second run
        calls = iter(range(slabs))

        def limited(run, deadline, calls=calls):
            if next(calls, None) is None:
                raise Killed
            return advance(run, deadline)

        monkeypatch.setattr(Run, "advance", limited)
        with pytest.raises(Killed):
            pf.march(problem, tol=1e-5, checkpoint=path)
        path.write_bytes(path.read_bytes() + b"an entry that was not finished")
    monkeypatch.setattr(Run, "advance", advance)
    resumed = pf.march(problem, tol=1e-5, checkpoint=path)
    assert np.array_equal(resumed.coefficients, whole.coefficients)
    assert np.array_equal(resumed.features.times, whole.features.times)
    with pytest.raises(SolveError, match="belongs to another problem or tolerance"):
        pf.march(problem, tol=1e-6, checkpoint=path)


def test_a_record_that_ends_anywhere_is_continued_to_the_same_bits(tmp_path, seed):
    """A march may be killed at any moment, also while it writes."""
    problem, path, rng = burgers(0.1, T=0.1), tmp_path / "march.bin", np.random.default_rng(seed)
    whole = pf.march(problem, tol=1e-4, checkpoint=path)
    content = path.read_bytes()
    for length in rng.integers(0, len(content), 10):
        path.write_bytes(content[: max(int(length), len(MAGIC))])
        resumed = pf.march(problem, tol=1e-4, checkpoint=path)
        assert np.array_equal(resumed.coefficients, whole.coefficients)
        assert path.read_bytes() == content


def test_slabs_stay_on_disk_with_a_checkpoint(tmp_path):
    problem = burgers(0.1, T=0.2)
    u, v = pf.march(problem, tol=1e-4), pf.march(problem, tol=1e-4, checkpoint=tmp_path / "run.march")
    assert isinstance(v.coefficients, np.memmap)
    points = problem.domain.sample(50, "random", key=1)
    np.testing.assert_array_equal(u(points), v(points))


def test_a_saved_evolution_keeps_its_slabs(tmp_path):
    u = pf.march(burgers(0.1, T=0.2), tol=1e-4)
    pf.save(tmp_path / "u.pdofm", u)
    for again in (pf.load(tmp_path / "u.pdofm"), pickle.loads(pickle.dumps(u))):
        assert isinstance(again, pf.Evolution)
        assert again.slabs == u.slabs
        assert again.converged
        assert again(0.1, 0.1) == u(0.1, 0.1)


def test_complex_unknowns_are_marched():
    """A soliton of the nonlinear Schrödinger equation, and a plane wave."""

    def operator(u, x, t):
        return pf.dt(u)(x, t) * 1j + d(u, 2)(x, t) / 2 + u(x, t) * jnp.conj(u(x, t)) * u(x, t)

    def turning(angle):
        return jax.lax.complex(jnp.cos(angle), jnp.sin(angle))

    soliton = pf.Problem(
        line(-18, 18, 1.0),
        operator,
        source=0.0,
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=lambda x, t: turning(x[0] / 2 + 0.375 * t) * (1 / jnp.cosh(x[0] - t / 2)).astype(complex),
        dtype=complex,
    )
    wave = pf.Problem(
        line(0, 2 * PI, 1.0),
        operator,
        source=0.0,
        conditions=[pf.Periodic(0), pf.Initial()],
        exact=lambda x, t: 1.5 * turning(3 * x[0] - 2.25 * t),
        dtype=complex,
    )
    for problem in (soliton, wave):
        u = pf.march(problem, tol=1e-9)
        error = u.errors().relative_l2
        assert u.converged
        assert error < 1e-9
        assert 0.1 * error < u.error_estimate < 10 * error


def test_an_interrupt_returns_the_solution_so_far(monkeypatch):
    advance = Run.advance

    def interrupted(run, deadline):
        if len(run.pieces) == 3:
            raise KeyboardInterrupt
        return advance(run, deadline)

    monkeypatch.setattr(Run, "advance", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted at t ="):
        u = pf.march(burgers(0.1), tol=1e-6)
    assert u.verdict.status is pf.Status.INTERRUPTED
    assert len(u.slabs) == 3
    points = np.array([[0.3, 0.9 * u.slabs[-1].end]])
    assert relative(u(points), cole_hopf(points, 0.1)) < 1e-3


def test_what_cannot_be_marched_is_refused_with_a_reason():
    steady = pf.zoo.get("poisson-1d")
    with pytest.raises(SolveError, match="needs a problem with time"):
        pf.march(steady)
    with pytest.raises(SolveError, match="between 0 and 1"):
        pf.march(burgers(0.1), tol=-1.0)
    too_many = pf.Problem(
        line(0, 1, 1.0),
        lambda u, x, t: pf.dt(u)(x, t) + d(u, 1)(x, t),
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=lambda x, t: x[0] - t,
    )
    with pytest.raises(SolveError, match="the equation in space add up to, 1; got 2"):
        pf.march(too_many)
    assert not can_march(too_many)
    later = pf.Problem(
        line(0, 1, 1.0),
        lambda u, x, t: pf.dt(u)(x, t) - d(u, 2)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(0.0), pf.Initial(0.0, on=line(0, 1, 1.0).at(0.5))],
    )
    with pytest.raises(SolveError, match="neither at the start only"):
        pf.march(later)


@pytest.mark.parametrize(
    "space",
    [
        pf.Disk([0, 0], 1.0),
        pf.Annulus([0, 0], 0.4, 1.0),
        pf.Ellipse([0, 0], 1.5, 0.6).rotated(0.3),
        pf.Box([-1, -1], [1, 1]) - pf.Disk([0.3, 0.3], 0.2),
        pf.Polygon([[0, 0], [1, 1e-6], [1, 1], [0, 1]]),
    ],
    ids=["disk", "annulus", "tilted ellipse", "hole", "tilted side"],
)
def test_heat_on_a_domain_that_does_not_consist_of_boxes(space):
    problem = heat(space, lambda x, t: jnp.exp(-t) * jnp.sin(2 * x[0] + t) * jnp.cos(x[1]))
    u = pf.march(problem, tol=1e-6)
    assert u.converged, u.reason
    error = u.errors().relative_l2
    assert error < 1e-6
    assert u.error_estimate > 0.1 * error
    assert u.spectral_radius < 1


def spreading(a):
    """A peak that spreads in the plane: exp(-a r² / (1 + 4at)) / (1 + 4at)."""
    return lambda x, t: jnp.exp(-a * (x @ x) / (1 + 4 * a * t)) / (1 + 4 * a * t)


def test_a_peak_on_a_disk_takes_a_high_degree():
    u = pf.march(heat(pf.Disk([0.1, 0], 1.0), spreading(12.0)), tol=1e-5)
    error = u.errors().relative_l2
    assert u.slabs[0].features > 276  # beyond degree 22
    assert u.converged
    assert error < 1e-5
    assert u.error_estimate > 0.1 * error
    assert u.spectral_radius < 1


def bessel_series(z):
    """Heat on the unit disk, 1 at the start and 0 on the boundary."""
    zeros = jn_zeros(0, 100)
    modes = j0(zeros * np.linalg.norm(z[:, :2], axis=1)[:, None]) * np.exp(-(zeros**2) * z[:, 2:])
    return modes @ (2 / (zeros * j1(zeros)))


def test_on_a_disk_a_start_that_contradicts_the_conditions_ends_with_an_honest_estimate():
    problem = pf.Problem(
        pf.SpaceTime(pf.Disk([0, 0], 1.0), 0.5),
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(0.0), pf.Initial(1.0)],
    )
    u = pf.march(problem, tol=1e-2)
    points = problem.domain.sample(1000, "random", key=1)
    points = points[points[:, 2] > 1e-3]
    error = relative(u(points), bessel_series(points))
    assert u.converged
    assert error < u.error_estimate < 1e-2


def stopped(monkeypatch, problem, tol, slabs):
    """A march whose time is up after so many slabs of all runs."""
    calls, now, advance = [], time.perf_counter(), Run.advance
    with monkeypatch.context() as patch:
        patch.setattr("pdofm.marching.run.perf_counter", lambda: now + 100.0 * (len(calls) > slabs))
        patch.setattr(Run, "advance", lambda run, deadline: calls.append(run) or advance(run, deadline))
        return pf.march(problem, tol=tol, max_seconds=50.0)


def slabs_of_runs(monkeypatch, problem, tol):
    """The number of slabs in each run of a march."""
    runs, advance = [], Run.advance
    with monkeypatch.context() as patch:
        patch.setattr(Run, "advance", lambda run, deadline: runs.append(id(run)) or advance(run, deadline))
        pf.march(problem, tol=tol)
    return [runs.count(run) for run in dict.fromkeys(runs)]


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
@pytest.mark.parametrize("nu", [0.05, 0.1])
def test_when_the_time_is_up_the_complete_run_before_has_an_honest_estimate(monkeypatch, nu):
    problem, tol = burgers(nu), 1e-8
    first, second = slabs_of_runs(monkeypatch, problem, tol)[:2]
    points = problem.domain.sample(500, "random", key=1)
    for slabs in (*(int(share * second) for share in (0.02, 0.2, 0.8)), second - 1):
        u = stopped(monkeypatch, problem, tol, first + slabs)
        assert u.verdict.status is pf.Status.OUT_OF_STEPS
        assert "the time was up in run 2, at t =" in u.reason
        assert "this is the complete run before it" in u.reason
        assert u.slabs[-1].end == 1.0
        assert relative(u(points), cole_hopf(points, nu)) <= u.error_estimate
        assert math.isfinite(u.error_estimate) or slabs < second - 1  # the last stop is beyond half of the time


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
def test_with_two_complete_runs_their_estimate_stands_when_the_time_is_up(monkeypatch):
    monkeypatch.setattr("pdofm.marching.march.FIRST_RUN", 1e5)  # so that two runs do not suffice
    problem, tol = burgers(0.1), 1e-8
    first, second, *_ = slabs_of_runs(monkeypatch, problem, tol)
    u = stopped(monkeypatch, problem, tol, first + second + 1)
    points = problem.domain.sample(500, "random", key=1)
    error = relative(u(points), cole_hopf(points, 0.1))
    assert "the time was up in run 3, at t =" in u.reason
    assert error < u.error_estimate < 100 * error


def test_without_a_slab_of_any_run_the_time_is_too_short():
    with pytest.raises(SolveError, match="The first slab takes longer than max_seconds"):
        pf.march(burgers(0.1), max_seconds=0.0)


@pytest.mark.parametrize("space", [pf.Interval(0, 1), pf.Disk([0, 0], 1.0)], ids=["interval", "disk"])
def test_nothing_stays_nothing(space):
    problem = pf.Problem(
        pf.SpaceTime(space, 0.5),
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(0.0), pf.Initial(0.0)],
    )
    u = pf.march(problem, tol=1e-6)
    assert u.converged
    assert not u(problem.domain.sample(100, "random", key=1)).any()


@pytest.mark.parametrize(
    "space", [pf.Interval(0, 1), pf.Box([0, 0], [1, 1]), pf.Disk([0, 0], 1.0)], ids=["interval", "box", "disk"]
)
def test_a_small_solution_that_is_zero_at_the_start_is_as_accurate_as_a_large_one(space):
    def exact(x, t):
        return 1e-12 * jnp.sin(3 * t) ** 2 * jnp.sin(5 * x[0]) * (jnp.cos(x[1]) if len(x) > 1 else 1.0)

    u = pf.march(heat(space, exact), tol=1e-6)
    error = u.errors().relative_l2
    assert u.converged
    assert error < 1e-6
    assert u.error_estimate > 0.1 * error


def test_a_coefficient_that_changes_for_a_short_time_is_seen_on_a_disk():
    """The slowest mode of heat decays as exp(-j² C(t)), where C is the integral of the conductivity."""
    zero = 2.404825557695773
    problem = pf.Problem(
        pf.SpaceTime(pf.Disk([0, 0], 1.0), 1.0),
        lambda u, x, t: pf.dt(u)(x, t) - (0.01 + 5 * jnp.exp(-(((t - 0.7) / 0.02) ** 2))) * pf.laplacian(u)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(0.0), pf.Initial(lambda x, t: bessel(0.0, zero * jnp.sqrt(x @ x + 1e-300)))],
    )
    u = pf.march(problem, tol=1e-4)
    points = problem.domain.sample(500, "random", key=1)
    integral = 0.01 * points[:, 2] + 0.05 * math.sqrt(PI) * (erf((points[:, 2] - 0.7) / 0.02) + 1)
    error = relative(u(points), j0(zero * np.hypot(points[:, 0], points[:, 1])) * np.exp(-(zero**2) * integral))
    assert u.converged
    assert error < 1e-4


def test_what_is_proved_not_to_depend_on_time():
    def is_autonomous(operator):
        problem = heat(pf.Disk([0, 0], 1.0), lambda x, t: x[0])
        other = pf.Problem(problem.domain, operator, conditions=problem.conditions, exact=problem.exact)
        return symbol_of(other.terms[0].lhs, other.layout, 3, 2).is_autonomous

    assert is_autonomous(lambda u, x, t: pf.dt(u)(x, t) - (1 + x @ x) * pf.laplacian(u)(x, t) + jnp.sin(t))
    assert not is_autonomous(lambda u, x, t: pf.dt(u)(x, t) - (1 + t) * pf.laplacian(u)(x, t))
    assert not is_autonomous(lambda u, x, t: pf.dt(u)(x, t) + jnp.where((t > 0.6) & (t < 0.61), u(x, t), 0.0))


def between(t):
    return jnp.where((t > 0.6) & (t < 0.8), 8.0, 0.0)


@pytest.mark.parametrize(
    ("space", "conditions", "operator"),
    [
        (pf.Interval(0, 1), [pf.Dirichlet()], lambda u, x, t: between(t) * d(u, 1)(x, t)),
        (pf.Interval(0, 1), [pf.Dirichlet()], lambda u, x, t: between(t) * u(x, t) * d(u, 1)(x, t) + u(x, t) ** 3),
        (pf.Interval(0, 1), [pf.Dirichlet()], lambda u, x, t: jnp.maximum(0.5 - u(x, t), 0) ** 4 * d(u, 1)(x, t)),
        (pf.Interval(0, 2 * PI), [pf.Periodic(0)], lambda u, x, t: between(t) * d(u, 1)(x, t)),
        (pf.Box([0, 0], [1, 1]), [pf.Dirichlet()], lambda u, x, t: between(t) * pf.partial(u, 1)(x, t)),
        (pf.Disk([0, 0], 1.0), [pf.Dirichlet()], lambda u, x, t: between(t) * pf.partial(u, 1)(x, t)),
    ],
    ids=["interval", "nonlinear", "where u is small", "waves", "box", "disk"],
)
def test_derivatives_that_occur_for_some_time_only_are_not_left_out(space, conditions, operator):
    problem = pf.Problem(
        pf.SpaceTime(space, 1.0),
        lambda u, x, t: pf.dt(u)(x, t) - 0.1 * pf.laplacian(u)(x, t) + operator(u, x, t),
        conditions=[*conditions, pf.Initial()],
        exact=lambda x, t: jnp.exp(-t) * jnp.sin(3 * x[0] + (x[1] if len(x) > 1 else 0)),
    )
    u = pf.march(problem, tol=1e-5)
    assert u.converged
    assert u.errors().relative_l2 < 1e-5


def test_successive_runs_never_have_the_same_degree():
    for dim in (2, 3):
        ladders = []
        for number in range(5):
            degree, highest = degrees(dim, number)
            ladders.append([degree])
            while degree < highest:
                degree = next_degree(dim, degree, highest)
                ladders[-1].append(degree)
        assert not any(set(a) & set(b) for a, b in itertools.pairwise(ladders))


def standing_wave(T):
    """A wave on the disk that is not zero on its boundary, and keeps its energy but for what enters there."""
    return pf.Problem(
        pf.SpaceTime(pf.Disk([0, 0], 1.0), T),
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t),
        source=0.0,
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=lambda x, t: jnp.sin(2 * x[0] + x[1]) * jnp.cos(math.sqrt(5) * t),
    )


def test_a_wave_on_a_disk_does_not_grow_by_itself():
    u = pf.march(standing_wave(8.0), tol=1e-6)
    assert u.converged
    assert u.errors().relative_l2 < 1e-6
    assert u.spectral_radius < 1 + 1e-6


@pytest.mark.parametrize("make", [pf.Chebyshev, pf.NetworkFeatures], ids=["polynomials", "networks"])
def test_given_features_are_marched_and_judged_by_what_they_leave_out(make):
    space = pf.Ellipse([0, 0], 1.2, 0.8)
    problem = heat(space, lambda x, t: jnp.exp(-t) * jnp.sin(2 * x[0] + t) * jnp.cos(x[1]))
    u = pf.march(problem, make(space, 150), tol=1e-5)
    error = u.errors().relative_l2
    assert u.converged, u.reason
    assert error < 1e-5
    assert u.error_estimate > error


def test_the_spectral_radius_of_a_slab_is_that_of_its_slowest_mode():
    """On the disk the slowest mode decays as exp(-j² t), where j is the first zero of the Bessel function J0."""
    problem = heat(pf.Disk([0, 0], 1.0), lambda x, t: jnp.exp(-t) * jnp.sin(x[0]))
    u = pf.march(problem, tol=1e-8)
    length = u.slabs[-1].end - u.slabs[-1].start
    assert u.spectral_radius == pytest.approx(math.exp(-(2.404825557695773**2) * length), rel=1e-4)


def test_features_that_are_not_of_space_are_refused():
    space = pf.Disk([0, 0], 1.0)
    problem = heat(space, lambda x, t: jnp.exp(-t) * x[0])
    with pytest.raises(SolveError, match="features of space, with 2 coordinates"):
        pf.march(problem, pf.Chebyshev(problem.domain, 50))


def test_several_regions_are_refused_and_solved_for_all_times_at_once():
    space = pf.Regions(left=pf.Interval(0, 1), right=pf.Interval(1, 2))
    problem = pf.Problem(
        pf.SpaceTime(space, 0.5),
        operator=lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
        conditions=[
            pf.Dirichlet(),
            pf.Initial(),
            pf.Interface(flux=lambda u, x, t, normal: pf.normal_derivative(u, normal)(x, t)),
        ],
        exact=lambda x, t: jnp.exp(-t) * jnp.sin(x[0]),
    )
    with pytest.raises(SolveError, match=r"one region; got the regions \['left', 'right'\]"):
        pf.march(problem)
    u = pf.solve(problem, tol=1e-6)
    assert not isinstance(u, pf.Evolution)
    assert u.converged
    assert u.errors().relative_l2 < 1e-5


def test_radau_collocation_has_order_two_p_minus_one():
    """For u' = -u the change over a slab of length h is wrong by O(h^2p)."""
    scheme = radau(3)
    errors = []
    for length in (0.1, 0.05):
        change = np.linalg.solve(scheme.slope / length + np.eye(3), -np.ones(3))
        errors.append(abs(1 + change[-1] - math.exp(-length)))
    assert errors[0] / errors[1] == pytest.approx(2**6, rel=0.1)
    assert scheme.nodes[-1] == 1.0


def test_halving_intervals_and_joining_them_again_changes_nothing(seed):
    function = np.random.default_rng(seed).standard_normal((1, 2, 9)) * 10.0 ** -np.arange(9)
    boxes, (finer,) = halved(((0, 0),), np.array([True]), [function])
    assert boxes == ((1, 0), (1, 1))
    again, (coarser,) = joined(boxes, np.array([0.5, 0.5]), [finer], [np.ones(2)], 1e-3)
    assert again == ((0, 0),)
    np.testing.assert_allclose(coarser, function, atol=1e-14)


def test_slabs_have_no_value_after_the_last_one():
    slabs = Slabs([0.0, 1.0, 3.0], [pf.Chebyshev(pf.Interval(0, 1), degree=2)], [0, 0], 2)
    coefficients = np.ones((slabs.size, 1))
    found = slabs.expand(np.array([[0.5, 2.9], [0.5, 3.0], [0.5, 3.1]]), [(0, 0)], coefficients)
    assert np.isnan(found[0, :, 0]).tolist() == [False, False, True]


def test_an_evolution_is_animated_and_written_as_a_series(tmp_path):
    import meshio
    from PIL import Image

    u = pf.march(burgers(0.1, T=0.2), tol=1e-4)
    u.animate(tmp_path / "u.gif", frames=3)
    with Image.open(tmp_path / "u.gif") as picture:
        assert picture.n_frames == 3
    u.to_vtk(tmp_path / "u.pvd", times=[0.0, 0.1], resolution=20)
    text = (tmp_path / "u.pvd").read_text()
    assert 'timestep="0.1" file="u-0001.vtu"' in text
    written = meshio.read(tmp_path / "u-0001.vtu")
    x = written.points[:, :1]
    np.testing.assert_allclose(written.point_data["u"], u(np.column_stack([x, np.full(len(x), 0.1)])), atol=1e-12)
    with pytest.raises(pf.errors.UnknownNameError, match="suffix of the animation"):
        u.animate(tmp_path / "u.mp4")
    assert "slabs of length" in repr(u)
    pf.save(tmp_path / "u.pdofm", u)
    pf.load(tmp_path / "u.pdofm").animate(tmp_path / "again.gif", frames=3)
    assert (tmp_path / "again.gif").read_bytes() == (tmp_path / "u.gif").read_bytes()


@pytest.mark.parametrize("width", [0.02, 0.004, 0.001])
@pytest.mark.parametrize("is_source", [True, False])
def test_a_pulse_between_the_stages_of_long_slabs_is_met(width, is_source):
    strength = lambda t: jnp.exp(-(((t - 0.7) / width) ** 2)) / width
    total = lambda t: jnp.sqrt(jnp.pi) / 2 * (jax.scipy.special.erf((t - 0.7) / width) + 1)
    mode = lambda x: jnp.sin(jnp.pi * x[0])
    if is_source:  # which follows from the exact solution
        diffusion, source, factor = lambda t: 0.1, None, lambda t: 1 + total(t)
    else:
        diffusion, source = lambda t: 0.01 + 0.1 * strength(t), 0.0
        factor = lambda t: jnp.exp(-(jnp.pi**2) * (0.01 * t + 0.1 * total(t)))
    problem = pf.Problem(
        pf.SpaceTime(pf.Interval(0, 1), 1.0),
        lambda u, x, t: pf.dt(u)(x, t) - diffusion(t) * d(u, 2)(x, t),
        source,
        [pf.Dirichlet(0.0), pf.Initial(lambda x, t: mode(x))],
        exact=lambda x, t: factor(t) * mode(x),
    )
    u = pf.march(problem, tol=1e-5, progress=False)
    assert u.converged
    assert u.errors().relative_l2 < 1e-5


def test_smooth_data_are_no_pulses():
    space_time = pf.SpaceTime(pf.Interval(0, 1), 2.0)
    for source in (lambda t: jnp.sin(40 * t), lambda t: jnp.exp(-30 * t), lambda t: jnp.tanh(10 * (t - 1))):
        heat = lambda u, x, t: pf.dt(u)(x, t) - d(u, 2)(x, t)
        data = lambda x, t, source=source: source(t) * x[0]
        problem = pf.Problem(space_time, heat, data, [pf.Dirichlet(0.0), pf.Initial(0.0)])
        assert len(pulses_of(Statement(problem))) == 0
