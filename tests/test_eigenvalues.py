"""Eigenvalues against exact and published ones; what has none is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import jn_zeros, jv, yv

import pdofm as pf
from pdofm.calculus.terms import Term, in_layout
from pdofm.errors import NonlinearError, ProblemError, SolveError
from pdofm.numerics.cod import LeftAndRight
from pdofm.problem.conditions import Value
from pdofm.questions.krylov import nearest, second_shift
from pdofm.questions.pencil import pencil_of


@pytest.fixture(autouse=True)
def complex_and_real_numbers_mix():
    """Users multiply real points by complex numbers, as the defaults of JAX allow."""
    with jax.numpy_dtype_promotion("standard"):
        yield


SQUARE = pf.Box([0, 0], [1, 1])


def drum(domain: pf.Domain, *conditions, **options) -> pf.Problem:
    return pf.Problem(
        domain,
        operator=lambda u, x: -pf.laplacian(u)(x),
        conditions=conditions or [pf.Dirichlet(0.0)],
        **options,
    )


def relative(found, exact) -> float:
    return float(np.max(np.abs(np.asarray(found) - exact) / np.abs(exact)))


@pytest.fixture(scope="module")
def square() -> pf.Modes:
    return pf.eigs(drum(SQUARE), 4)


def test_the_square_has_its_eigenvalues_with_their_multiplicities(square):
    e = square
    exact = np.pi**2 * np.array([2, 5, 5, 8])
    assert e.converged
    assert e.values.dtype == np.float64
    assert relative(e.values, exact) < 1e-12
    assert np.all(np.abs(e.values - exact) / exact <= np.maximum(10 * e.error_estimates, 1e-13))


def test_eigenfunctions_have_norm_one_and_satisfy_the_equation(square):
    e, first = square, square[0]
    assert float(first.integral(of=lambda u, x: u(x) ** 2)) == pytest.approx(1.0, abs=1e-10)
    points = SQUARE.sample(50)
    sine = 2 * np.prod(np.sin(np.pi * points), axis=1)
    np.testing.assert_allclose(first(points), sine, atol=1e-8)
    assert first.value == e.values[0]
    assert len(e) == len(list(e)) == 4
    assert "19.739208802" in repr(e)


def test_neumann_conditions_have_the_eigenvalue_zero():
    e = pf.eigs(drum(SQUARE, pf.Neumann(0.0)), 3)
    np.testing.assert_allclose(e.values, np.pi**2 * np.array([0, 1, 1]), atol=1e-10)


def test_the_disk_has_the_zeros_of_bessel_functions():
    e = pf.eigs(drum(pf.Disk()), 3)
    exact = np.array([jn_zeros(0, 1)[0], jn_zeros(1, 1)[0], jn_zeros(1, 1)[0]]) ** 2
    assert relative(e.values, exact) < 1e-12


def test_no_eigenvalue_is_spurious_and_none_is_missed():
    values = pf.eigs(drum(pf.Interval(0, np.pi)), 12).values
    np.testing.assert_allclose(values, np.arange(1, 13) ** 2, rtol=1e-10)


def test_eigenvalues_near_a_number_are_found():
    line = pf.Interval(0, np.pi)
    e = pf.eigs(drum(line), 2, near=60.0)
    np.testing.assert_allclose(np.sort(e.values), [49, 64], rtol=1e-11)


def test_the_oscillator_has_odd_eigenvalues_and_another_mass_divides_them():
    line = pf.Interval(-9, 9)
    problem = pf.Problem(
        line, operator=lambda u, x: -pf.laplacian(u)(x) + x[0] ** 2 * u(x), conditions=[pf.Dirichlet(0.0)]
    )
    assert relative(pf.eigs(problem, 4).values, [1, 3, 5, 7]) < 1e-12
    assert relative(pf.eigs(problem, 2, mass=lambda u, x: 2.0 * u(x)).values, [0.5, 1.5]) < 1e-12


def test_real_problems_stay_real_where_a_coarse_space_has_complex_pairs():
    e = pf.eigs(drum(SQUARE), 12, tol=1e-8)
    sums = sorted(m**2 + n**2 for m in range(1, 8) for n in range(1, 8))
    assert relative(e.values, np.pi**2 * np.array(sums[:12])) < 1e-8
    assert not e[0].problem.layout.is_complex


@pytest.mark.parametrize(("rotation", "tol"), [(1e-5, 1e-10), (1e-5, 1e-3), (1e-8, 1e-10)])
def test_small_imaginary_parts_are_found_or_count_as_errors(rotation, tol):
    """-Δu + c ∂u/∂θ on the disk has the eigenvalues j² + i c m with zeros j of J_m."""

    def turning(u, x):
        return -pf.laplacian(u)(x) + rotation * (x[0] * pf.partial(u, 1)(x) - x[1] * pf.partial(u, 0)(x))

    e = pf.eigs(pf.Problem(pf.Disk(), operator=turning, conditions=[pf.Dirichlet(0.0)]), 3, tol=tol)
    first, second = jn_zeros(0, 1)[0] ** 2, jn_zeros(1, 1)[0] ** 2
    exact = np.array([first, second - 1j * rotation, second + 1j * rotation])
    errors = np.abs(np.array(sorted(e.values, key=lambda value: (round(np.real(value), 3), np.imag(value)))) - exact)
    assert e.converged
    assert np.max(errors / np.abs(exact)) <= max(3 * np.max(e.error_estimates), 1e-13)


def test_equal_spaces_do_not_confirm_each_other():
    """Two tolerances of the source problem may have the same boxes."""
    e = pf.eigs(drum(pf.Interval(0, np.pi)), 3, tol=1e-6, max_features=10)
    sizes = [each.features for each in e.attempts if each.space == "polynomials in boxes"]
    assert e.converged
    assert len(set(sizes)) == len(sizes) > 1
    assert np.all(np.abs(e.values / np.array([1, 4, 9]) - 1) <= e.error_estimates)


def test_values_that_are_zero_functions_are_homogeneous():
    line = pf.Interval(0, np.pi)
    assert relative(pf.eigs(drum(line, pf.Dirichlet(lambda x: 0.0 * x[0])), 2).values, [1, 4]) < 1e-11
    rounded = drum(line, source=lambda x: x[0] * jnp.sin(jnp.pi))  # 1e-16, not 0
    assert relative(pf.eigs(rounded, 2).values, [1, 4]) < 1e-11


def test_an_elastic_square_between_smooth_walls_has_waves_of_pressure_and_shear():
    """With λ = μ = 1: 3 π² (m² + n²) for u = ∇ cos(mπx) cos(nπy), π² (m² + n²) for u = rot sin(mπx) sin(nπy)."""

    def stress(u, x):
        strain = (pf.grad(u)(x) + pf.grad(u)(x).T) / 2
        return 2 * strain + jnp.trace(strain) * jnp.eye(2)

    def slides(u, x, normal):
        return u.u(x) @ normal, normal[::-1] @ stress(u.u, x) @ normal

    plate = pf.Problem(
        SQUARE,
        operator=lambda u, x: -pf.div(lambda y: stress(u.u, y))(x),
        unknowns={"u": 2},
        conditions=[pf.Condition(slides)],
    )
    e = pf.eigs(plate, 6, mass=lambda u, x: u.u(x))
    assert relative(np.sort(e.values), np.pi**2 * np.array([2, 3, 3, 5, 5, 6])) < 1e-12


def stokes(domain: pf.Domain) -> pf.Problem:
    return pf.Problem(
        domain,
        operator=lambda u, x: (pf.grad(u.p)(x) - pf.laplacian(u.v)(x), pf.div(u.v)(x)),
        unknowns={"v": 2, "p": 1},
        conditions=[pf.Dirichlet(0.0, unknown="v"), pf.Mean(0.0, unknown="p")],
    )


def test_a_mass_may_leave_out_the_pressure_of_a_flow():
    """Stokes flow in the unit disk has the squares of the zeros of J_1, J_2, J_2, … as eigenvalues."""
    e = pf.eigs(stokes(pf.Disk()), 3, mass=lambda u, x: (u.v(x), 0.0 * u.p(x)), tol=1e-8)
    exact = np.array([jn_zeros(1, 1)[0], *[jn_zeros(2, 1)[0]] * 2]) ** 2
    assert relative(e.values, exact) < 1e-8


def test_boxes_are_chosen_by_what_the_mass_lets_through():
    """A source in the conservation of mass would contradict the walls. λ = 13.0861728 (Leriche and Labrosse, 2004)."""
    square = stokes(pf.Box([-1, -1], [1, 1]))
    e = pf.eigs(square, 1, mass=lambda u, x: (u.v(x), 0.0 * u.p(x)), tol=1e-4, max_features=30)
    assert e[0].space == "polynomials in boxes"
    assert relative(e.values, [13.0861728]) < 1e-5


def test_an_operator_that_is_not_symmetric_may_have_complex_eigenvalues():
    """u'' = λ u with -u'' - 6 u' on (0, π): λ = n² + 9. A rotation of two unknowns adds ± i."""
    line = pf.Interval(0, np.pi)
    advected = pf.Problem(
        line, operator=lambda u, x: -pf.laplacian(u)(x) - 6.0 * pf.partial(u, 0)(x), conditions=[pf.Dirichlet(0.0)]
    )
    assert relative(pf.eigs(advected, 3).values, [10, 13, 18]) < 1e-9
    turning = pf.Problem(
        line,
        unknowns={"a": 1, "b": 1},
        operator=lambda u, x: (-pf.laplacian(u.a)(x) + u.b(x), -pf.laplacian(u.b)(x) - u.a(x)),
        conditions=[pf.Dirichlet(0.0)],
    )
    values = pf.eigs(turning, 2).values
    np.testing.assert_allclose(sorted(values, key=np.imag), [1 - 1j, 1 + 1j], atol=1e-9)


def test_orr_sommerfeld_has_orszags_unstable_mode():
    """Orszag (1971), plane Poiseuille flow at Re = 10000, α = 1: c = 0.23752649 + 0.00373967 i."""

    def laplacian(u):
        return lambda x: pf.partial(u, 0, 0)(x) - u(x)

    def operator(u, x):
        fourth = laplacian(laplacian(u))(x)
        return (1 - x[0] ** 2) * laplacian(u)(x) + 2 * u(x) - fourth / (1j * 10_000)

    channel = pf.Interval(-1, 1)
    problem = pf.Problem(
        channel, operator=operator, conditions=[pf.Dirichlet(0.0), pf.Neumann(0.0)], dtype=complex, name="channel"
    )
    e = pf.eigs(problem, 1, near=0.24 + 0.004j, mass=lambda u, x: laplacian(u)(x))
    assert abs(e.values[0] - (0.23752649 + 0.00373967j)) < 6e-9
    assert np.iscomplexobj(e[0](np.array([0.1])))


@pytest.mark.parametrize("dtype", [float, complex])
def test_polynomials_in_boxes_have_the_eigenvalues_of_a_square(dtype):
    problem = drum(SQUARE, dtype=dtype)
    mass = in_layout(Term("mass", Value(None), 0.0, None, 1.0), problem.layout)
    pencil = pencil_of(problem, mass, pf.BoxPolynomials.grid(SQUARE, 2, 12), "sobol", 0)
    found = nearest(pencil.factor(-1.0), -1.0, 3, 0)
    for values in (found.values, second_shift(pencil, found).values):
        assert relative(values, np.pi**2 * np.array([2, 5, 5])) < 1e-9


def test_corner_functions_resolve_the_eigenfunction_at_a_re_entrant_corner():
    """The first eigenvalue of the L-shaped membrane is 9.63972384402194 (Betcke and Trefethen, 2005)."""
    lshape = pf.Box([-1, -1], [1, 1]) - SQUARE
    problem = drum(lshape)
    features = pf.Concatenate(pf.Chebyshev(lshape, 400), pf.CornerFunctions(lshape, highest=6.0, degree=6))
    pencil = pencil_of(problem, Term("mass", Value(None), 0.0, None, 1.0), features, "clustered", 0)
    found = second_shift(pencil, nearest(pencil.factor(-1.0), -1.0, 1, 0))
    assert relative(found.values, [9.63972384402194]) < 1e-10


def test_radial_corner_functions_resolve_all_corners_of_a_hexagon():
    """The corners are convex, with the exponent 3/2; λ = 7.15533913392 (Jones, 2017)."""
    angles = np.arange(6) * np.pi / 3
    hexagon = pf.Polygon(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    e = pf.eigs(drum(hexagon), 1)
    assert relative(e.values, [7.15533913392]) < 1e-11
    assert e[0].space == "polynomials and radial functions"


def test_functions_around_a_hole_resolve_an_annulus():
    """The roots of eigenvalues are zeros of J_m(k/2) Y_m(k) - J_m(k) Y_m(k/2)."""

    def crossed(k, m):
        return jv(m, k / 2) * yv(m, k) - jv(m, k) * yv(m, k / 2)

    exact = np.array([brentq(crossed, 6.0, 7.0, args=(m,), xtol=1e-15, rtol=1e-15) for m in (0, 1, 1)]) ** 2
    e = pf.eigs(drum(pf.Annulus([0, 0], 0.5, 1.0)), 3)
    assert relative(e.values, exact) < 1e-11
    assert e[0].space == "polynomials and hole functions"


def test_eigenvalues_in_the_middle_of_the_spectrum_are_found():
    """Small spaces cannot resolve any of these eigenfunctions, which is no reason to give up."""
    line = pf.Interval(0, np.pi)
    e = pf.eigs(drum(line), 3, near=150.2**2)
    np.testing.assert_allclose(np.sort(e.values), np.array([149, 150, 151]) ** 2, rtol=1e-10)


def test_systems_are_solved_from_both_sides(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((12, 6))
    A[:, 5] = A[:, 0] + A[:, 1]  # dependent
    factors = LeftAndRight(A, rcond=1e-12)
    inverse = np.linalg.pinv(A / np.linalg.norm(A, axis=0)) / np.linalg.norm(A, axis=0)[:, None]
    assert factors.rank == 5
    np.testing.assert_allclose(factors.solve(np.eye(12)), inverse, atol=1e-12)
    np.testing.assert_allclose(factors.solve_left(np.eye(6)), inverse.T, atol=1e-12)


@pytest.mark.parametrize(
    ("problem", "options", "error", "message"),
    [
        (drum(SQUARE, source=1.0), {}, ProblemError, "the source of 'problem' is not zero"),
        (
            drum(SQUARE, source=lambda x: jnp.exp(-jnp.sum((x - 0.3) ** 2) / 0.02**2)),
            {},
            ProblemError,
            "the source of 'problem' is not zero",
        ),
        (drum(SQUARE, pf.Dirichlet(1.0)), {}, ProblemError, "value of condition 'dirichlet'"),
        (drum(SQUARE, pf.Dirichlet(lambda x: x[0])), {}, ProblemError, "value of condition 'dirichlet'"),
        (
            drum(SQUARE, pf.Condition(lambda u, x: u(x) - 1.0)),
            {},
            ProblemError,
            "residual of condition 'condition' at u",
        ),
        (
            pf.Problem(SQUARE, operator=lambda u, x: -pf.laplacian(u)(x) - 1.0, conditions=[pf.Dirichlet(0.0)]),
            {},
            ProblemError,
            "operator at u = 0 of 'problem' is not zero",
        ),
        (
            pf.Problem(
                pf.SpaceTime(pf.Interval(0, 1), 1),
                operator=lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t),
                conditions=[pf.Dirichlet(0.0), pf.Initial(0.0)],
            ),
            {},
            ProblemError,
            "has initial values",
        ),
        (drum(SQUARE), {"k": 0}, SolveError, "at least 1"),
        (drum(SQUARE), {"tol": -1.0}, SolveError, "tol is a relative error"),
        (drum(SQUARE), {"near": np.inf}, SolveError, "near must be a finite number"),
        (drum(SQUARE), {"mass": lambda u, x: (u(x), u(x))}, ProblemError, "The mass has 2 values"),
        (drum(SQUARE), {"mass": lambda u, x: u(x) ** 2}, NonlinearError, "mass"),
        (
            pf.Problem(SQUARE, operator=lambda u, x: u(x) ** 2, conditions=[pf.Dirichlet(0.0)]),
            {},
            NonlinearError,
            "needs a linear problem",
        ),
    ],
)
def test_what_has_no_eigenvalues_is_refused(problem, options, error, message):
    with pytest.raises(error, match=message):
        pf.eigs(problem, **options)


def test_complex_unknowns_agree_with_two_real_ones():
    k = 5.0

    def exact(x):
        return jnp.exp(1j * k * (0.6 * x[0] + 0.8 * x[1]))

    def flux(x, normal):
        return (1j * k * (0.6 * normal[0] + 0.8 * normal[1]) - 1j * k) * exact(x)

    one = pf.Problem(
        SQUARE,
        operator=lambda u, x: pf.laplacian(u)(x) + (k**2 + 2j) * u(x),
        conditions=[pf.Robin(-1j * k, 1.0)],
        exact=exact,
        dtype=complex,
    )
    two = pf.Problem(
        SQUARE,
        unknowns={"a": 1, "b": 1},
        operator=lambda u, x: (
            pf.laplacian(u.a)(x) + k**2 * u.a(x) - 2 * u.b(x),
            pf.laplacian(u.b)(x) + k**2 * u.b(x) + 2 * u.a(x),
        ),
        source=lambda x: jnp.stack([(2j * exact(x)).real, (2j * exact(x)).imag]),
        conditions=[
            pf.Condition(
                lambda u, x, normal: (
                    pf.normal_derivative(u.a, normal)(x) + k * u.b(x) - flux(x, normal).real,
                    pf.normal_derivative(u.b, normal)(x) - k * u.a(x) - flux(x, normal).imag,
                )
            )
        ],
    )
    features, points = pf.Chebyshev(SQUARE, 300), SQUARE.sample(100)
    u, parts = pf.solve(one, features), pf.solve(two, features)(points)
    assert u.errors().relative_l2 < 1e-11
    np.testing.assert_allclose(u(points), parts[:, 0] + 1j * parts[:, 1], rtol=0, atol=1e-13)
    wave = (np.exp(3j) - 1) / 3j * (np.exp(4j) - 1) / 4j
    assert abs(u.integral() - wave) < 1e-11
    np.testing.assert_allclose(u.gradient(points)[:, 0], 3j * u(points), atol=1e-8)


def test_complex_solutions_are_saved_written_and_replaced(tmp_path):
    problem = pf.Problem(
        pf.Interval(0, 1),
        operator=lambda u, x: pf.laplacian(u)(x) + 4.0 * u(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.exp(2j * x[0]),
        dtype=complex,
    )
    u, x = pf.solve(problem, pf.Chebyshev(problem.domain, 20)), np.linspace(0.1, 0.9, 5)[:, None]
    pf.save(tmp_path / "u.safetensors", u)
    np.testing.assert_array_equal(pf.load(tmp_path / "u.safetensors")(x), u(x))
    u.to_vtk(tmp_path / "u.vtu")
    u.plot(tmp_path / "u.png")
    twice = problem.replace(operator=lambda u, x: 2 * pf.laplacian(u)(x) + 8.0 * u(x), source=0.0)
    assert twice.exact is not None
    other = problem.replace(conditions=[pf.Dirichlet(lambda x: 2 * jnp.exp(2j * x[0]))])
    assert other.exact is None
    np.testing.assert_allclose(pf.solve(other, u.features)(x), 2 * u(x), atol=1e-11)


def test_complex_values_at_points_are_met():
    line, points = pf.Interval(0, 1), np.array([[0.0], [1.0]])
    problem = pf.Problem(
        line,
        operator=lambda u, x: pf.laplacian(u)(x),
        source=0.0,
        conditions=[pf.Dirichlet(np.array([1j, 2.0 + 1j]), on=points)],
        dtype=complex,
    )
    assert pf.solve(problem, pf.Chebyshev(line, 8))([0.5]) == pytest.approx(1.0 + 1j, abs=1e-12)


def test_several_regions_are_refused():
    regions = pf.Regions(left=pf.Interval(0, 1), right=pf.Interval(1, 2))
    conditions = [pf.Dirichlet(0.0), pf.Interface(flux=lambda u, x, normal: pf.normal_derivative(u, normal)(x))]
    with pytest.raises(ProblemError, match="cannot solve problems with several regions"):
        pf.eigs(drum(regions, *conditions))


def test_complex_data_in_a_real_problem_are_refused():
    with pytest.raises(ProblemError, match="dtype=complex"):
        drum(SQUARE, pf.Dirichlet(1j))
    with pytest.raises(ProblemError, match="dtype=complex"):
        drum(SQUARE, source=lambda x: 1j * x[0])
    with pytest.raises(ProblemError, match="dtype=complex"):
        drum(SQUARE, pf.Robin(1j, 1.0, 0.0))
    with pytest.raises(ProblemError, match="expected float, or complex"):
        drum(SQUARE, dtype=int)
