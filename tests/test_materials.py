"""Several regions: their interfaces, what holds between them, and solutions to the tolerance."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.adaptive.sectors import exponent, material_points
from pdofm.domain.tree import Forest
from pdofm.errors import DomainError, FeaturesError, ProblemError, UnknownNameError
from pdofm.features.regions import RegionPolynomials

PLATE, DISK = pf.Box([-1, -1], [1, 1]), pf.Disk([0, 0], 0.5)
TOL, ALLOWED = 1e-8, 3e-8


def conduction(k):
    return lambda u, x: -k * pf.laplacian(u)(x)


def flux(k):
    return lambda u, x, normal: k * pf.normal_derivative(u, normal)(x)


def by_region(make, numbers):
    return {name: make(k) for name, k in numbers.items()}


def materials(regions, numbers, *conditions, exact=None, source=None, **interface):
    """Conduction with a number for each region."""
    between = pf.Interface(flux=by_region(flux, numbers), **interface)
    return pf.Problem(
        regions, by_region(conduction, numbers), source, [*(conditions or [pf.Dirichlet()]), between], exact=exact
    )


def inclusion(k_plate, k_inclusion, radius=0.5):
    """A round inclusion in a uniform field, which is known everywhere."""
    contrast = (k_plate - k_inclusion) / (k_plate + k_inclusion)
    disk = pf.Disk([0, 0], radius)
    exact = {
        "plate": lambda x: x[0] * (1 + contrast * radius**2 / (x @ x)),
        "inclusion": lambda x: x[0] * (1 + contrast),
    }
    numbers = {"plate": k_plate, "inclusion": k_inclusion}
    return materials(pf.Regions(plate=PLATE - disk, inclusion=disk), numbers, exact=exact, source=0.0)


# ---- regions


def test_a_region_inside_another_shares_its_whole_boundary():
    regions = pf.Regions(plate=PLATE - DISK, inclusion=DISK)
    assert list(regions.interfaces) == [("plate", "inclusion")]
    assert regions.part("plate|inclusion").measure == pytest.approx(math.pi, rel=1e-14)
    points, normals = regions.interface("inclusion", "plate").sample(50)
    np.testing.assert_allclose(points, 0.5 * normals, atol=1e-15)
    assert regions.boundary.names == ("x0=lower", "x0=upper", "x1=lower", "x1=upper")
    assert regions.measure == pytest.approx(4.0, rel=1e-12)


def test_regions_side_by_side_share_a_part_of_a_side():
    regions = pf.Regions(a=pf.Box([0, 0], [1, 1]), b=pf.Box([1, 0.3], [2, 0.8]))
    assert regions.part("a|b").measure == pytest.approx(0.5, abs=1e-11)
    assert regions.boundary.measure == pytest.approx(4 + 3 - 2 * 0.5, abs=1e-11)


def test_the_outer_boundary_of_a_notch_that_is_filled_belongs_to_what_fills_it():
    corner = pf.Box([0, 0], [1, 1])
    regions = pf.Regions(rest=PLATE - corner, corner=corner)
    found = {inner: part.measure for inner, outer, part in regions.sides(regions.boundary) if outer is None}
    assert found == {"rest": pytest.approx(6.0, abs=1e-11), "corner": pytest.approx(2.0, abs=1e-11)}
    assert regions.part("rest|corner").measure == pytest.approx(2.0, abs=1e-11)


def test_regions_that_do_not_touch_have_no_interface():
    regions = pf.Regions(a=pf.Disk([0, 0], 1), b=pf.Disk([3, 0], 1))
    assert not regions.interfaces
    with pytest.raises(DomainError, match="'a' and 'b' do not touch"):
        regions.interface("a", "b")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pf.Regions(plate=PLATE), "expected at least two"),
        (lambda: pf.Regions(plate=PLATE, inclusion=DISK), r"overlap.*plate=plate - inclusion"),
        (lambda: pf.Regions(a=PLATE, b=pf.Interval(2, 3)), "dimensions"),
        (lambda: pf.Regions(a=PLATE, b=3.0), "expected a domain"),
        (lambda: pf.Regions(a=pf.SpaceTime(PLATE, 1), b=DISK), r"SpaceTime\(Regions"),
    ],
)
def test_regions_that_make_no_sense_are_refused(make, message):
    with pytest.raises(DomainError, match=message):
        make()


def test_an_unknown_region_is_named_with_those_that_exist():
    regions = pf.Regions(plate=PLATE - DISK, inclusion=DISK)
    with pytest.raises(UnknownNameError, match=r"'disc'. Known: inclusion, plate"):
        regions["disc"]


def test_trees_of_a_forest_have_no_faces_with_each_other():
    forest = Forest([([0, 0], [1, 1]), ([0, 0], [1, 1])])
    forest.split(0, 0)
    faces = forest.faces()
    assert len(faces.axis) == 1
    assert forest.branch(1).leaves.tolist() == [1]


# ---- statements


def test_regions_that_touch_need_an_interface():
    regions = pf.Regions(plate=PLATE - DISK, inclusion=DISK)
    with pytest.raises(ProblemError, match=r"'plate' and 'inclusion' touch.*Interface\(flux="):
        pf.Problem(regions, conduction(1.0), 0.0, [pf.Dirichlet(0.0)])


def test_a_region_without_an_operator_is_named():
    regions = pf.Regions(plate=PLATE - DISK, inclusion=DISK)
    with pytest.raises(ProblemError, match=r"operator is given for \['plate'\].*'inclusion'"):
        pf.Problem(regions, {"plate": conduction(1.0)}, 0.0, [pf.Dirichlet(0.0), pf.Interface(flux=flux(1.0))])


def test_an_interface_needs_regions_and_a_flux():
    with pytest.raises(ProblemError, match="several regions"):
        pf.Problem(PLATE, conduction(1.0), 0.0, [pf.Dirichlet(0.0), pf.Interface(flux=flux(1.0))])
    regions = pf.Regions(plate=PLATE - DISK, inclusion=DISK)
    with pytest.raises(ProblemError, match="has no flux"):
        pf.Problem(regions, conduction(1.0), 0.0, [pf.Dirichlet(0.0), pf.Interface()])


def test_features_of_one_region_are_refused():
    with pytest.raises(FeaturesError, match=r"several regions.*solve\(problem, tol="):
        pf.solve(inclusion(1.0, 2.0), 100)


# ---- exponents where regions meet


@pytest.mark.parametrize(
    ("sectors", "ends", "expected"),
    [
        ([(1.5 * math.pi, 1.0)], (True, True), 2 / 3),
        ([(math.pi, 3.0)], (True, False), 1 / 2),
        ([(math.pi / 2, 1.0), (math.pi / 2, 7.0)], (True, True), 1.0),
        # Kellogg's checkerboard, made for this exponent.
        ([(math.pi / 2, 161.4476387975881), (math.pi / 2, 1.0)] * 2, None, 0.1),
        # Two sectors: tan(απ/4) tan(3απ/4) = -1 / k or -k, solved here for the symmetric solution.
        ([(math.pi / 2, 50.0), (1.5 * math.pi, 1.0)], None, None),
    ],
)
def test_exponents_of_sectors_are_those_of_their_equations(sectors, ends, expected):
    found = exponent(sectors, ends)
    if expected is None:
        k = sectors[0][1]
        first, second = math.tan(found * math.pi / 4), math.tan(found * 3 * math.pi / 4)
        assert min(abs(k * first + second), abs(first + k * second)) < 1e-8
    else:
        assert found == pytest.approx(expected, abs=1e-10)


def test_smooth_interfaces_are_not_singular_and_corners_of_inclusions_are():
    assert all(alpha > 1 for _, alpha in material_points(inclusion(1.0, 400.0)))
    triangle = pf.Polygon([[-0.5, -0.4], [0.6, -0.3], [0.1, 0.5]])
    regions = pf.Regions(plate=PLATE - triangle, triangle=triangle)
    found = material_points(materials(regions, {"plate": 1.0, "triangle": 5.0}, pf.Dirichlet(0.0), source=1.0))
    assert sum(alpha < 1 for _, alpha in found) == 3


# ---- solutions


@pytest.mark.parametrize("k", [10.0, 1e6])
def test_a_straight_jump(k):
    regions = pf.Regions(left=pf.Box([0, 0], [0.4, 1]), right=pf.Box([0.4, 0], [1, 1]))
    exact = {
        "left": lambda x: jnp.sin(3 * x[1]) * (x[0] - 0.4) + jnp.cos(2 * x[1]),
        "right": lambda x: jnp.sin(3 * x[1]) * jnp.sin(x[0] - 0.4) / k + jnp.cos(2 * x[1]),
    }
    u = pf.solve(materials(regions, {"left": 1.0, "right": k}, exact=exact), tol=TOL)
    assert u.converged
    assert u.errors().relative_l2 < ALLOWED
    assert set(u.errors().regions) == {"left", "right"}


@pytest.mark.parametrize(("outside", "inside"), [(1.0, 400.0), (400.0, 1.0), (1.0, 1e6)])
def test_a_round_inclusion(outside, inside):
    u = pf.solve(inclusion(outside, inside), tol=TOL)
    assert u.converged
    assert u.errors().relative_l2 < ALLOWED
    points = np.array([[0.5, 0.0], [0.3, 0.4]])
    normals = points / 0.5
    sides = {"plate": outside, "inclusion": inside}
    first, second = (k * np.sum(u.side(name).gradient(points) * normals, axis=1) for name, k in sides.items())
    np.testing.assert_allclose(first, second, rtol=1e-5)
    np.testing.assert_allclose(u.side("plate")(points), u.side("inclusion")(points), atol=1e-7)


def test_values_and_fluxes_that_jump_by_given_functions():
    disk = pf.Disk([0.2, 0], 0.5)
    exact = {"plate": lambda x: jnp.sin(x[0]) * jnp.exp(x[1]), "inclusion": lambda x: jnp.cos(2 * x[0] * x[1])}
    regions = pf.Regions(plate=PLATE - disk, inclusion=disk)
    problem = materials(regions, {"plate": 1.0, "inclusion": 3.0}, exact=exact, jump=None, flux_jump=None)
    u = pf.solve(problem, tol=TOL)
    assert u.converged
    assert u.errors().relative_l2 < ALLOWED


def test_contact_resistance_is_a_condition_that_sees_both_sides():
    k, h = {"left": 2.0, "right": 7.0}, 5.0
    regions = pf.Regions(left=pf.Box([0, 0], [1, 1]), right=pf.Box([1, 0], [2, 1]))

    def contact(u, x, normal):
        out, into = (
            k[name] * pf.normal_derivative(side, normal)(x) for name, side in (("left", u.left), ("right", u.right))
        )
        return out - into, out - h * (u.right(x) - u.left(x))

    conditions = [
        pf.Dirichlet(0.0, on=regions.part("x0=lower")),
        pf.Dirichlet(1.0, on=regions.part("x0=upper")),
        pf.Neumann(0.0, on=regions.part("x1=lower", "x1=upper")),
        pf.Condition(contact, on=regions.part("left|right")),
    ]
    problem = pf.Problem(regions, by_region(conduction, k), 0.0, conditions)
    u = pf.solve(problem, tol=TOL)
    through = 1 / (1 / h + 1 / k["left"] + 1 / k["right"])
    assert u.converged
    assert u([0.5, 0.3]) == pytest.approx(through / k["left"] * 0.5, rel=1e-10)
    assert u([1.5, 0.3]) == pytest.approx(1 - through / k["right"] * 0.5, rel=1e-10)


def test_a_nonlinear_conductivity_in_two_materials():
    # With Kirchhoff's w = u + u³/3, k (1 + u²) grad u = k grad w: w solves the linear problem.
    def inverse(w):
        root = jnp.cbrt(1.5 * w + jnp.sqrt(2.25 * w**2 + 1))
        return root - 1 / root

    linear, k = inclusion(1.0, 20.0), {"plate": 1.0, "inclusion": 20.0}
    exact = {name: lambda x, w=w: inverse(w(x)) for name, w in linear.exact.items()}

    def operator(k):
        return lambda u, x: -k * pf.div(lambda y: (1 + u(y) ** 2) * pf.grad(u)(y))(x)

    def through(k):
        return lambda u, x, normal: k * (1 + u(x) ** 2) * pf.normal_derivative(u, normal)(x)

    conditions = [pf.Dirichlet(), pf.Interface(flux=by_region(through, k))]
    u = pf.solve(pf.Problem(linear.domain, by_region(operator, k), 0.0, conditions, exact=exact), tol=TOL)
    assert u.converged
    assert u.errors().relative_l2 < ALLOWED


def test_a_wave_is_reflected_and_transmitted_where_the_medium_changes():
    speeds = {"left": 1.0, "right": 2.0}

    def pulse(z):
        return jnp.exp(-40 * (z - 0.5) ** 2)

    exact = {
        "left": lambda x, t: pulse(t - (x[0] - 1)) - pulse(t + (x[0] - 1)) / 3,
        "right": lambda x, t: 2 / 3 * pulse(t - (x[0] - 1) / 2),
    }

    def operator(c):
        return lambda u, x, t: pf.dt(pf.dt(u))(x, t) - c**2 * pf.laplacian(u)(x, t)

    def stress(c):
        return lambda u, x, t, normal: c**2 * pf.normal_derivative(u, normal)(x, t)

    space = pf.Regions(left=pf.Interval(0, 1), right=pf.Interval(1, 2.5))
    conditions = [pf.Dirichlet(), pf.Initial(), pf.Interface(flux=by_region(stress, speeds))]
    problem = pf.Problem(pf.SpaceTime(space, 1.0), by_region(operator, speeds), 0.0, conditions, exact=exact)
    u = pf.solve(problem, tol=1e-6)
    assert u.converged
    assert u.errors().relative_l2 < 3e-6


def test_an_elastic_inclusion():
    lame = {"matrix": (0.5769, 0.3846), "fibre": (2.7778, 4.1667)}
    (l1, m1), (l2, m2), radius = lame["matrix"], lame["fibre"], 0.4
    system = [[radius, -1 / radius], [2 * (l2 + m2), 2 * m1 / radius**2]]
    inner, outer = np.linalg.solve(system, [radius, 2 * (l1 + m1)])

    def stress(u, x, numbers):
        gradient = pf.grad(u.v)(x)
        strain = (gradient + gradient.T) / 2
        return numbers[0] * jnp.trace(strain) * jnp.eye(2) + 2 * numbers[1] * strain

    operator = {n: lambda u, x, k=k: -pf.div(lambda y: stress(u, y, k))(x) for n, k in lame.items()}
    traction = {n: lambda u, x, normal, k=k: stress(u, x, k) @ normal for n, k in lame.items()}
    disk = pf.Disk([0, 0], radius)
    problem = pf.Problem(
        pf.Regions(matrix=PLATE - disk, fibre=disk),
        operator,
        0.0,
        [pf.Dirichlet(), pf.Interface(flux=traction)],
        unknowns={"v": 2},
        exact={"matrix": {"v": lambda x: x * (1 + outer / (x @ x))}, "fibre": {"v": lambda x: inner * x}},
    )
    u = pf.solve(problem, tol=TOL)
    assert u.converged
    assert u.errors().relative_l2 < ALLOWED


def test_a_corner_of_an_inclusion_is_resolved():
    k, corner = 50.0, pf.Box([0, 0], [1, 1])
    alpha = exponent([(math.pi / 2, k), (1.5 * math.pi, 1.0)])
    inside, outside = math.cos(alpha * 3 * math.pi / 4), math.cos(alpha * math.pi / 4)

    def around(x, middle, size):
        angle = jnp.arctan2(x[1], x[0])
        angle = jnp.mod(angle - middle + math.pi, 2 * math.pi) - math.pi
        return size * jnp.sqrt(x @ x) ** alpha * jnp.cos(alpha * angle)

    exact = {
        "corner": lambda x: around(x, math.pi / 4, inside),
        "rest": lambda x: around(x, 5 * math.pi / 4, outside),
    }
    regions = pf.Regions(corner=corner, rest=PLATE - corner)
    u = pf.solve(materials(regions, {"corner": k, "rest": 1.0}, exact=exact, source=0.0), tol=1e-6)
    assert u.converged
    assert u.errors().relative_l2 < 3e-6


def test_a_solution_of_regions_can_be_traced_and_is_not_saved(tmp_path):
    u = pf.solve(inclusion(1.0, 3.0), tol=1e-4)
    points = np.array([[0.1, 0.2], [0.7, 0.6]])
    np.testing.assert_allclose(jax.vmap(u)(jnp.asarray(points)), u(points), rtol=1e-12)
    assert isinstance(u.features, RegionPolynomials)
    with pytest.raises(FeaturesError, match="shape of the regions"):
        pf.save(tmp_path / "u.safetensors", u.features)
    u.plot(tmp_path / "u.png")
    u.to_vtk(tmp_path / "u.vtu")
