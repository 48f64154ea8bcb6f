"""The exceptions of pdofm. Every message says what was given, what was expected and what to do."""

import difflib
from collections.abc import Iterable


class PdofmError(Exception):
    """Base class of every error that pdofm raises on purpose."""


class DomainError(PdofmError, ValueError):
    """A domain, a part of its boundary, or a set of points is not valid."""


class ProblemError(PdofmError, ValueError):
    """A problem is not well stated: wrong shapes or names, missing conditions, or values that are not finite."""


class FeaturesError(PdofmError, ValueError):
    """Features cannot be built, or do not fit the problem."""


class SolveError(PdofmError, ValueError):
    """A solve cannot start, or cannot continue."""


class NonlinearError(SolveError):
    """A method for linear problems was applied to a nonlinear one."""


class UnknownNameError(PdofmError, LookupError):
    """A name is not known; the message offers the most similar ones."""


class ConvergenceWarning(UserWarning):
    """A solution did not reach the accuracy that was required."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """The error for a `name` that is not among the `known` ones; it offers the most similar names."""
    known = sorted(known)
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    return UnknownNameError(f"Unknown {kind} {name!r}. {hint}Known: {', '.join(known)}.")
