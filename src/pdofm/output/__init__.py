"""Figures of solutions, sections of domains, and files for other programs."""
