"""Operators, how unknowns look to user functions, jets, and symbols: what an equation is made of."""
