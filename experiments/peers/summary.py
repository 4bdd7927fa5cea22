"""The table: medians and ranges over the repeats, dpsvi against each peer, p threads against 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from experiments.peers.libraries import OURS


def summarise(records: Sequence[dict], threads: int) -> dict:
    """Compare the runs of one benchmark.

    Parameters
    ----------
    records : sequence of dict
        As :func:`experiments.peers.run_one.run` returns them; repeats share competitor and
        threads.
    threads : int
        Thread count of the comparison; runs with another count are dpsvi's own baseline.

    Returns
    -------
    dict
        ``unigram_perplexity``: the baseline of word frequencies.
        ``competitors``: each with its last ``perplexity``, ``log_likelihood_per_token`` (nats)
        and ``tokens_per_second``.
        ``against``: each dpsvi competitor against each peer: ratio of tokens per second; the
        peer's last perplexity (``target``), the seconds each took to get there, their ratio.
        ``at_most`` says that some run of ours was there at its first point: its seconds are then
        an upper bound and the ratio a lower one.
        ``threads``: each dpsvi competitor with `threads` threads against the same with 1, the
        target being the last perplexity with 1.
        Numbers that vary are ``{"median", "low", "high"}`` over the repeats, and a ratio goes from
        the least to the most favourable pair; None stands for "not within the time".
    """
    groups: dict[tuple[str, int], list[dict]] = {}
    for record in records:
        groups.setdefault((record["competitor"], record["threads"]), []).append(record)
    ours = {name: g for (name, t), g in groups.items() if t == threads and _is_ours(g)}
    peers = {name: g for (name, t), g in groups.items() if t == threads and not _is_ours(g)}
    single = {name: g for (name, t), g in groups.items() if t == 1 < threads and _is_ours(g)}
    return {
        "unigram_perplexity": records[0]["unigram_perplexity"],
        "competitors": [
            {
                "competitor": name,
                "threads": t,
                "repeats": len(group),
                "perplexity": spread(_last(group, "perplexity")),
                "log_likelihood_per_token": spread(_last(group, "log_likelihood_per_token")),
                "tokens_per_second": spread(_speeds(group)),
            }
            for (name, t), group in groups.items()
        ],
        "against": [
            {"competitor": name, "peer": peer, **_compare(group, other)}
            for peer, other in peers.items()
            for name, group in ours.items()
        ],
        "threads": [
            {"competitor": name, "threads": threads, **_compare(ours[name], group)}
            for name, group in single.items()
        ],
    }


def time_to(points: Sequence[dict], target: float) -> float:
    """Seconds at which a curve first is at `target` or below; infinite if it never is.

    Between two points the perplexity is taken as straight over log time; a curve that begins
    below the target gets the time of its first point, which is then an upper bound.
    """
    before = None
    for point in points:
        if point["perplexity"] <= target:
            if before is None:
                return point["seconds"]
            drop = before["perplexity"] - point["perplexity"]
            share = (before["perplexity"] - target) / drop
            ends = math.log(before["seconds"]), math.log(point["seconds"])
            return math.exp(ends[0] + share * (ends[1] - ends[0]))
        before = point
    return math.inf


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Median, lowest and highest of the values; None for one that is infinite."""
    found = {"median": median(values), "low": min(values), "high": max(values)}
    return {key: value if math.isfinite(value) else None for key, value in found.items()}


def _compare(ours, other):
    """Speed and time to the other's last perplexity; each of the others runs to its own."""
    target = median(_last(other, "perplexity"))
    our_seconds = [time_to(record["points"], target) for record in ours]
    other_seconds = [
        time_to(record["points"], record["points"][-1]["perplexity"]) for record in other
    ]
    return {
        "tokens_per_second_ratio": _ratio(_speeds(ours), _speeds(other)),
        "target": target,
        "seconds": spread(our_seconds),
        "at_most": any(record["points"][0]["perplexity"] <= target for record in ours),
        "other_seconds": spread(other_seconds),
        "time_ratio": _time_ratio(other_seconds, our_seconds),
    }


def _ratio(above, below):
    return {
        "median": median(above) / median(below),
        "low": min(above) / max(below),
        "high": max(above) / min(below),
    }


def _time_ratio(other_seconds, our_seconds):
    """How many times sooner we are; 0, which means never, becomes None."""
    found = _ratio(other_seconds, our_seconds)
    return {key: value or None for key, value in found.items()}


def _is_ours(group):
    return group[0]["library"] == OURS


def _last(group, key):
    return [record["points"][-1][key] for record in group]


def _speeds(group):
    return [t / s for t, s in zip(_last(group, "tokens"), _last(group, "seconds"), strict=True)]


def as_text(summary: dict) -> str:
    """Lay the summary out as three tables for a terminal."""
    lines = [
        f"{'competitor':<22}threads  {'perplexity (range)':<24}nats/token  million tokens/s (range)"
    ]
    for row in summary["competitors"]:
        nats = _number(row["log_likelihood_per_token"]["median"], ".3f")
        lines.append(
            f"{row['competitor']:<22}{row['threads']:>7}  {_range(row['perplexity'], '.0f'):<24}"
            f"{nats:>10}  {_range(row['tokens_per_second'], '.2f', 1e-6)}"
        )
    lines.append(f"{'unigram':<31}{summary['unigram_perplexity']:.0f}")
    for title, key in (("dpsvi against a peer", "against"), ("threads against 1", "threads")):
        if summary[key]:
            head = "tokens/s ratio     target  seconds: ours / other   times sooner (range)"
            lines += ["", f"{title:<40}{head}", *(_row(row) for row in summary[key])]
    return "\n".join(lines)


def _row(row):
    other = row.get("peer") or f"{row['threads']} threads"
    name = f"{row['competitor']}, {other}"
    ours, theirs = (_number(row[key]["median"], ".2f") for key in ("seconds", "other_seconds"))
    below, above = ("<= ", ">= ") if row["at_most"] else ("", "")
    times, ratio = f"{below}{ours} / {theirs}", f"{above}{_range(row['time_ratio'], '.1f')}"
    if row["seconds"]["median"] is None:
        times, ratio = f"never / {theirs}", "-"
    return (
        f"{name:<40}{_range(row['tokens_per_second_ratio'], '.1f'):<18}{row['target']:>7.0f}  "
        f"{times:<24}{ratio}"
    )


def _number(value, form, scale=1.0):
    return "-" if value is None else format(value * scale, form)


def _range(found, form, scale=1.0):
    middle, low, high = (_number(found[key], form, scale) for key in ("median", "low", "high"))
    return f"{middle} ({low} to {high})"
