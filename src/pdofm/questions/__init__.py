"""Other questions to a problem than its solution: evolution in time, eigenvalues, unknown numbers, families."""
