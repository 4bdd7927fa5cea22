"""What all fits of a problem came to, as Markdown."""

from __future__ import annotations

import statistics

from experiments.strategies.problems import GROUPS
from experiments.strategies.settings import named
from experiments.strategies.trial import SLOW

TOLERANCE = 0.02  # nats: what "as good as serial SVI" allows


def table(record: dict) -> str:
    """Medians over seeds; losses are in hundredths of a nat below the score of serial SVI.

    Parameters
    ----------
    record : dict
        What `__main__` writes: ``unit``, ``workers``, ``apart``, ``serial`` and ``rows``.
    """
    workers, apart, unit = record["workers"], record["apart"], record["unit"]
    base = statistics.median(found["score"] for found in record["serial"])
    middle = workers[len(workers) // 2]
    serial_seconds = _reached(record["serial"], base)
    conditions = [*(f"n = {n}" for n in workers), "one group each"]
    lines = [
        f"Serial SVI: {base:.4f} nats per {unit}. What the others lose, in hundredths of a nat per "
        f"{unit} (medians of {len(record['serial'])} seeds; less is better, below 0 is better than "
        "serial), with n workers that draw from all items, and with "
        f"{GROUPS} workers that have one of {GROUPS} groups each; by how much n = {middle} is "
        f"sooner than serial SVI at {100 * TOLERANCE:g} hundredths below its last score; how much "
        f"longer {apart} workers take if one of them is {SLOW:g} times slower; bytes an item, sent "
        f"and received, at n = {workers[-1]}; fits with a parameter outside of its domain.\n",
        f"| strategy | settings | {' | '.join(conditions)} | sooner | one slow | bytes an item "
        "| outside |",
        "| --- | --- |" + " ---: |" * (len(conditions) + 4),
    ]
    for strategy, found in record["rows"].items():
        rows = found["seeds"]
        cells = [_loss(rows, name, base) for name in conditions]
        cells += [
            _sooner(rows, f"n = {middle}", base, serial_seconds), _slow(rows),
            _number(median(rows, f"n = {workers[-1]}", "bytes")), _outside(rows),
        ]  # fmt: skip
        lines.append(f"| {strategy} | {named(found['settings'])} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def median(rows: list[dict], name: str, key: str) -> float | None:
    """The median over seeds of one value of one condition; None: most have none."""
    values = [row[name][key] for row in rows if key in row[name]]
    return statistics.median(values) if 2 * len(values) > len(rows) else None


def _number(value) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _loss(rows, name, base) -> str:
    score = median(rows, name, "score")
    if score is None:
        return next(row[name]["failed"].split(":")[0] for row in rows if "failed" in row[name])
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


def _sooner(rows, name, base, serial_seconds) -> str:
    seconds = _reached([row[name] for row in rows], base)
    return "never" if not seconds or not serial_seconds else f"{serial_seconds / seconds:.1f} times"


def _slow(rows) -> str:
    slow, none = median(rows, "one slow", "seconds"), median(rows, "none slow", "seconds")
    return "-" if slow is None or none is None else f"{slow / none:.1f} times"


def _outside(rows) -> str:
    fits = [found for row in rows for found in row.values() if "outside" in found]
    return f"{sum(found['outside'] > 0 for found in fits)} of {len(fits)}"
