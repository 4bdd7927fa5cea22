"""What all fits of a problem came to, as Markdown."""

from __future__ import annotations

import statistics
from collections import Counter

from experiments.strategies.known import PROVED
from experiments.strategies.measures import NATS, RETURNS, SLOW, Measure
from experiments.strategies.problems import GROUPS
from experiments.strategies.settings import named

LOSSES = ("one group each", "one killed", "two processes")  # conditions besides numbers of workers


def table(record: dict) -> str:
    """Medians over seeds; losses are below the score of one worker alone, serial SVI.

    Parameters
    ----------
    record : dict
        What `__main__` writes: ``unit``, ``workers``, ``serial``, ``rows``, and the length and the
        rate by the names of :mod:`experiments.strategies.measures`.
    """
    measure, workers, serial = measure_of(record), record["workers"], record["serial"]
    scores = [found["score"] for found in serial]
    base, middle = statistics.median(scores), middle_of(record)
    serial_seconds = _reached(serial, base, measure)
    conditions = [*(f"n = {n}" for n in workers), *LOSSES]
    text = measure.text.format(
        base=base, least=min(scores), most=max(scores), seeds=len(serial), unit=record["unit"],
        rate=record[measure.rate], length=record[measure.length], groups=GROUPS, middle=middle,
        tolerance=measure.factor * measure.tolerance, slow=SLOW, last=workers[-1],
    )  # fmt: skip
    lines = [
        f"{text} Revisions: {_revisions(record)}.\n",
        f"| strategy | settings | {' | '.join(conditions)} | sooner | one slow | bytes an item "
        "| outside | proved |",
        "| --- | --- |" + " ---: |" * (len(conditions) + 4) + " --- |",
    ]
    for strategy, found in sorted(record["rows"].items()):
        rows = found["seeds"]
        cells = [
            *(_loss(rows, name, base, measure) for name in conditions),
            _sooner(rows, middle, base, serial_seconds, measure), _slow(rows, middle),
            _number(median(rows, f"n = {workers[-1]}", "bytes")),
            "does not apply" if "outside" in measure.absent else _outside(rows),
        ]  # fmt: skip
        # Without a number, what became of the fits that it is of.
        cells = [cell or _failed(rows, middle) or "-" for cell in cells]
        lines.append(
            f"| {strategy} | {named(found['settings'])} | {' | '.join(cells)} "
            f"| {PROVED[strategy]} |"
        )
    return "\n".join([*lines, *_reasons(record)]) + "\n"


def measure_of(record: dict) -> Measure:
    """How the table of a record speaks."""
    return RETURNS if RETURNS.length in record else NATS


def middle_of(record: dict) -> str:
    """The condition of the middle number of workers, one of whom may be slow."""
    return f"n = {record['workers'][len(record['workers']) // 2]}"


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


def _loss(rows, name, base, measure) -> str | None:
    if name in measure.absent:
        return "does not apply"
    score = median(rows, name, "score")
    if score is None:
        return _failed(rows, name)
    return f"{measure.factor * (base - score):+.1f}"


def _reached(fits, base, measure):
    """Median seconds until the score of serial SVI, less the tolerance; None: most never do."""
    times = [
        next((s for s, score in found["scores"] if score >= base - measure.tolerance), None)
        for found in fits
        if "scores" in found
    ]
    there = [seconds for seconds in times if seconds is not None]
    return statistics.median(there) if 2 * len(there) > len(fits) else None


def _sooner(rows, name, base, serial_seconds, measure) -> str | None:
    if median(rows, name, "score") is None:
        return None
    seconds = _reached([row[name] for row in rows], base, measure)
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
