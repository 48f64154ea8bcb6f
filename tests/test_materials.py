"""Several regions: their interfaces, what holds between them, and solutions to the tolerance."""

import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.adaptive.exponents import exponents
from pdofm.adaptive.sectors import material_points
from pdofm.discrete.collocate import collocate
from pdofm.domain.tree import Forest
from pdofm.errors import DomainError, FeaturesError, ProblemError, UnknownNameError
from pdofm.features import Mirrored
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


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"plate": pf.Chebyshev(PLATE, 50)}, "region 'inclusion' are None; expected features for every region"),
        ({"plate": pf.Chebyshev(PLATE, 50), "inclusion": pf.Chebyshev(pf.Interval(0, 1), 5)}, "1 dimensions"),
        ({"plate": pf.Chebyshev(DISK, 50), "inclusion": pf.Chebyshev(DISK, 50)}, "'plate' reaches outside the box"),
        ({"plate": pf.HardDirichlet(pf.Chebyshev(PLATE, 9), PLATE), "inclusion": pf.Chebyshev(DISK, 9)}, "impose"),
        ("polynomials", r"a dictionary with features for each of \['plate', 'inclusion'\]"),
    ],
)
def test_features_that_do_not_fit_the_regions_are_refused(features, message):
    with pytest.raises(FeaturesError, match=message):
        pf.solve(inclusion(1.0, 2.0), features)


def test_features_of_other_regions_are_refused():
    other = inclusion(1.0, 2.0, radius=0.3).domain
    features = pf.RegionFeatures(other, plate=pf.Chebyshev(PLATE, 50), inclusion=pf.Chebyshev(PLATE, 50))
    with pytest.raises(FeaturesError, match=r"features are made for Regions.*the problem is on"):
        pf.solve(inclusion(1.0, 2.0), features)


def test_an_unknown_region_of_features_is_named():
    with pytest.raises(UnknownNameError, match="disc"):
        pf.RegionFeatures(inclusion(1.0, 2.0).domain, disc=pf.Chebyshev(PLATE, 50))
    with pytest.raises(FeaturesError, match="needs a domain with several regions"):
        pf.RegionFeatures(PLATE, disc=pf.Chebyshev(PLATE, 50))


def test_a_period_joins_equal_regions_only():
    k = {"left": 1.0, "right": 3.0}
    regions = pf.Regions(left=pf.Box([0, 0], [0.5, 1]), right=pf.Box([0.5, 0], [1, 1]))
    with pytest.raises(ProblemError, match=r"in the region 'left' and .* in 'right'; expected the same region"):
        materials(regions, k, pf.Periodic(0), pf.Dirichlet(0.0), source=1.0)


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
    found = exponents(sectors, ends)[0]
    if expected is None:
        k = sectors[0][1]
        first, second = math.tan(found * math.pi / 4), math.tan(found * 3 * math.pi / 4)
        assert min(abs(k * first + second), abs(first + k * second)) < 1e-8
    else:
        assert found == pytest.approx(expected, abs=1e-12)


def test_all_exponents_of_kelloggs_checkerboard_are_found():
    # The condition depends on cos(απ) alone: with α also 2 - α and 2 + α are exponents. cos 2θ is a solution, too.
    found = exponents([(math.pi / 2, 161.4476387975881), (math.pi / 2, 1.0)] * 2, highest=4.05)
    np.testing.assert_allclose(found, [0.1, 1.9, 2.0, 2.1, 3.9, 4.0], atol=1e-12)


def test_singular_functions_satisfy_what_holds_between_the_regions():
    """At a corner of an inclusion some combination of r^α cos αθ and r^α sin αθ of both regions has continuous values
    and fluxes, and away from the exponents none has."""
    k, angles = (50.0, 1.0), (math.pi / 2, 3 * math.pi / 2)

    def misfit(alpha):
        rows = []
        for turn in (-1, 1):  # the two interfaces, in the angle from the middle of each sector
            (a, b), (s, t) = (angles[0] / 2 * turn, -angles[1] / 2 * turn), k
            rows.append([math.cos(alpha * a), math.sin(alpha * a), -math.cos(alpha * b), -math.sin(alpha * b)])
            rows.append(
                [-s * math.sin(alpha * a), s * math.cos(alpha * a), t * math.sin(alpha * b), -t * math.cos(alpha * b)]
            )
        return float(np.linalg.svd(np.array(rows), compute_uv=False)[-1])

    found = exponents(list(zip(angles, k, strict=True)))
    assert all(misfit(alpha) < 1e-11 for alpha in found)
    assert all(misfit(alpha) > 1e-3 for alpha in (found[1:] + found[:-1]) / 2)


def test_coefficients_at_a_point_are_those_of_the_exponent_there():
    """Where the conductivity varies its value at the point counts. No singular functions are taken from fluxes that
    are not along the normal."""
    corner = pf.Box([0, 0], [1, 1])
    regions = pf.Regions(corner=corner, rest=PLATE - corner)

    def problem(k):
        def operator(u, x):
            return -pf.div(lambda y: k(y) @ pf.grad(u)(y))(x)

        def out(u, x, normal):
            return normal @ k(x) @ pf.grad(u)(x)

        rest = {
            "operator": lambda u, x: -pf.laplacian(u)(x),
            "flux": lambda u, x, normal: pf.normal_derivative(u, normal)(x),
        }
        interface = pf.Interface(flux={"corner": out, "rest": rest["flux"]})
        return pf.Problem(regions, {"corner": operator, "rest": rest["operator"]}, 1.0, [pf.Dirichlet(0.0), interface])

    varying = material_points(problem(lambda x: 50.0 * jnp.exp(x[0] - 2 * x[1]) * jnp.eye(2)))
    alpha, functions = next((alpha, f) for point, alpha, f in varying if np.allclose(point, 0))
    assert alpha == pytest.approx(exponents([(math.pi / 2, 50.0), (1.5 * math.pi, 1.0)])[0], abs=1e-4)
    assert set(functions) == {"corner", "rest"}
    slanted = material_points(problem(lambda x: jnp.array([[10.0, 4.0], [4.0, 3.0]])))
    assert next((alpha, f) for point, alpha, f in slanted if np.allclose(point, 0)) == (0.5, {})


def test_smooth_interfaces_are_not_singular_and_corners_of_inclusions_are():
    assert all(alpha > 1 for _, alpha, _ in material_points(inclusion(1.0, 400.0)))
    triangle = pf.Polygon([[-0.5, -0.4], [0.6, -0.3], [0.1, 0.5]])
    regions = pf.Regions(plate=PLATE - triangle, triangle=triangle)
    found = material_points(materials(regions, {"plate": 1.0, "triangle": 5.0}, pf.Dirichlet(0.0), source=1.0))
    assert sum(alpha < 1 for _, alpha, _ in found) == 3


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


@pytest.mark.parametrize(("outside", "inside"), [(1.0, 400.0), (1.0, 1e6)])
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


def test_a_corner_of_an_inclusion_is_resolved():
    k, corner = 50.0, pf.Box([0, 0], [1, 1])
    alpha = exponents([(math.pi / 2, k), (1.5 * math.pi, 1.0)])[0]
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


# ---- features of each region


def polynomials(regions, size=150, degree=8):
    """Polynomials for the regions of a round inclusion, and multipoles around it."""
    plate = pf.Concatenate(pf.Chebyshev(regions["plate"], size), pf.HoleFunctions(regions["plate"], degree))
    return {"plate": plate, "inclusion": pf.Chebyshev(regions["inclusion"], size // 2)}


def test_features_of_each_region_are_given_by_a_dictionary():
    problem = inclusion(1.0, 400.0)
    u = pf.solve(problem, polynomials(problem.domain), tol=1e-10)
    assert u.converged
    assert u.errors().relative_l2 < 1e-10
    assert u.stats.features == u.features.size


@pytest.mark.parametrize("domain", [pf.Box([-1, 0], [2, 1]), pf.Box([0, 0, 0], [1, 2, 1])])
def test_harmonic_polynomials_are_harmonic_and_all_of_them(domain, seed):
    features, dim = pf.HarmonicPolynomials(domain, 6), domain.dim
    assert features.size == (13 if dim == 2 else 49)
    assert pf.HarmonicPolynomials(domain, 6, 3).size == features.size - (5 if dim == 2 else 9)
    points = domain.sample(100, "random", key=seed)
    second = [tuple(2 * int(axis == i) for i in range(dim)) for axis in range(dim)]
    jets = features.jets(points, [(0,) * dim, *second])
    assert np.max(np.abs(jets[1:].sum(axis=0))) < 1e-11 * np.max(np.abs(jets[1:]))
    assert np.linalg.matrix_rank(jets[0]) == features.size
    np.testing.assert_allclose(features(jnp.asarray(points[0])), jets[0, 0], rtol=1e-12, atol=1e-15)


def test_derivatives_of_features_of_regions_are_those_of_their_region(seed):
    regions = inclusion(1.0, 2.0).domain
    features = pf.RegionFeatures(regions, **polynomials(regions, 20, 2))
    points = regions.sample(40, "random", key=seed)
    which = [(0, 0), (1, 0), (0, 2)]
    found = features.jets(points, which)
    c = np.random.default_rng(seed).standard_normal((features.size, 2))
    np.testing.assert_allclose(features.expand(points, which, c), found @ c, rtol=1e-10, atol=1e-12)
    traced = np.stack([np.asarray(features(jnp.asarray(point))) for point in points[:5]])
    np.testing.assert_allclose(traced, found[0, :5], rtol=1e-12, atol=1e-14)
    plate = features.of_region("plate").jets(points, which)
    outside = regions["plate"].contains(points)
    np.testing.assert_allclose(plate[:, outside], found[:, outside], rtol=1e-11, atol=1e-11)


def charges(dim, inside, outside):
    """The potential of a charge in the inclusion as the plate sees it, and of one outside as the inclusion sees it:
    infinitely many multipoles, and polynomials of all degrees."""

    def potential(x, at):
        square = (x - jnp.array(at)) @ (x - jnp.array(at))
        return jnp.log(square) if dim == 2 else 1 / jnp.sqrt(square)

    plain = {"plate": lambda x: jnp.exp(x[0]) * jnp.cos(x[1]), "inclusion": lambda x: x[0] * x[1] - 1.0}
    return {
        "plate": lambda x: plain["plate"](x) + potential(x, inside),
        "inclusion": lambda x: plain["inclusion"](x) + potential(x, outside),
    }


@pytest.mark.parametrize(("dim", "tol"), [(2, 1e-8), (3, 1e-3)])
def test_harmonic_solutions_of_round_regions_have_as_many_degrees_as_they_need(dim, tol):
    center = np.array([0.1, -0.1, 0.05])[:dim]
    ball, box = (pf.Disk if dim == 2 else pf.Ball)(center, 0.4), pf.Box([-1.0] * dim, [1.0] * dim)
    exact = charges(dim, center + 0.1, center + 0.8)
    regions = pf.Regions(plate=box - ball, inclusion=ball)
    problem = materials(regions, {"plate": 1.0, "inclusion": 20.0}, exact=exact, source=0.0, jump=None, flux_jump=None)
    u = pf.solve(problem, tol=tol)
    assert u.converged
    assert u.space == "harmonic functions"
    assert max(each.relative_l2 for each in u.errors().regions.values()) < tol


def test_mirror_images_satisfy_conditions_on_a_face(seed):
    box = pf.Box([0, 0], [1, 2])
    inner = pf.RandomFeatures(box, 5, key=seed)
    features = Mirrored(inner, (-1, 1), (0, 0))
    t = np.linspace(0.1, 0.9, 7)
    left, below = np.stack([0 * t, 2 * t], axis=1), np.stack([t, 0 * t], axis=1)
    np.testing.assert_allclose(features.jets(left, [(0, 0)])[0], 0.0, atol=1e-14)
    np.testing.assert_allclose(features.jets(below, [(0, 1)])[0], 0.0, atol=1e-13)


@pytest.mark.parametrize("names", [4, 2])
def test_kelloggs_checkerboard_is_solved_with_its_singular_functions(names, tmp_path):
    """The problem of exponent 0.1; with two regions each of them has two sectors at the middle."""
    stated = pf.zoo.get("kellogg-checkerboard")
    quarters = stated.exact
    if names == 2:
        quarter = stated.regions.by_name
        regions = pf.Regions(dark=quarter["first"] | quarter["third"], light=quarter["second"] | quarter["fourth"])
        of = {"dark": ("first", "third"), "light": ("second", "fourth")}
        exact = {
            name: lambda x, a=a, b=b: jnp.where(x[1] > 0, quarters[a](x), quarters[b](x)) for name, (a, b) in of.items()
        }
        stated = materials(regions, {"dark": 161.4476387975881, "light": 1.0}, exact=exact, source=0.0)
    u = solve_in_boxes(stated, 1e-4)
    assert u.converged
    assert u.errors().relative_l2 < 1e-4
    assert u.features.singular
    points = stated.domain.sample(100)
    np.testing.assert_allclose(jax.vmap(u)(jnp.asarray(points)), u(points), rtol=1e-10, atol=1e-12)
    pf.save(tmp_path / "u.pdofm", u)
    np.testing.assert_array_equal(pf.load(tmp_path / "u.pdofm")(points), u(points))


@pytest.mark.parametrize("in_boxes", [False, True])
def test_a_solution_of_regions_is_traced_drawn_saved_and_integrated(in_boxes, tmp_path):
    problem = inclusion(1.0, 3.0)
    u = solve_in_boxes(problem, 1e-4) if in_boxes else pf.solve(problem, tol=1e-4)
    assert isinstance(u.features, RegionPolynomials if in_boxes else pf.RegionFeatures)
    points = np.array([[0.1, 0.2], [0.7, 0.6]])
    np.testing.assert_allclose(jax.vmap(u)(jnp.asarray(points)), u(points), rtol=1e-12)
    pf.save(tmp_path / "u.pdofm", u)
    for again in (pf.load(tmp_path / "u.pdofm"), pickle.loads(pickle.dumps(u))):
        np.testing.assert_array_equal(again(points), u(points))
        np.testing.assert_array_equal(again.side("plate")([0.5, 0.0]), u.side("plate")([0.5, 0.0]))
    # Inside u = x (1 + c) with c = -1/2, so that ∫ x ∂u/∂n over the circle is -(1 + c) π r² with the normal inwards.
    interface = problem.domain.part("plate|inclusion")
    through = u.side("inclusion").integral(lambda u, x, normal: x[0] * pf.normal_derivative(u, normal)(x), interface)
    assert float(through) == pytest.approx(-0.5 * math.pi * 0.25, rel=1e-3 if in_boxes else 1e-10)
    square = u.integral(lambda u, x: jnp.where(x @ x < 0.25, u(x) ** 2, 0.0))
    assert float(square) == pytest.approx(0.25 * math.pi * 0.5**4 / 4, rel=1e-3 if in_boxes else 1e-10)
    if not in_boxes:
        u.plot(tmp_path / "u.png")
        u.to_vtk(tmp_path / "u.vtu")


def test_one_factorisation_serves_many_sources_of_several_regions():
    problem = inclusion(1.0, 20.0)
    solver = pf.factor(problem, polynomials(problem.domain, 300, 12))
    # u = (r² - 1/4) / k in both regions has the flux 2 r on both sides, and div(k grad u) = 4.
    values = {"dirichlet": [lambda x: x @ x - 0.25]}
    same, each = (solver.solve(s, values) for s in ([-4.0], {"plate": -4.0, "inclusion": [lambda x: -4.0]}))
    points = problem.domain.sample(200)
    radius = np.sum(points**2, axis=1) - 0.25
    exact = np.where(radius < 0, radius / 20.0, radius)
    np.testing.assert_allclose(same[0](points), exact, atol=1e-10)
    np.testing.assert_allclose(each[0](points), exact, atol=1e-10)
    arrays = {name: np.full((len(solver.points[f"equation {name}"]), 2), -4.0) for name in ("plate", "inclusion")}
    many = solver.solve(arrays, {"dirichlet": [*values["dirichlet"], 0.0]})
    np.testing.assert_allclose(many(points)[:, 0], exact, atol=1e-10)
    with pytest.raises(ProblemError, match=r"expected a dictionary of arrays.*solver.points"):
        solver.solve(np.zeros((3, 2)))
    with pytest.raises(UnknownNameError, match="disc"):
        solver.solve({"disc": 1.0})


def test_a_solution_with_a_period_continues_on_the_other_side():
    disk = pf.Disk([0, 0], 0.4)
    regions = pf.Regions(plate=PLATE - disk, inclusion=disk)
    faces = pf.Dirichlet(lambda x: x[1], on=regions.part("x1=lower", "x1=upper"))
    u = pf.solve(materials(regions, {"plate": 1.0, "inclusion": 9.0}, pf.Periodic(0), faces, source=0.0), tol=1e-7)
    assert u.converged
    left, right = (np.stack([np.full(5, x), np.linspace(-0.9, 0.9, 5)], axis=1) for x in (-1.0, 1.0))
    np.testing.assert_allclose(u(left), u(right), atol=1e-7)
    np.testing.assert_allclose(u.gradient(left), u.gradient(right), atol=1e-5)
    # The field is even in x, so that nothing flows through the sides of the period.
    np.testing.assert_allclose(u.gradient(left)[:, 0], 0.0, atol=1e-5)


# ---- the zoo


@pytest.mark.parametrize("name", [n for n in pf.zoo.names("materials") if pf.zoo.get(n).exact is not None])
def test_exact_solutions_satisfy_the_equations_and_what_holds_between_them(name):
    problem = pf.zoo.get(name)
    for block in collocate(problem, 64, 100, sampling="random", key=9):
        layout = problem.layout_of(block.term)
        exact = problem.manufactured(block.term).exact.fields(layout)

        def sides(z, normal, block=block, layout=layout, exact=exact):
            args = layout.arguments(z)
            return block.term.lhs(exact, exact, args, normal), block.right_side(layout, args, normal)

        left, right = jax.vmap(sides)(jnp.asarray(block.points), jnp.asarray(block.normals))
        assert np.max(np.abs(np.asarray(left) - np.asarray(right))) < 1e-11


@pytest.mark.parametrize("name", ["concentric-layers", "sphere-in-cube", "elastic-inclusion", "round-inclusion-weak"])
def test_round_regions_are_solved_to_rounding(name):
    u = pf.solve(pf.zoo.get(name), tol=TOL)
    assert u.converged
    assert u.stats.features < 1300
    assert u.errors().relative_l2 < 1e-10


def test_an_ellipse_is_solved_in_boxes():
    u = pf.solve(pf.zoo.get("elliptic-inclusion"), tol=1e-6)
    assert u.converged
    assert u.errors().relative_l2 < 3e-6
