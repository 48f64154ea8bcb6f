"""Numerical tools that know nothing of equations: least squares, points in the unit cube, batches of points."""
