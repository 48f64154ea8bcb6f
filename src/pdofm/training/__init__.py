"""Features that are trained for a problem."""
