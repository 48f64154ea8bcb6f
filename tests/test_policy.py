"""A search for a tolerance: what it chooses, when it believes an answer, and what it says if there is none."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.adaptive.layer import find_layer
from pdofm.adaptive.refine import Refinement
from pdofm.adaptive.search import Search
from pdofm.discrete.collocate import collocate
from pdofm.errors import ConvergenceWarning, FeaturesError, NonlinearError, PdofmError, SolveError
from pdofm.features.boxes import BoxPolynomials
from pdofm.solving.stats import Attempt
from pdofm.solving.verdict import Status, Verdict, judge
from pdofm.zoo import local


def search_for(problem: str | pf.Problem, tol: float = 1e-8) -> Search:
    return Search(pf.zoo.get(problem) if isinstance(problem, str) else problem, tol, None, 0, 2000, 120.0)


@pytest.mark.parametrize("tol", [1e-4, 1e-8, 1e-10])
@pytest.mark.parametrize("name", ["helmholtz-1d", "burgers", "poisson-annulus"])
def test_a_smooth_problem_is_solved_by_polynomials_to_the_tolerance(name, tol):
    u = pf.solve(pf.zoo.get(name), tol=tol)
    assert u.converged
    assert u.space == "polynomials"
    assert u.errors().relative_l2 <= 3 * tol
    assert f"the tolerance {tol:g} is reached by polynomials" in u.reason


def test_no_answer_is_believed_that_stands_alone():
    """The first attempt may be as good as it likes: a second one must agree to half as many digits."""
    u = pf.solve(pf.zoo.get("poisson-1d"), tol=1e-10)
    assert u.attempts[0].estimate < 1e-10
    assert np.isnan(u.attempts[0].change)
    assert len(u.attempts) == 2
    assert u.attempts[1].change <= 1e-5


def test_an_answer_that_the_one_before_contradicts_is_not_believed():
    """Both attempts have the same small estimate, but the second solution is a tenth larger than the first."""

    def fooled(search: Search) -> None:
        right = search.attempt("right", "", pf.Chebyshev(search.problem.domain, 20), "clustered")
        search.solved = lambda *_: replace(right, coefficients=1.1 * right.coefficients)
        search.attempt("wrong", "", right.features, "clustered")

    with pytest.warns(ConvergenceWarning, match="no solution in another space agrees with it"):
        u = pf.solve(pf.zoo.get("poisson-1d"), tol=1e-8, policy=fooled)
    assert u.error_estimate < 1e-8
    assert not u.converged


def test_a_solution_is_resolved_if_it_has_a_digit():
    search = search_for("poisson-square")
    assert not search.resolved
    search.attempt("coarse", "", pf.Chebyshev(search.problem.domain, 6), "clustered")
    assert not search.resolved
    search.attempt("fine", "", pf.Chebyshev(search.problem.domain, 150), "clustered")
    assert search.resolved


def test_a_source_between_the_points_is_noticed():
    """A peak of width 1e-3 that the first two spaces both miss: they agree, and yet they are not believed."""
    problem = pf.Problem(
        pf.Interval(-1, 1),
        lambda u, x: -pf.laplacian(u)(x),
        source=lambda x: 1.0 + 100 * jnp.exp(-(((x[0] - 0.3217) / 1e-3) ** 2)),
        conditions=[pf.Dirichlet(0.0)],
    )

    def two_spaces(search: Search) -> None:
        for size in (6, 8):
            search.attempt("polynomials", "", pf.Chebyshev(search.problem.domain, size), "clustered")
        assert not search.resolved  # so that spaces go on growing

    with pytest.warns(ConvergenceWarning, match=r"estimated error of .*, because .*between the .*points"):
        u = pf.solve(problem, tol=1e-4, policy=two_spaces)
    assert u.attempts[1].change < 1e-10
    assert u.attempts[1].estimate > 1e-2
    assert not u.converged
    assert u.error_estimate > 0.9  # what the equation is violated by, of its right side


@pytest.mark.parametrize("steepness", [100.0, 1000.0])
def test_a_front_that_no_space_resolves_is_not_estimated_by_what_was_fitted(steepness):
    with pytest.warns(ConvergenceWarning, match=r"because .* between the collocation points"):
        u = pf.solve(local.front(steepness), tol=1e-8, max_features=200, max_seconds=2.0)
    assert u.verdict.status is pf.Status.UNRESOLVED
    assert u.error_estimate >= 1.0  # no digit is claimed


def test_a_source_that_is_rounding_noise_is_no_detail():
    """-Δ log r is zero, but computed from the exact solution it is rounding noise, which nothing resolves."""
    problem = pf.Problem(
        pf.Annulus([0, 0], 0.3, 1),
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.log(jnp.linalg.norm(x)),
    )
    u = pf.solve(problem, tol=1e-10)
    assert u.converged
    assert u.errors().relative_l2 <= 3e-10


def test_what_fails_later_does_not_lose_what_was_found():
    def risky(search: Search) -> None:
        search.attempt("fine", "", pf.Chebyshev(search.problem.domain, 20), "clustered")
        search.attempt("broken", "", pf.Chebyshev(pf.Interval(5, 6), 20))

    with pytest.warns(ConvergenceWarning, match="no solution in another space agrees with it"):
        u = pf.solve(pf.zoo.get("poisson-1d"), tol=1e-8, policy=risky)
    assert u.space == "fine"
    assert "failed: The domain" in u.attempts[1].why


def test_a_policy_that_goes_on_keeps_what_it_has_reached():
    def eager(search: Search) -> None:
        for size in (20, 30, 3):
            search.attempt(f"{size}", "", pf.Chebyshev(search.problem.domain, size), "clustered")

    u = pf.solve(pf.zoo.get("poisson-1d"), tol=1e-8, policy=eager)
    assert u.converged
    assert (u.space, len(u.attempts)) == ("30", 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 1e-4, "points": 400}, "points= belongs to features that you choose.*leave it out"),
        ({"tol": 1e-4, "sampling": "grid"}, "sampling= belongs to features"),
        ({"max_features": 100}, "max_features= belongs to a search: give tol="),
        ({"features": 20, "tol": 1e-4, "policy": print}, "policy= belongs to a search"),
        ({"tol": 1e-4, "max_features": 0}, "at least one feature.*got max_features=0"),
        ({"tol": -1.0}, "must be a positive number"),
        ({"tol": 2.0}, "between 1e-15.*and 1; got tol=2"),
    ],
    ids=str,
)
def test_arguments_that_would_be_ignored_are_refused(options, message):
    with pytest.raises(PdofmError, match=message):
        pf.solve(pf.zoo.get("poisson-1d"), **options)


def test_an_interior_layer_is_resolved_by_boxes():
    u = pf.solve(pf.zoo.get("interior-layer"), tol=1e-8)
    assert u.converged
    assert isinstance(u.features, BoxPolynomials)
    assert u.errors().relative_l2 <= 3e-8


def test_an_interior_layer_is_found_and_resolved_with_few_features():
    search = search_for("interior-layer", 1e-8)
    search.attempt("polynomials", "to start with", pf.Chebyshev(search.problem.domain, 200), "clustered")
    layer = find_layer(search)
    assert layer is not None
    assert abs(layer.center) == pytest.approx(0.37, abs=0.01)
    assert search.solved(layer.polynomials(200), "clustered").errors().relative_l2 <= 1e-12


def test_a_slanted_layer_is_found_where_it_is():
    search = search_for("slanted-layer", 1e-6)
    search.attempt("polynomials", "to start with", pf.Chebyshev(search.problem.domain, 200), "clustered")
    layer = find_layer(search)
    assert layer is not None
    sign = np.sign(layer.direction[0])
    np.testing.assert_allclose(sign * layer.direction, [0.8, 0.6], atol=0.01)
    assert sign * layer.center == pytest.approx(0.65, abs=0.01)
    assert 0.005 < layer.width < 0.08
    fine = search.solved(layer.polynomials(600))
    assert fine.errors().relative_l2 < 1e-5
    assert 0.1 < fine.error_estimate / fine.errors().relative_l2 < 30


def test_where_there_is_no_layer_none_is_found():
    search = search_for("poisson-square")
    search.attempt("polynomials", "to start with", pf.Chebyshev(search.problem.domain, 60), "clustered")
    assert find_layer(search) is None


def test_a_corner_is_found_without_a_word_about_it():
    u = pf.solve(pf.zoo.get("poisson-corner"), tol=1e-6)
    assert u.converged
    assert u.space == "polynomials and singular functions"
    assert u.errors().relative_l2 <= 1e-6
    assert u.stats.features <= 2000


def test_a_wave_that_few_polynomials_miss_is_solved():
    """sin 500x: polynomials of growing degree do not pay until there are more than two of them per wave."""
    problem = pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.sin(500 * x[0]),
    )
    u = pf.solve(problem, tol=1e-8)
    assert u.converged
    assert u.errors().relative_l2 <= 3e-8


def test_the_budget_limits_boxes_too():
    """|x - 0.3|^2.5 needs boxes that are split towards 0.3, more than a small budget allows."""
    problem = pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.abs(x[0] - 0.3) ** 2.5,
    )
    with pytest.warns(ConvergenceWarning, match=r"not reached with max_features=60 "):
        u = pf.solve(problem, tol=1e-13, max_features=60)
    assert max(attempt.features for attempt in u.attempts) <= 60
    assert any("boxes" in attempt.space for attempt in u.attempts)


class TestRefinement:
    """A partition of unity that is split where the residual is large."""

    LAYERS = pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.tanh((x[0] - 0.3) / 0.005) + jnp.tanh((x[0] - 0.72) / 0.01),
    )

    @staticmethod
    def policy(search: Search) -> None:
        search.attempt("polynomials", "a residual to start with", pf.Chebyshev(search.problem.domain, 100), "clustered")
        search.grow("partition", "", Refinement(search).features, until_resolved=True)

    def test_two_layers_are_resolved_where_they_are(self):
        u = pf.solve(self.LAYERS, tol=1e-8, policy=self.policy)
        assert u.converged
        assert u.errors().relative_l2 <= 3e-8
        partition = u.features
        assert isinstance(partition, pf.PartitionOfUnity)
        centers, radii = np.asarray(partition.centers)[:, 0], np.asarray(partition.radii)[:, 0]
        distance = np.minimum(np.abs(centers - 0.3), np.abs(centers - 0.72))
        assert distance[radii == radii.min()].max() < 0.05
        assert radii[distance > 0.15].min() >= 4 * radii.min()
        points = collocate(self.LAYERS, 2000, 2, features=partition)[0].points[:, 0]
        near = np.minimum(np.abs(points - 0.3), np.abs(points - 0.72)) < 0.05
        assert near.mean() > 0.5  # of a fifth of the interval

    @pytest.mark.parametrize("name", ["poisson-square", "heat", "poisson-lshape"])
    def test_boxes_cover_the_domain_once(self, name):
        search = search_for(name)
        domain = search.problem.domain
        search.attempt("polynomials", "", pf.Chebyshev(domain, 20), "clustered")
        refinement = Refinement(search)
        for size in (600, 1000):
            partition = refinement.features(size)
            assert partition.size <= size
            assert np.prod(2 * refinement.radii, axis=1).sum() == pytest.approx(np.prod(domain.upper - domain.lower))
        points = domain.sample(500)
        inside = np.abs(points[:, None] - refinement.centers) <= refinement.radii
        assert (inside.all(axis=2).sum(axis=1) == 1).all()

    def test_faces_keep_their_points_whatever_rounding_does(self):
        """0.7 is no dyadic number: centers plus radii of the last boxes miss it by a rounding error."""
        box = pf.Box([0, 0], [0.7, 1])
        problem = pf.Problem(
            box,
            lambda u, x: -pf.laplacian(u)(x),
            conditions=[pf.Dirichlet()],
            exact=lambda x: jnp.exp(30 * (x[0] - 0.7)),
        )
        search = search_for(problem)
        search.attempt("polynomials", "", pf.Chebyshev(box, 20), "clustered")
        points = collocate(problem, 400, 400, features=Refinement(search).features(1000))[1].points
        for axis, side in ((0, 0.0), (0, 0.7), (1, 0.0), (1, 1.0)):
            assert np.count_nonzero(points[:, axis] == side) > 20

    @pytest.mark.parametrize("across", [0, 1])
    def test_boxes_are_cut_across_the_detail(self, across):
        """A source in a strip: square boxes are all cut along it, and those in it are the narrowest."""
        square = pf.Box([0, 0], [1, 1])
        source = lambda x: 1e3 * jnp.exp(-(((x[across] - 0.9) / 0.03) ** 2))
        problem = pf.Problem(square, lambda u, x: -pf.laplacian(u)(x), source, [pf.Dirichlet(0.0)])
        search = search_for(problem)
        search.attempt("polynomials", "", pf.Chebyshev(square, 3), "clustered")
        refinement = Refinement(search)
        refinement.features(8 * pf.Chebyshev(square, degree=refinement.degree).size)
        assert (refinement.radii[:, 1 - across] == 0.25).all()
        widths, centers = refinement.radii[:, across], refinement.centers[:, across]
        assert sorted(widths) == [0.0625] * 4 + [0.125] * 2 + [0.25] * 2
        assert (np.abs(centers - 0.875)[widths == 0.0625] < 0.1).all()


@pytest.mark.filterwarnings("ignore::pdofm.errors.ConvergenceWarning")
class TestNetworks:
    """What is tried when nothing else has converged: here polynomials, of which the budget allows too few."""

    RUNGE = pf.Problem(
        pf.Interval(-1, 1),
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: 1 / (1 + 25 * x[0] ** 2),
    )

    def run(self, max_features: int) -> tuple[pf.Solution, list[Attempt]]:
        """The solution, and the attempts with anything but polynomials, global or in boxes."""
        u = pf.solve(self.RUNGE, tol=1e-15, max_features=max_features)
        return u, [attempt for attempt in u.attempts if not attempt.space.startswith("polynomials")]

    def test_the_better_family_grows_and_its_scale_is_varied(self):
        _, (first, second, grown, *scaled, trained) = self.run(60)
        assert (first.space, second.space) == ("network", "random features")
        better = min(first, second, key=lambda attempt: attempt.estimate)
        assert {grown.space, *(attempt.space for attempt in scaled)} == {better.space}
        assert grown.features > better.features
        assert scaled[0].why == "the same at a scale of 1.4"
        assert min(attempt.estimate for attempt in scaled) < grown.estimate
        assert trained.space == "network, 60 steps trained"

    @pytest.mark.parametrize("pays", [True, False])
    def test_a_wide_network_is_trained_only_if_a_small_one_gains(self, pays, monkeypatch):
        """Training is played: it returns features that contain the solution, which is then found, or those given."""

        def played(problem, features, **options):
            learned = pf.Concatenate(features, pf.Functions(problem.domain, [problem.exact])) if pays else features
            return pf.Trained(learned, np.zeros((learned.size, 1)), {}, Verdict(Status.OUT_OF_STEPS, "played"))

        monkeypatch.setattr("pdofm.adaptive.networks.pretrain", played)
        monkeypatch.setattr("pdofm.adaptive.schedule.FIRST_SIZES", {1: 6, 3: 6})
        u, attempts = self.run(30)
        trained = [attempt.space for attempt in attempts if attempt.space.endswith("trained")]
        assert trained == ["network, 60 steps trained", *["network, 200 steps trained"] * pays]
        assert u.space.endswith("trained") == u.converged == pays

    def test_a_family_that_fails_is_left_out(self, monkeypatch):
        def broken(*args, **options):
            return pf.Functions(self.RUNGE.domain, [lambda x: jnp.log(x[0] - 10)])

        monkeypatch.setattr("pdofm.adaptive.networks.RandomFeatures", broken)
        monkeypatch.setattr("pdofm.adaptive.schedule.FIRST_SIZES", {1: 16, 3: 16})
        _, (first, second, *others) = self.run(40)
        assert "failed: The left side of 'dirichlet' is not finite" in second.why
        assert {attempt.space for attempt in (first, *others)} == {"network", "network, 60 steps trained"}


def test_a_periodic_problem_is_solved_by_trigonometric_functions():
    problem = pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: -pf.laplacian(u)(x) + u(x),
        conditions=[pf.Periodic(axis=0)],
        exact=lambda x: jnp.exp(jnp.sin(2 * jnp.pi * x[0])),
    )
    u = pf.solve(problem, tol=1e-10)
    assert u.space == "Fourier"
    assert u.errors().relative_l2 <= 1e-10
    assert "periodic" not in u.stats.residuals  # it takes no rows
    mixed = pf.Concatenate(pf.Fourier(problem.domain, 9), pf.Fourier(pf.Interval(0, 2), 9))
    assert "periodic" in pf.factor(problem, mixed).points  # not all of these are periodic on the domain
    wider = pf.Fourier(pf.Interval(-1, 2), 31)
    with pytest.raises(FeaturesError, match=r"periodic on the box \[-1.0\] to \[2.0\].*Make them on this domain"):
        pf.solve(problem, wider)


def test_a_tolerance_that_is_not_reached_is_reported_with_the_budget():
    with pytest.warns(ConvergenceWarning, match=r"not reached with max_features=40"):
        u = pf.solve(pf.zoo.get("burgers"), tol=1e-8, max_features=40)
    assert not u.converged
    assert max(a.features for a in u.attempts) <= 40
    with pytest.warns(ConvergenceWarning, match=r"max_seconds=0"):
        assert len(pf.solve(pf.zoo.get("helmholtz-1d"), tol=1e-8, max_seconds=0.0).attempts) == 1


def test_features_at_hand_are_tried_first_and_believed_if_another_solution_agrees():
    problem = pf.zoo.get("poisson-1d")
    features = pf.NetworkFeatures(problem.domain, 40)
    u = pf.solve(problem, tol=1e-8, candidates=[features])
    assert u.converged
    assert u.attempts[0].space == "features at hand"
    assert u.attempts[0].features == 40
    assert u.attempts[1].space == "polynomials"
    assert len(u.attempts) == 2
    assert u.errors().relative_l2 < 3e-8


def test_a_solution_that_stood_alone_is_confirmed_by_a_worse_one():
    def fine_then_coarse(search: Search) -> None:
        for size in (30, 8):
            search.attempt(f"{size}", "", pf.Chebyshev(search.problem.domain, size), "clustered")

    problem = pf.Problem(
        pf.Interval(-1, 1),
        lambda u, x: -pf.laplacian(u)(x),
        conditions=[pf.Dirichlet()],
        exact=lambda x: jnp.exp(x[0]),
    )
    u = pf.solve(problem, tol=1e-10, policy=fine_then_coarse)
    assert u.space == "30"
    assert u.attempts[1].estimate > 1e-10
    assert u.converged


def test_equal_features_at_hand_do_not_confirm_each_other():
    problem = pf.zoo.get("poisson-1d")
    features = pf.NetworkFeatures(problem.domain, 40)
    u = pf.solve(problem, tol=1e-8, candidates=[features, pf.NetworkFeatures(problem.domain, 40)])
    assert [a.space for a in u.attempts] == ["features at hand", "polynomials"]


def test_an_iteration_that_failed_confirms_nothing(monkeypatch):
    """It returns its start, which is the solution that it would confirm."""
    problem = pf.zoo.get("burgers")
    search = search_for(problem, 1e-6)
    search.attempt("alone", "", pf.Chebyshev(problem.domain, 100), "clustered")
    assert search.best is not None
    assert search.best.converged
    evidence = replace(search.best.verdict.evidence, iteration=Verdict(Status.STUCK, "no step makes progress"))
    stuck = replace(search.best, verdict=judge(evidence))
    monkeypatch.setattr(search, "solved", lambda *_: stuck)
    search.attempt("stuck", "", stuck.features, "clustered")
    assert not search.reached


def test_a_nonlinearity_that_shows_at_another_size_is_noticed_later():
    """Linear below 5, where the first source keeps it; the second one does not."""
    problem = pf.Problem(
        pf.Interval(0, 1),
        lambda u, x: -pf.laplacian(u)(x) + jnp.maximum(u(x) - 5.0, 0.0) ** 2,
        source=1.0,
        conditions=[pf.Dirichlet(0.0)],
    )
    features = pf.Chebyshev(problem.domain, 20)
    assert pf.solve(problem, features).stats.steps == []  # it takes the problem to be linear
    solver = pf.factor(problem, features)
    with pytest.raises(NonlinearError, match="'equation'"):
        solver.solve([lambda x: 1000.0])


def test_newton_starts_from_the_solution_before():
    """Each search step of a nonlinear problem needs fewer iterations than from zero."""
    problem = pf.zoo.get("burgers")
    search = search_for(problem)
    first = search.attempt("coarse", "", pf.Chebyshev(problem.domain, 60), "clustered")
    second = search.attempt("fine", "", pf.Chebyshev(problem.domain, 100), "clustered")
    assert first is not None
    assert second is not None
    alone = pf.solve(problem, pf.Chebyshev(problem.domain, 100), sampling="clustered")
    assert len(second.stats.steps) < len(alone.stats.steps)
    assert second.errors().relative_l2 < 10 * max(alone.errors().relative_l2, 1e-12)


def test_the_attempts_are_drawn(tmp_path):
    u = pf.solve(pf.zoo.get("burgers"), tol=1e-6)
    figure = u.plot_search(tmp_path / "search.png")
    (panel,) = figure.axes
    (line,) = panel.lines
    np.testing.assert_array_equal(line.get_xdata(), [a.features for a in u.attempts])
    np.testing.assert_array_equal(line.get_ydata(), [a.estimate for a in u.attempts])
    assert (tmp_path / "search.png").stat().st_size > 1000
    with pytest.raises(SolveError, match="was not searched for"):
        pf.solve(pf.zoo.get("poisson-1d")).plot_search()


@pytest.mark.parametrize("tol", [-1.0, 0.0, float("nan")])
def test_a_tolerance_that_is_not_a_positive_number_is_refused(tol):
    with pytest.raises(SolveError, match="must be a positive number"):
        pf.solve(pf.zoo.get("poisson-1d"), tol=tol)


def test_a_policy_of_ones_own_decides():
    def two_networks(search: Search) -> None:
        for size in (30, 40):
            search.attempt("mine", "because I say so", pf.NetworkFeatures(search.problem.domain, size))

    u = pf.solve(pf.zoo.get("poisson-1d"), tol=1e-6, policy=two_networks)
    assert [(a.space, a.features) for a in u.attempts] == [("mine", 30), ("mine", 40)]
    assert u.converged
    assert "because I say so" in u.search
    with pytest.raises(SolveError, match="tried no space"):
        pf.solve(pf.zoo.get("poisson-1d"), tol=1e-6, policy=lambda search: None)


class TestStretchedPolynomials:
    """Polynomials in arcsinh((n·x - c) / w) and along the layer."""

    SQUARE = pf.Box([0, 0], [1, 1])

    def test_they_contain_the_coordinates_that_they_are_made_of(self):
        features = pf.StretchedPolynomials(self.SQUARE, degree=4, direction=[3, 4], center=0.7, width=0.1)
        points = self.SQUARE.sample(200)
        U = np.stack([np.asarray(features(jnp.asarray(x))) for x in points])
        across, along = points @ [0.6, 0.8], points @ [-0.8, 0.6]
        stretched = np.arcsinh((across - 0.7) / 0.1)
        for function in (stretched, stretched**4, along, along**2, stretched**2 * along):
            c = np.linalg.lstsq(U, function, rcond=None)[0]
            np.testing.assert_allclose(U @ c, function, atol=1e-12)

    def test_sizes_are_counted(self):
        """i + 2j ≤ 4: five, three and one."""
        features = pf.StretchedPolynomials(self.SQUARE, 9, direction=[1, 0], center=0.5, width=0.1)
        assert (features.degree, features.size) == (4, 9)

    def test_points_gather_in_the_layer(self):
        problem = pf.zoo.get("slanted-layer")
        features = pf.StretchedPolynomials(problem.domain, 50, direction=[0.8, 0.6], center=0.65, width=0.02)
        points = pf.factor(problem, features).points["equation"]
        inside = np.mean(np.abs(points @ [0.8, 0.6] - 0.65) < 0.02)
        anywhere = problem.domain.sample(4000)
        assert inside > 3 * np.mean(np.abs(anywhere @ [0.8, 0.6] - 0.65) < 0.02)

    def test_what_is_not_a_layer_is_refused(self):
        with pytest.raises(FeaturesError, match=r"a vector of 2 finite numbers.*got \[1.0, 0.0, 0.0\]"):
            pf.StretchedPolynomials(self.SQUARE, 50, direction=[1.0, 0.0, 0.0], center=0.5, width=0.1)
        with pytest.raises(FeaturesError, match=r"width must be positive.*got width=0.0"):
            pf.StretchedPolynomials(self.SQUARE, 50, direction=[1, 0], center=0.5, width=0.0)

    def test_a_layer_however_thin_gets_its_points(self):
        """Half of them even in arcsinh(x / w): of 4 x 64 points on (-1, 1) that many lie within one width."""
        problem = pf.zoo.get("poisson-1d")
        for width in (1e-2, 1e-4):
            features = pf.StretchedPolynomials(problem.domain, 64, direction=[1], center=0.0, width=width)
            points = pf.factor(problem, features).points["equation"]
            expected = 0.5 * len(points) * np.arcsinh(1) / np.arcsinh(1 / width)
            assert np.sum(np.abs(points) < width) == pytest.approx(expected, rel=0.6)

    def test_wrapped_they_keep_their_points(self):
        inner = pf.StretchedPolynomials(self.SQUARE, 50, direction=[1, 0], center=0.5, width=0.01)
        for features in (pf.HardDirichlet(inner, self.SQUARE), pf.Concatenate(inner, pf.Chebyshev(self.SQUARE, 10))):
            assert features.concentration == inner.concentration > 1
            near, far = features.density(np.array([[0.5, 0.5], [0.1, 0.5]]))
            assert near > 1.5 * far

    def test_they_are_saved(self, tmp_path):
        features = pf.StretchedPolynomials(self.SQUARE, 50, direction=[1, 2], center=0.5, width=0.1)
        pf.save(tmp_path / "layer.safetensors", features)
        x = jnp.array([0.3, 0.2])
        np.testing.assert_array_equal(pf.load(tmp_path / "layer.safetensors")(x), features(x))
