"""The exceptions of pdofm. Every message says what was given, what was expected and what to do."""

import difflib
from collections.abc import Iterable


class PdofmError(Exception):
    """Base class of every error that pdofm raises on purpose."""


class DomainError(PdofmError, ValueError):
    """A domain, a part of one, or a point set that cannot be used."""


class ProblemError(PdofmError, ValueError):
    """A problem that is not well stated: shapes, names, missing conditions, values that are not finite."""


class FeaturesError(PdofmError, ValueError):
    """Features that cannot be built, or that do not fit the problem."""


class SolveError(PdofmError, ValueError):
    """A solve that cannot start or cannot go on."""


class NonlinearError(SolveError):
    """A linear method on a problem that is not linear."""


class UnknownNameError(PdofmError, LookupError):
    """A name that is not in a registry; the nearest names are offered."""


class ConvergenceWarning(UserWarning):
    """An answer that did not reach what was asked of it."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """The error for a `name` that is not among the `known` ones, with the nearest names."""
    known = sorted(known)
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    return UnknownNameError(f"Unknown {kind} {name!r}. {hint}Known: {', '.join(known)}.")
