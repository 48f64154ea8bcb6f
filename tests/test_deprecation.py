"""Old names of arguments work for one version, and say what they are called now."""

import pytest

import pdofm as pf
from pdofm.deprecation import renamed


@renamed(old="new")
def double(new: int = 1) -> int:
    return 2 * new


def test_an_old_name_works_and_is_named():
    with pytest.warns(DeprecationWarning, match=r"old= of double\(\) is now called new="):
        assert double(old=3) == 6


def test_a_new_name_does_not_warn():
    assert double(new=3) == double(3) == 6


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match=r"both old= and new="):
        double(old=1, new=2)


@pytest.mark.parametrize("method", [pf.Newton, pf.Picard])
def test_the_tolerance_of_an_iteration_had_another_name(method):
    with pytest.warns(DeprecationWarning, match=r"rtol= of .* is now called tol="):
        assert method(rtol=1e-7) == method(tol=1e-7)


def test_least_squares_of_factor_were_given_directly():
    problem = pf.zoo.get("poisson-1d")
    with pytest.warns(DeprecationWarning, match=r"lstsq= of factor\(\) is now method=Linear"):
        old = pf.factor(problem, 20, lstsq=pf.SVD())
    new = pf.factor(problem, 20, method=pf.Linear(lstsq=pf.SVD()))
    assert type(old.factorization) is type(new.factorization)
    assert old.factorization.condition == new.factorization.condition


def test_attributes_with_new_names_answer_to_the_old_ones():
    u = pf.solve(pf.zoo.get("poisson-1d"), 20)
    with pytest.warns(DeprecationWarning, match=r"\.held_out of Stats is now called \.held_out_residual"):
        assert u.stats.held_out == u.stats.held_out_residual


def test_the_size_of_a_network_had_another_name():
    with pytest.warns(DeprecationWarning, match=r"width= of NetworkFeatures\(\) is now called size=") as caught:
        assert pf.NetworkFeatures(pf.Interval(0, 1), width=7).size == 7
    assert caught[0].filename == __file__  # the line to change, not one of the machinery that makes the object


def test_the_way_to_place_points_had_another_name():
    square = pf.Box([0, 0], [1, 1])
    for place in (square.sample, square.boundary.sample):
        with pytest.warns(DeprecationWarning, match=r"kind= of .*\.sample\(\) is now called sampling="):
            place(9, kind="grid")
