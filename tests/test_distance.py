"""Relative distances of functions with several components."""

import math

import numpy as np

from pdofm.numerics.distance import VANISHING, distance, relative_sizes

ONES = np.ones((4, 2))


def test_the_component_that_differs_most_counts():
    assert math.isclose(distance(ONES * [1.1, 1.01], ONES), 0.1)


def test_what_is_not_a_number_is_never_near():
    broken = ONES * [1.0, math.nan]
    assert math.isnan(distance(ONES, broken))
    assert math.isnan(distance(broken, ONES))


def test_a_component_that_vanishes_is_measured_against_all():
    whole = ONES * [1.0, 0.1 * VANISHING]
    assert relative_sizes(0.5 * whole, whole)[1] < VANISHING
    assert relative_sizes(0.5 * whole, whole, vanishing=0.0)[1] == 0.5
    assert relative_sizes(ONES, ONES * [1.0, 0.0], vanishing=0.0)[1] == 1.0


def test_nothing_is_near_nothing_only():
    zero = np.zeros((4, 2))
    assert distance(zero, zero) == 0.0
    assert distance(ONES, zero) == math.inf
