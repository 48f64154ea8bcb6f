"""factor(): many right-hand sides from one factorisation, against solve(), linearity and exact solutions."""

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.errors import ConvergenceWarning, FeaturesError, NonlinearError, ProblemError, SolveError, UnknownNameError

module = importlib.import_module("pdofm.solving.factored")  # pdofm.factor is the function

SQUARE = pf.Box([-1, -1], [1, 1])
LINE = pf.Interval(-1, 1)


def poisson(exact: Any, domain: pf.Domain = SQUARE, **options: Any) -> pf.Problem:
    return pf.Problem(domain, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet()], exact=exact, **options)


def neumann(exact: Any) -> pf.Problem:
    return pf.Problem(SQUARE, lambda u, x: u(x) - pf.laplacian(u)(x), conditions=[pf.Neumann()], exact=exact)


def robin(exact: Any) -> pf.Problem:
    wall = [pf.Robin(2.0, 1.0, on=DISK.boundary)]
    return pf.Problem(DISK, lambda u, x: -pf.laplacian(u)(x), conditions=wall, exact=exact)


def periodic(exact: Any) -> pf.Problem:
    return pf.Problem(
        pf.Box([-1, -1], [1, 1]),
        lambda u, x: pf.partial(u, 0)(x) - pf.laplacian(u)(x),
        conditions=[pf.Periodic(axis=0), pf.Dirichlet()],
        exact=exact,
    )


def heat(exact: Any) -> pf.Problem:
    return pf.Problem(
        pf.SpaceTime(LINE, 1.0),
        lambda u, x, t: pf.dt(u)(x, t) - pf.laplacian(u)(x, t) / 10,
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=exact,
    )


def wave(exact: Any) -> pf.Problem:
    return pf.Problem(
        pf.SpaceTime(LINE, 1.0),
        lambda u, x, t: pf.dt(pf.dt(u))(x, t) - pf.laplacian(u)(x, t),
        conditions=[pf.Dirichlet(), pf.Initial()],
        exact=exact,
    )


def elasticity(exact: Any) -> pf.Problem:
    def stress(v):
        def of(x):
            gradient = pf.grad(v)(x)
            return gradient + gradient.T + 1.5 * jnp.trace(gradient) * jnp.eye(2)

        return of

    return pf.Problem(
        SQUARE,
        lambda u, x: -pf.div(stress(u.d))(x),
        conditions=[pf.Dirichlet(unknown="d")],
        unknowns={"d": 2},
        exact=exact,
    )


DISK = pf.Disk((0, 0), 1.0)
LSHAPE = SQUARE - pf.Box([0, 0], [1, 1])
ANNULUS = pf.Annulus((0.1, 0), 0.3, 0.8)
HOLED = pf.Polygon([(-1, -0.8), (0.9, -1), (1, 0.4), (0, 1), (-1, 0.5)], holes=[[(-0.3, -0.3), (0.4, -0.2), (0, 0.4)]])


@dataclass(frozen=True)
class Case:
    make: Callable[[Any], pf.Problem]
    exacts: tuple[Any, Any]
    box: Any = SQUARE
    size: int = 200


def first(x):
    return jnp.exp(x[0] / 2) * jnp.cos(x[1])


def second(x):
    return jnp.sin(x[0] + 2 * x[1])


SPACETIME = pf.SpaceTime(LINE, 1.0)
CASES = {
    "poisson": Case(poisson, (first, second)),
    "neumann": Case(neumann, (first, second)),
    "robin": Case(robin, (first, second)),
    "periodic": Case(
        periodic, (lambda x: jnp.sin(jnp.pi * x[0]) * x[1], lambda x: jnp.cos(jnp.pi * x[0]) + x[1]), size=300
    ),
    "heat": Case(heat, (lambda x, t: jnp.exp(-t) * jnp.sin(x[0]), lambda x, t: jnp.cos(x[0] + t)), SPACETIME),
    "wave": Case(wave, (lambda x, t: jnp.sin(x[0]) * jnp.cos(2 * t), lambda x, t: jnp.cos(x[0] + t)), SPACETIME),
    "elasticity": Case(
        elasticity,
        ({"d": lambda x: jnp.stack([first(x), second(x)])}, {"d": lambda x: jnp.stack([second(x), x[0] * x[1]])}),
        size=150,
    ),
    "lshape": Case(lambda exact: poisson(exact, LSHAPE), (first, second)),
    "annulus": Case(lambda exact: poisson(exact, ANNULUS), (first, second)),
    "disk": Case(lambda exact: poisson(exact, DISK), (first, second)),
    "polygon with a hole": Case(lambda exact: poisson(exact, HOLED), (first, second)),
}
names = pytest.mark.parametrize("name", CASES)


@cache
def problems(name: str) -> tuple[pf.Problem, pf.Problem]:
    case = CASES[name]
    a, b = (case.make(exact) for exact in case.exacts)
    return a, b


@cache
def features(name: str) -> pf.Features:
    return pf.NetworkFeatures(CASES[name].box, CASES[name].size)


@cache
def solver(name: str) -> pf.Solver:
    return pf.factor(problems(name)[0], features(name))


@cache
def tables(name: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Data of both exact solutions u and v, and of u - 2v, in arrays at the points of the solver."""
    one = solver(name)
    # The points do not depend on the data: other data come from the right side of the other problem there.
    other = pf.factor(problems(name)[1], features(name))
    arrays = {}
    for part, points in one.points.items():
        u, v = (s.system.right[s.system.rows[part]].reshape(len(points), -1) for s in (one, other))
        stacked = np.stack([u, v, u - 2 * v], axis=-1)
        arrays[part] = stacked[:, 0] if stacked.shape[1] == 1 else stacked
    return arrays.pop("equation"), arrays


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def mixed(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Data of k combinations of the exact solutions of Poisson's equation."""
    sources, boundary = tables("poisson")
    weights = np.random.default_rng(1).uniform(-1, 1, (3, k))
    return sources @ weights, boundary["dirichlet"] @ weights


# ---- the mathematics


@names
def test_the_problems_own_data_give_the_solution_of_solve(name):
    problem = problems(name)[0]
    many, u = solver(name).solve(), pf.solve(problem, features(name))
    points = problem.domain.sample(200)
    assert len(many) == 1
    assert relative(many(points)[..., 0], u(points)) < 1e-12
    assert relative(many[0](points), u(points)) < 1e-12
    assert many.is_held_out
    assert many.converged.all()


@names
def test_data_in_arrays_give_the_exact_solutions_also_on_domains_that_the_features_were_not_made_on(name):
    sources, boundary = tables(name)
    many = solver(name).solve(sources, boundary)
    points = problems(name)[0].domain.sample(200)
    u, v = (problem.exact_values(points) for problem in problems(name))
    exact = np.stack([u, v, u - 2 * v], axis=-1)
    found = many(points) if problems(name)[0].unknowns else many(points)[:, None]
    assert found.shape == exact.shape
    assert all(relative(found[..., j], exact[..., j]) < 1e-9 for j in range(3))
    assert not many.is_held_out
    assert many.converged.all()
    assert (many.residuals < 1e-8).all()


@names
def test_the_solution_of_a_sum_is_the_sum_of_the_solutions(name):
    many = solver(name).solve(*tables(name))
    values = many(problems(name)[0].domain.sample(200))
    assert relative(values[..., 2], values[..., 0] - 2 * values[..., 1]) < 1e-10


@pytest.mark.parametrize("name", ["poisson", "heat", "elasticity"])
def test_functions_and_arrays_of_their_values_give_the_same_solutions(name):
    one, (sources, boundary) = solver(name), tables(name)
    other = problems(name)[1]
    by_array = one.solve(sources[..., 1:2], {part: values[..., 1:2] for part, values in boundary.items()})

    # The second exact solution through the operator, as a user would write it.
    def source(*args):
        return other.operator(other.exact_fields, *args)

    by_function = one.solve([source], {part: [other.exact_fields] for part in boundary})
    points = other.domain.sample(100)
    assert relative(by_function(points), by_array(points)) < 1e-10
    assert (by_function.is_held_out, by_array.is_held_out) == (True, False)


def test_more_right_hand_sides_than_features_are_the_solutions_one_by_one():
    one = solver("poisson")
    k = one.stats.features + 7
    (sources, boundary), points = mixed(k), SQUARE.sample(50)
    many = one.solve(sources, boundary)
    for j in (0, k // 2, k - 1):
        alone = one.solve(sources[:, [j]], boundary[:, [j]])
        assert relative(many(points)[:, j], alone(points)[:, 0]) < 1e-10
        np.testing.assert_allclose(many.residuals[j], alone.residuals[0], rtol=0.5, atol=1e-12)


@pytest.mark.parametrize("rough", [0.0, 1e-9, 1e-3, 1.0])
def test_residuals_of_many_sides_are_those_of_few(rough, seed):
    """Smooth data and noise, which no feature fits: few residuals are computed from all rows, many from some of them or
    from the part outside of the range."""
    one = solver("poisson")
    k = one.stats.features + 3
    sources, boundary = mixed(k)
    sources = sources + rough * np.abs(sources).max() * np.random.default_rng(seed).standard_normal(sources.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        many, few = one.solve(sources, boundary), one.solve(sources[:, :5], boundary[:, :5])
    # Three standard deviations of a norm that is estimated from so many independent entries.
    spread = 3 / (2 * module.WATCHED) ** 0.5
    np.testing.assert_allclose(many.residuals[:5], few.residuals, rtol=spread, atol=1e-14)


def test_data_on_a_single_row_are_no_reason_to_warn():
    """-u'' = 0 with u = 1 on the left: all data are in one of 402 rows."""
    interval = pf.Interval(-1, 1)
    problem = pf.Problem(
        interval,
        lambda u, x: -pf.laplacian(u)(x),
        source=0.0,
        conditions=[
            pf.Dirichlet(0.0, on=interval.boundary.where(lambda x: x[0] < 0), name="left"),
            pf.Dirichlet(0.0, on=interval.boundary.where(lambda x: x[0] > 0), name="right"),
        ],
    )
    one = pf.factor(problem, pf.Chebyshev(interval, 100))
    many = one.solve(0.0, {"left": np.ones((1, 200)), "right": 0.0})
    assert many.converged.all()
    assert (many.residuals < 1e-8).all()


def test_blocks_of_right_hand_sides_and_of_points_do_not_change_the_result(monkeypatch):
    one = solver("poisson")
    points = SQUARE.sample(300)
    sources, boundary = mixed(20)
    whole = one.solve(sources, boundary)
    monkeypatch.setattr(module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(module, "LEAST_BLOCK", 3)
    monkeypatch.setattr("pdofm.discrete.evaluate.EVALUATION_BYTES", 1)
    cut = one.solve(sources, boundary)
    assert relative(cut(points), whole(points)) < 1e-10
    np.testing.assert_allclose(cut.residuals, whole.residuals, rtol=1e-6, atol=1e-12)


def test_right_hand_sides_are_solved_in_blocks_that_keep_to_the_budget(monkeypatch):
    one = solver("poisson")
    monkeypatch.setattr(module, "BLOCK_BYTES", 8 * 10 * one.stats.rows)
    monkeypatch.setattr(module, "LEAST_BLOCK", 3)
    widths, solve = [], type(one.factorization).solve
    monkeypatch.setattr(type(one.factorization), "solve", lambda self, b: widths.append(b.shape[1]) or solve(self, b))
    for k in (1, 9, 10, 11, 101):
        widths.clear()
        one.solve(*mixed(k))
        assert sum(widths) == k
        assert max(widths) <= 10


def test_boundary_data_alone_change_the_solution_by_a_harmonic_function():
    harmonic = [lambda x: x[0] ** 2 - x[1] ** 2, lambda x: jnp.exp(x[0]) * jnp.sin(x[1])]
    many = solver("poisson").solve(0.0, harmonic)
    points = SQUARE.sample(100)
    for j, function in enumerate(harmonic):
        assert relative(many(points)[:, j], np.array([function(x) for x in points])) < 1e-10


def test_a_number_is_the_same_for_all_right_hand_sides():
    one = solver("poisson")
    zeros = np.zeros((len(one.points["dirichlet"]), 2))
    sources, points = [lambda x: x[0], 2.0], SQUARE.sample(50)
    a, b = one.solve(sources, 0.0)(points), one.solve(sources, {"dirichlet": zeros})(points)
    assert relative(a, b) < 1e-12


def test_conditions_that_are_left_out_keep_their_own_data():
    points, one = SPACETIME.sample(100), solver("heat")
    values = np.array(one.system.right[one.system.rows["initial"]])[:, None]
    assert relative(one.solve(boundary={"initial": values})(points), one.solve()(points)) < 1e-10


def test_a_condition_with_a_residual_of_its_own_takes_data_as_its_right_side():
    wall = pf.Condition(lambda u, x: u(x) - first(x), name="wall")
    one = pf.factor(poisson(first).replace(conditions=[wall]), 100)
    many, points = one.solve(boundary=[0.0, 3.0]), SQUARE.sample(50)
    assert relative(many(points)[:, 1], many(points)[:, 0] + 3) < 1e-9


def test_data_may_ask_for_the_normal():
    flux = lambda x, normal: jnp.dot(pf.grad(second)(x), normal)
    source = lambda x: second(x) - pf.laplacian(second)(x)
    many, points = solver("neumann").solve([source], [flux]), SQUARE.sample(50)
    assert relative(many(points)[:, 0], np.array([second(x) for x in points])) < 1e-9
    one = solver("neumann")
    slopes = np.stack([pf.grad(second)(jnp.asarray(x)) for x in one.points["neumann"]])
    table = np.sum(slopes * one.normals["neumann"], axis=1)[:, None]
    assert relative(one.solve([source], table)(points), many(points)) < 1e-10


@pytest.mark.parametrize("lstsq", [pf.QR(), pf.SVD(), pf.SVD(rcond=1e-12)], ids=repr)
@pytest.mark.parametrize("k", [2, 90])
def test_every_least_squares_solver_gives_the_same_solutions(lstsq, k):
    one = pf.factor(poisson(first), 80, method=pf.Linear(lstsq=lstsq))
    scale = np.arange(1.0, k + 1)
    sources = one.system.right[one.system.rows["equation"]][:, None] * scale
    boundary = one.system.right[one.system.rows["dirichlet"]][:, None] * scale
    points = SQUARE.sample(50)
    expected = np.array([first(x) for x in points])[:, None] * scale
    assert relative(one.solve(sources, boundary)(points), expected) < 1e-5


def test_features_that_add_terms_of_their_own_keep_them():
    split = pf.PartitionOfUnity(lambda box, key: pf.RandomFeatures(box, 60, key=key), SQUARE, (2, 1), window="a")
    one, points = pf.factor(poisson(first), split), SQUARE.sample(50)
    assert list(one.points) == ["equation", "dirichlet"]
    assert set(one.system.rows) > set(one.points)
    assert relative(one.solve()(points)[:, 0], np.array([first(x) for x in points])) < 1e-4


# ---- what comes back


def test_many_solutions_are_functions_of_one_point_or_of_many():
    many, points = solver("poisson").solve(*tables("poisson")), SQUARE.sample(7)
    assert (len(many), many(points).shape, many(points[0]).shape) == (3, (7, 3), (3,))
    np.testing.assert_allclose(many(points[0]), many(points)[0], rtol=1e-12)
    assert many.coefficients.shape == (features("poisson").size, 1, 3)
    np.testing.assert_allclose([u(points[0]) for u in many], many(points[0]), rtol=1e-12)
    np.testing.assert_allclose(many[-1].gradient(points), many[0].gradient(points) - 2 * many[1].gradient(points))
    with pytest.raises(IndexError, match="index out of range"):
        many[3]
    assert "3 solutions of 'problem': 3 converged, relative fitted residual" in repr(many)
    assert "1 solution of 'problem': 1 converged" in repr(solver("poisson").solve([1.0]))
    assert "converged" in repr(many[0])


def test_many_solutions_of_a_system_have_an_axis_of_components():
    many, points = solver("elasticity").solve(*tables("elasticity")), SQUARE.sample(7)
    assert (many(points).shape, many(points[0]).shape) == ((7, 2, 3), (2, 3))
    np.testing.assert_allclose(many[1].d(points), many(points)[:, :, 1], rtol=1e-12)


def test_many_solutions_in_space_time_take_points_and_times():
    many = solver("heat").solve()
    assert many([0.5], 0.25).shape == (1,)
    np.testing.assert_allclose(many([[0.5], [0.1]], 0.25), many([[0.5, 0.25], [0.1, 0.25]]), rtol=1e-12)


def test_a_solver_says_what_it_factored():
    one = solver("elasticity")
    assert list(one.points) == ["equation", "dirichlet"]
    stats = one.stats
    assert stats.rows == 2 * sum(len(points) for points in one.points.values())
    assert (stats.features, stats.components) == (150, 2)
    assert 150 < stats.rank <= 300
    assert stats.condition > 1
    assert list(stats.seconds) == ["points", "assemble", "factor"]
    assert "150 features" in repr(one)
    np.testing.assert_allclose(np.linalg.norm(one.normals["dirichlet"], axis=1), 1.0)


def test_a_source_that_is_too_rough_is_reported_whether_it_is_a_function_or_an_array():
    one, rough = solver("poisson"), 40.0
    problem = problems("poisson")[0]
    smooth = lambda x: problem.operator(first, x)
    functions = [smooth, lambda x: 1e3 * jnp.cos(rough * x[0]), smooth]
    message = (
        r"1 of 3 right-hand sides of 'problem' have not converged: .*{} is above 0.01, up to .* for number 1\. "
        r".*use more features, or fine-tune the features with pretrain"
    )
    with pytest.warns(ConvergenceWarning, match=message.format("not fitted")):
        many = one.solve(functions)
    assert many.converged.tolist() == [True, False, True]
    assert not many[1].converged
    assert "NOT CONVERGED" in repr(many[1])
    own = one.system.right[one.system.rows["equation"]]
    arrays = np.stack([own, 1e3 * np.cos(rough * one.points["equation"][:, 0]), own], axis=1)
    with pytest.warns(ConvergenceWarning, match=message.format("fitted points")):
        many = one.solve(arrays)
    assert many.converged.tolist() == [True, False, True]


def test_zero_data_have_a_zero_solution_without_residual():
    many = solver("poisson").solve(0.0, 0.0)
    assert not many.coefficients.any()
    assert (many.residuals.tolist(), many.converged.tolist()) == ([0.0], [True])


# ---- what is refused


def test_a_nonlinear_equation_is_refused_by_name_with_what_to_do():
    cubic = pf.Problem(LINE, lambda u, x: u(x) ** 3 - pf.laplacian(u)(x), conditions=[pf.Dirichlet(0.0)], name="cubic")
    with pytest.raises(NonlinearError, match=r"'equation' of 'cubic' is not linear.*Use solve\(\) for each right-hand"):
        pf.factor(cubic, 20)


def test_a_nonlinearity_that_shows_only_at_the_size_of_a_solution_is_refused_there():
    late = pf.Problem(
        LINE,
        lambda u, x: jnp.maximum(u(x) - 1e4, 0.0) - pf.laplacian(u)(x),
        conditions=[pf.Dirichlet(0.0)],
    )
    one = pf.factor(late, pf.Chebyshev(LINE, degree=15))
    assert one.solve([1.0]).converged.all()
    with pytest.raises(NonlinearError, match="'equation'"):
        one.solve([1.0, 1e6])


def test_features_must_reach_over_the_domain():
    with pytest.raises(FeaturesError, match=r"reaches outside the box of the features, .*box that contains it"):
        pf.factor(poisson(first, pf.Disk((0.5, 0), 1.0)), features("poisson"))


def test_fewer_rows_than_coefficients_are_refused():
    with pytest.raises(SolveError, match=r"Fewer rows than features: 40 points for 200 .*Use more points"):
        pf.factor(poisson(first), features("poisson"), points=20, boundary_points=20)


def table(name: str, part: str, *shape: int) -> np.ndarray:
    """Ones at the points of a term."""
    return np.ones((len(solver(name).points[part]), *shape))


def spoiled(name: str, part: str, value: float) -> np.ndarray:
    array = table(name, part, 5)
    array[3, 4] = value
    return array


REFUSED = {
    "too few values": (lambda: ("poisson", np.ones((3, 2)), None), r"source has shape \(3, 2\); expected \(n, k\)"),
    "no axis of right-hand sides": (lambda: ("poisson", table("poisson", "equation"), None), r"expected \(n, k\) = "),
    "no right-hand side": (lambda: ("poisson", table("poisson", "equation", 0), None), r"expected \(n, k\) = "),
    "no axis of equations": (
        lambda: ("elasticity", table("elasticity", "equation", 2), None),
        r"expected \(n, e, k\) = \(\d+, 2, k\): a value for each of the points solver.points\['equation'\]",
    ),
    "three equations": (lambda: ("elasticity", table("elasticity", "equation", 3, 2), None), r"\(n, e, k\) = \("),
    "complex": (lambda: ("poisson", 1j * table("poisson", "equation", 2), None), "type complex128; expected real"),
    "another k": (
        lambda: ("poisson", table("poisson", "equation", 2), [0.0] * 3),
        r"differ: 2 for 'equation', 3 for 'dirichlet'; expected the same for all",
    ),
    "one function": (lambda: ("poisson", first, None), r"source are a function; expected a list of functions \[f, g"),
    "an empty list": (lambda: ("poisson", [], None), "list for the source is empty; expected at least one"),
    "None in a list": (lambda: ("poisson", [1.0, None], None), "source 1 is None; expected a function or a number"),
    "values at the points in a list": (
        lambda: ("poisson", [first, table("poisson", "equation")], None),
        r"source 1 in the list is an array, .* Give one array \(n, k\) = \(\d+, k\): numpy.stack",
    ),
    "two values for one equation": (
        lambda: ("poisson", [first, lambda x: x], None),
        "source 1 has 2 entries at a point; expected 1",
    ),
    "a coordinate too many": (
        lambda: ("poisson", [first, lambda x: x[2]], None),
        "source 1 uses a coordinate that does not exist",
    ),
    "an error in a function": (
        lambda: ("poisson", None, [lambda x: x.nonsense]),
        "value 0 of condition 'dirichlet' cannot be evaluated at a point: .*nonsense",
    ),
    "nan in an array": (
        lambda: ("poisson", spoiled("poisson", "equation", np.nan), None),
        r"source 4 is not finite at 1 of \d+ points, for instance \[nan\] at \[.*Check the array there",
    ),
    "inf on the boundary": (
        lambda: ("poisson", None, spoiled("poisson", "dirichlet", np.inf)),
        r"value 4 of condition 'dirichlet' is not finite at 1 of \d+ points, for instance \[inf\] at",
    ),
    "nan from a function": (
        lambda: ("poisson", [first, lambda x: jnp.sqrt(x[0])], None),
        r"source 1 is not finite at \d+ of \d+ points, for instance \[nan\] at \[-0.*Check the function there",
    ),
    "which condition": (
        lambda: ("heat", None, [lambda x, t: x[0]]),
        r"boundary is list; expected a dictionary .* has 2 conditions: \['dirichlet', 'initial'\]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_data_that_cannot_be_used_are_refused_with_what_was_expected(case):
    given, message = REFUSED[case]
    name, sources, boundary = given()
    with pytest.raises(ProblemError, match=message):
        solver(name).solve(sources, boundary)


def test_a_condition_that_does_not_exist_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'initial'"):
        solver("heat").solve(boundary={"initail": 0.0})


def test_data_of_a_condition_that_the_features_impose_cannot_change():
    problem = poisson(None).replace(source=1.0, conditions=[pf.Dirichlet(0.0)])
    one = pf.factor(problem, pf.HardDirichlet(features("poisson"), SQUARE, value=0.0))
    assert list(one.points) == ["equation"]
    with pytest.raises(ProblemError, match=r"features impose 'dirichlet' by construction.*Use the inner features"):
        one.solve(boundary={"dirichlet": 1.0})


def test_a_number_that_is_not_finite_is_refused():
    solver = pf.factor(poisson(first), features("poisson"))
    with pytest.raises(ProblemError, match=r"The source is nan; expected a finite number"):
        solver.solve(float("nan"))
