"""Families of problems: solved member by member, differentiated in their parameters, and reduced to few functions."""
