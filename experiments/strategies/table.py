"""What all fits of a problem came to, as Markdown."""

from __future__ import annotations

import statistics
from collections import Counter

from experiments.strategies.known import PROVED
from experiments.strategies.problems import GROUPS
from experiments.strategies.settings import named
from experiments.strategies.trial import SLOW

TOLERANCE = 0.02  # nats: what "as good as serial SVI" allows
LOSSES = ("one group each", "one killed", "two processes")  # conditions besides numbers of workers


def table(record: dict) -> str:
    """Medians over seeds; losses are in hundredths of a nat below the score of serial SVI.

    Parameters
    ----------
    record : dict
        What `__main__` writes: ``unit``, ``workers``, ``offset``, ``serial`` and ``rows``.
    """
    workers, unit, serial = record["workers"], record["unit"], record["serial"]
    base, middle = statistics.median(found["score"] for found in serial), middle_of(record)
    serial_seconds = _reached(serial, base)
    conditions = [*(f"n = {n}" for n in workers), *LOSSES]
    lines = [
        f"Serial SVI: {base:.4f} nats per {unit}, between {_range(serial)} over {len(serial)} "
        f"seeds, with an offset of the rates of {record['offset']:g}; {record['passes']} passes. "
        f"What the others lose, in hundredths of a nat per {unit} (medians over seeds; less is "
        "better, below 0 is better than serial): with n workers that draw from all items, with "
        f"{GROUPS} workers that have one of {GROUPS} groups each, with {middle} of which one is "
        "killed at a random moment (all these simulated), and with two workers that are real "
        f"processes. By how much {middle} is sooner than serial SVI at "
        f"{100 * TOLERANCE:g} hundredths below its last score, and how much longer it takes if one "
        f"worker is {SLOW:g} times slower (simulated seconds); bytes an item, sent and received, "
        f"at n = {workers[-1]}; fits in which parameters were outside of their domain at an "
        f"evaluation, or that ended for such a reason; what is proved. Revisions: "
        f"{_revisions(record)}.\n",
        f"| strategy | settings | {' | '.join(conditions)} | sooner | one slow | bytes an item "
        "| outside | proved |",
        "| --- | --- |" + " ---: |" * (len(conditions) + 4) + " --- |",
    ]
    for strategy, found in sorted(record["rows"].items()):
        rows = found["seeds"]
        cells = [
            *(_loss(rows, name, base) for name in conditions),
            _sooner(rows, middle, base, serial_seconds), _slow(rows, middle),
            _number(median(rows, f"n = {workers[-1]}", "bytes")), _outside(rows),
        ]  # fmt: skip
        # Without a number, what became of the fits that it is of.
        cells = [cell or _failed(rows, middle) or "-" for cell in cells]
        lines.append(
            f"| {strategy} | {named(found['settings'])} | {' | '.join(cells)} "
            f"| {PROVED[strategy]} |"
        )
    return "\n".join([*lines, *_reasons(record)]) + "\n"


def middle_of(record: dict) -> str:
    """The condition of the middle number of workers, one of whom may be slow."""
    return f"n = {record['workers'][len(record['workers']) // 2]}"


def _range(serial) -> str:
    scores = [found["score"] for found in serial]
    return f"{min(scores):.4f} and {max(scores):.4f}"


def _revisions(record) -> str:
    rows = record["rows"].values()
    marks = [record["git"], *(row["git"] for row in rows)]
    marks += [mark["git"] for row in rows for mark in row.get("added", {}).values()]
    return ", ".join(sorted({mark["revision"][:7] for mark in marks}))


def _reasons(record) -> list[str]:
    """Why fits failed, and how many of each condition."""
    lines = []
    for strategy, found in record["rows"].items():
        reasons = Counter(
            (name, row[name]["failed"].splitlines()[0])
            for row in found["seeds"] for name in row if "failed" in row[name]
        )  # fmt: skip
        lines += [
            f"* `{strategy}`, {name}: {n} of {len(found['seeds'])} fits failed, {reason}"
            for (name, reason), n in reasons.items()
        ]
    return ["", "Fits that failed:", "", *lines] if lines else []


def median(rows: list[dict], name: str, key: str) -> float | None:
    """The median over seeds of one value of one condition; None: most have none."""
    values = [row[name][key] for row in rows if key in row.get(name, {})]
    return statistics.median(values) if 2 * len(values) > len(rows) else None


def _failed(rows, name) -> str | None:
    """How the first fit of a condition that failed did so, in a word."""
    failed = (row[name]["failed"] for row in rows if "failed" in row.get(name, {}))
    return next((reason.split(":")[0] for reason in failed), None)


def _number(value) -> str | None:
    return None if value is None else f"{value:,.0f}"


def _loss(rows, name, base) -> str | None:
    score = median(rows, name, "score")
    if score is None:
        return _failed(rows, name)
    return f"{100 * (base - score):+.1f}"


def _reached(fits, base):
    """Median seconds until the score of serial SVI, less the tolerance; None: most never do."""
    times = [
        next((seconds for seconds, score in found["scores"] if score >= base - TOLERANCE), None)
        for found in fits
        if "scores" in found
    ]
    there = [seconds for seconds in times if seconds is not None]
    return statistics.median(there) if 2 * len(there) > len(fits) else None


def _sooner(rows, name, base, serial_seconds) -> str | None:
    if median(rows, name, "score") is None:
        return None
    seconds = _reached([row[name] for row in rows], base)
    return "never" if not seconds or not serial_seconds else f"{serial_seconds / seconds:.1f} times"


def _slow(rows, middle) -> str | None:
    slow, none = median(rows, "one slow", "seconds"), median(rows, middle, "seconds")
    return None if slow is None or none is None else f"{slow / none:.1f} times"


def _outside(rows) -> str | None:
    fits = [fit for row in rows for fit in row.values() if "outside" in fit or "failed" in fit]
    fits = [fit for fit in fits if not fit.get("failed", "").startswith("Refused")]
    if not fits:  # nobody looked
        return None
    return f"{sum(fit.get('outside', 1.0) > 0 for fit in fits)} of {len(fits)}"
