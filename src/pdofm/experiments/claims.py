"""What the paper claims, and what the measured rows say about it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

HOLDS, OURS_ONLY, FAILS = "holds", "holds with our settings only", "does not hold"

Row = dict[str, Any]


class Verdict(NamedTuple):
    """A claim, what was found, and the numbers behind it."""

    claim: str
    verdict: str
    numbers: str


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Verdicts on all claims for which something was measured."""
    book = _Book(rows)
    return [
        verdict
        for judge in (_tables, _orders, _orthogonality, _training, _features, _transfer)
        for verdict in judge(book)
    ]


class _Book:
    """Rows by what they are about."""

    def __init__(self, rows: Sequence[Row]):
        self.rows = {(r["experiment"], r["case"], r["method"], r["settings"], r["metric"]): r for r in rows}

    def error(self, experiment: str, case: str, method: str, settings: str) -> float | None:
        """The measured relative error; in a system the worst component's."""
        found = [
            row["measured"]
            for (e, c, m, s, metric), row in self.rows.items()
            if (e, c, m, s) == (experiment, case, method, settings) and metric.startswith("relative L2")
        ]
        return max(found) if found else None

    def value(self, experiment: str, case: str, method: str, settings: str, metric: str) -> float | None:
        row = self.rows.get((experiment, case, method, settings, metric))
        return None if row is None else row["measured"]

    def tables(self) -> list[tuple[str, str]]:
        """The problems on which methods are compared."""
        return list(
            dict.fromkeys(
                (e, c) for e, c, method, *_ in self.rows if method == "RFM" and e not in ("fit", "poisson-1d")
            )
        )


def _judge(paper: bool | None, ours: bool | None) -> str:
    if paper:
        return HOLDS
    return OURS_ONLY if ours else FAILS


def _tables(book: _Book) -> Iterator[Verdict]:
    for (experiment, case, method, settings, metric), row in book.rows.items():
        if (method, settings, metric) != ("PD-OFM", "paper", "relative L2") or row["published"] is None:
            continue
        ours = book.error(experiment, case, "PD-OFM", "ours")
        published, measured = row["published"], row["measured"]
        yield Verdict(
            f"{experiment}, {case}: PD-OFM reaches {published:.1e}",
            _judge(measured <= published, ours is not None and ours <= published),
            f"paper settings {measured:.1e}, ours {_text(ours)}",
        )


def _orders(book: _Book) -> Iterator[Verdict]:
    """The abstract: errors 2 to 3 orders of magnitude lower than those of comparable methods."""
    gains: dict[str, list[float]] = {"paper": [], "ours": []}
    details = []
    for experiment, case in book.tables():
        for settings, found in gains.items():
            errors = [book.error(experiment, case, method, settings) for method in ("PD-OFM", "RFM", "TransNet")]
            if None not in errors:
                found.append(min(errors[1:]) / errors[0])  # type: ignore[type-var, operator]
                if settings == "paper":
                    details.append(f"{case} {found[-1]:.0f}")
    if gains["paper"]:
        yield Verdict(
            "PD-OFM is 2 to 3 orders of magnitude more accurate than RFM and TransNet (the better of the two)",
            _judge(min(gains["paper"]) >= 100, bool(gains["ours"]) and min(gains["ours"]) >= 100),
            "times more accurate, paper settings: " + ", ".join(details),
        )


def _orthogonality(book: _Book) -> Iterator[Verdict]:
    better, worse = [], []
    for experiment, case in book.tables():
        with_penalty, without = (book.error(experiment, case, m, "paper") for m in ("PD-OFM", "PD-FM"))
        if with_penalty is not None and without is not None:
            (better if with_penalty < without else worse).append(f"{case} {without / with_penalty:.1f}")
    if better or worse:
        numbers = "gain by orthogonality: " + ", ".join(better + worse)
        yield Verdict("Orthogonality makes PD-OFM more accurate than PD-FM", FAILS if worse else HOLDS, numbers)


def _training(book: _Book) -> Iterator[Verdict]:
    for scheme in ("xavier", "kaiming"):
        before, after = (
            book.value("dynamics", scheme, "PD-FM", "paper", f"error {when}") for when in ("before", "after 100 steps")
        )
        if before is not None and after is not None:
            yield Verdict(
                f"Training on the residual improves least squares ({scheme})",
                HOLDS if after < before / 10 else FAILS,
                f"error {before:.1e} before, {after:.1e} after 100 steps",
            )


def _features(book: _Book) -> Iterator[Verdict]:
    names = ("effective rank", "orthogonality loss", "projection error", "20th singular value over the first")
    for name in names:
        a, b = (book.value("poisson-1d", "evolution", m, "paper", name) for m in ("PD-OFM", "PD-FM"))
        if a is not None and b is not None:
            higher = name in ("effective rank", "20th singular value over the first")
            yield Verdict(
                f"With λ = 0.1 the {name} is {'higher' if higher else 'lower'} than without",
                HOLDS if (a > b if higher else a < b) else FAILS,
                f"{a:.2g} against {b:.2g}",
            )


def _transfer(book: _Book) -> Iterator[Verdict]:
    for (experiment, case, method, settings, metric), row in book.rows.items():
        if experiment == "transfer" and method == "PD-OFM" and row["published"] is not None:
            other = book.value(experiment, case, "PD-FM", settings, metric)
            ours = book.value("transfer", "trained for a family", "variable projection", "ours", metric)
            yield Verdict(
                f"Transfer, {case}, {metric}: {row['published']:.1e}",
                _judge(row["measured"] <= row["published"], ours is not None and ours <= row["published"]),
                f"paper settings {row['measured']:.1e} (PD-FM {_text(other)}), ours {_text(ours)}",
            )


def _text(value: float | None) -> str:
    return "not run" if value is None else f"{value:.1e}"
