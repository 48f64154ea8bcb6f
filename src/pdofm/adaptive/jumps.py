"""Points of a plane boundary at which prescribed values jump, such as the corners of a cavity under a moving lid."""

import numpy as np

from pdofm._types import Vector
from pdofm.domain import Part
from pdofm.problem.conditions import Value
from pdofm.problem.data import values_at
from pdofm.problem.problem import Problem

PLACES = np.array([0.0, 1e-6, 0.2, 0.4, 0.6, 0.8, 1.0 - 1e-6, 1.0])
"""Where on a boundary curve its data are looked at, as parts of its length: for what they are next to its ends, and how
large they are."""

JUMP = 1e-3
"""Data jump if they differ by more than this part of the largest of them."""


def jumps_of_data(problem: Problem, near: float) -> list[Vector]:
    """The ends of boundary curves at which two conditions of one kind prescribe different values; points that are
    `near` each other are one."""
    ends: list[tuple[Vector, object, Vector]] = []
    size = 0.0
    for term in problem.terms[1:]:
        if not (isinstance(term.on, Part) and isinstance(term.lhs, Value)) or term.rhs is None:
            continue
        for piece in term.on.pieces:
            if piece.dim != 1 or not piece.ends[0]:
                continue
            points, normals = piece.chart(PLACES[:, None])
            values = values_at(problem.right_side(term), problem.layout, points, normals)
            ends += [(points[0], term.lhs, values[1]), (points[-1], term.lhs, values[-2])]
            size = max(size, float(np.abs(values).max()))
    found: list[Vector] = []
    for i, (point, kind, value) in enumerate(ends):
        if any(np.linalg.norm(point - other) <= near for other in found):
            continue
        others = (v for other, k, v in ends[:i] if k == kind and np.linalg.norm(point - other) <= near)
        if any(np.max(np.abs(value - other)) > JUMP * size for other in others):
            found.append(point)
    return found
