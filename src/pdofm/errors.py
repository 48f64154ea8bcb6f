"""The exceptions of pdofm. Every message says what was given, what was expected and what to do."""

import difflib
from collections.abc import Iterable, Mapping


class PdofmError(Exception):
    """Base class of every error that pdofm raises on purpose."""


class ArgumentError(PdofmError, TypeError):
    """A function was called with arguments that it does not have."""


class DomainError(PdofmError, ValueError):
    """A domain, a part of its boundary, or a set of points is not valid."""


class ProblemError(PdofmError, ValueError):
    """A problem is not well stated: wrong shapes or names, missing conditions, or values that are not finite."""


class FeaturesError(PdofmError, ValueError):
    """Features cannot be built, or do not fit the problem."""


class FileError(FeaturesError):
    """A file cannot be read or written. It counts among the errors of features, with which these were reported."""


class SolveError(PdofmError, ValueError):
    """A solve cannot start, or cannot continue."""


class NonlinearError(SolveError):
    """A method for linear problems was applied to a nonlinear one."""


class ClusterError(PdofmError, RuntimeError):
    """Something cannot be sent to the workers of a cluster, or the cluster is lost."""


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


def misspelled(owner: str, name: str, known: Iterable[str], other_words: Mapping[str, str]) -> str:
    """The message for an attribute that `owner` does not have. It offers what `other_words` calls it, or the most
    similar of the `known` names."""
    by_lower = {each.lower(): each for each in known}
    exact = by_lower | {word.lower(): each for word, each in other_words.items()}
    lower = name.lower()
    near = [exact[lower]] if lower in exact else difflib.get_close_matches(lower, by_lower, n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(by_lower.get(each.lower(), each) for each in near)}?" if near else ""
    return f"{owner} has no attribute {name!r}.{hint}"
