"""Numerical tools that are independent of equations: least squares, points in the unit cube, batches of points."""
