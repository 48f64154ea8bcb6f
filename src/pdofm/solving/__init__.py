"""Methods that solve the system, the estimate of the error, the solution, and problems that are factored once."""
