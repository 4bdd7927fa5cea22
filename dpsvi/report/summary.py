"""Key numbers and curves of a run, from the lines of its ``metrics.jsonl``."""

import math
from statistics import median
from typing import NamedTuple

from dpsvi import engines

from .run_files import may_have_topics

MAX_POINTS = 2000  # more than a curve has pixels
NAMES = {"heldout": "held-out", "train": "training"}


class Tile(NamedTuple):
    """A key number: what it is, its value, and a remark."""

    label: str
    value: str
    detail: str


class Measure(NamedTuple):
    """What the curves of a run show: a metric, its name, its axis, and what a reader must know."""

    metric: str
    name: str
    log: bool
    caption: str


# Of those that a run has recorded, the first one is shown.
MEASURES = (
    Measure(
        "perplexity", "perplexity", True,
        "Perplexity, lower is better, on a logarithmic axis: equal steps down are equal gains in "
        "nats per token.",
    ),
    Measure("score", "score", False, "Score, higher is better."),
    Measure(
        "items_per_second", "{items} per second", False,
        "{Items} per second. The run holds no {items} out (--held-out), so it has no score.",
    ),
)  # fmt: skip


class Curve(NamedTuple):
    """A measure on one split, seen by one rank; `points` are `Metric` lines."""

    label: str
    split: str
    points: list


def measure_of(run):
    """The `Measure` of a run; perplexity where it has recorded none yet."""
    found, items = _measure(run.metrics), items_of(run)
    words = {"items": items, "Items": items.capitalize()}
    return found._replace(name=found.name.format(**words), caption=found.caption.format(**words))


def _measure(metrics):
    recorded = {row.metric for row in metrics}
    return next((one for one in MEASURES if one.metric in recorded), MEASURES[0])


def curves(metrics):
    """Curves of the run's measure, held-out ones first, and of those rank 0 first.

    A run that stopped and resumed from a checkpoint repeats some steps. The later lines are the
    ones the model comes from, so they replace the earlier.

    Parameters
    ----------
    metrics : list of Metric

    Returns
    -------
    curves : list of Curve
    """
    found, shown = {}, _measure(metrics).metric
    for row in metrics:
        if row.metric == shown:
            points = found.setdefault((row.split != "heldout", row.split, row.rank), [])
            while points and points[-1].step >= row.step:
                points.pop()
            points.append(row)
    ranks = {rank for _, _, rank in found}
    return [
        Curve(NAMES.get(split, split) + (f", rank {rank}" if len(ranks) > 1 else ""), split, points)
        for (_, split, rank), points in sorted(found.items())
    ]


def thinned(points):
    """At most about `MAX_POINTS` of `points`, evenly spaced, with the first and the last."""
    stride = math.ceil(len(points) / MAX_POINTS)
    return points if stride <= 1 else points[:-1:stride] + points[-1:]


def unigram_perplexity(metrics):
    """Return the last held-out perplexity of the unigram model, or None."""
    values = [
        row.value
        for row in metrics
        if row.metric == "unigram_perplexity" and row.split == "heldout"
    ]
    return values[-1] if values else None


def tiles(run):
    """Key numbers of a run.

    Parameters
    ----------
    run : Run

    Returns
    -------
    tiles : list of Tile
        Held-out perplexity, unigram baseline, improvement, topics, documents, tokens per second,
        wall-clock time. A number the run did not record is a dash.  Of a run whose measure is
        another one: its last score, items, items per second if it has recorded them, time.
    """
    if not is_of_topics(run):
        return _tiles_of_scores(run)
    heldout = [curve for curve in curves(run.metrics) if curve.split == "heldout"]
    points = heldout[0].points if heldout else []
    baseline = unigram_perplexity(run.metrics)
    words = max((len(topic.words) for topic in run.topics), default=0)
    documents, time = _tiles_of_work(run)
    return [
        _perplexity("Held-out perplexity", points[-1].value if points else None, _best(points)),
        _perplexity("Unigram baseline", baseline),
        _improvement(points[-1].value if points else None, baseline),
        _tile("Topics", len(run.topics) or None, f"{words} top words each"),
        documents,
        _speed(run.metrics, "tokens_per_second", "Tokens per second"),
        time,
    ]


def items_of(run):
    """What the run goes through, as it says itself: documents, points, moves of a game."""
    named = run.env.get("items")  # not written by versions up to 0.2.0
    return named if isinstance(named, str) else "documents" if is_of_topics(run) else "items"


def is_of_topics(run):
    """Whether the run fits a topic model: by what it measures, else by what it was given."""
    if run.metrics:
        return _measure(run.metrics).metric == "perplexity"
    return may_have_topics(run.config)


def _tiles_of_scores(run):
    found = []
    for curve in curves(run.metrics)[:1]:
        if _measure(run.metrics).metric == "score":
            last, best = curve.points[-1], max(curve.points, key=lambda row: row.value)
            better = number(best.value) != number(last.value)
            detail = f"best {number(best.value)} at {number(best.seconds)} s" * better
            tile = _tile(f"{curve.label} score", last.value, detail)
            found.append(Tile(tile.label.capitalize(), _minus(tile.value), _minus(tile.detail)))
    items, time = _tiles_of_work(run)
    found.append(items)
    if any(row.metric == "items_per_second" for row in run.metrics):
        found.append(_speed(run.metrics, "items_per_second", f"{items.label} per second"))
    return [*found, time]


def _tiles_of_work(run):
    return [
        _tile(
            items_of(run).capitalize(),
            max((row.items for row in run.metrics), default=None),
            "processed",
        ),
        _duration(
            max((row.seconds for row in run.metrics), default=None),
            _simulated(run.config.get("engine")),
        ),
    ]


def number(value):
    """`value` with four digits or so, thousands apart: 0.04213, 87.31, 1,234, 2.51 M."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.2f} M"
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _tile(label, value, detail):
    if value is None:
        return Tile(label, "\N{EM DASH}", "not recorded")
    return Tile(label, number(value), detail)


def _perplexity(label, value, remark=""):
    detail = "" if value is None else f"{-math.log(value):.3f} nats per token{remark}"
    return _tile(label, value, _minus(detail))


def _best(points):
    best = min(points, key=lambda row: row.value, default=None)
    if best is None or number(best.value) == number(points[-1].value):
        return ""
    return f"; best {number(best.value)} at {number(best.seconds)} s"


def _improvement(value, baseline):
    if value is None or baseline is None:
        return _tile("Improvement", None, "")
    nats = math.log(baseline / value)
    detail = f"{nats:+.3f} nats per token over the baseline"
    return Tile("Improvement", _minus(f"{1 - value / baseline:.1%}"), _minus(detail))


def _minus(text):
    """`text` with signs of the width of digits."""
    return text.replace("-", "\N{MINUS SIGN}")


def _speed(metrics, name, label):
    by_rank = {}
    for row in metrics:
        if row.metric == name:
            by_rank.setdefault(row.rank, []).append(row.value)
    # The median, because the first reading also holds the time of compilation.
    speed = sum(median(values) for values in by_rank.values()) if by_rank else None
    readings = sum(len(values) for values in by_rank.values())
    ranks = f", sum over {len(by_rank)} ranks" if len(by_rank) > 1 else ""
    return _tile(label, speed, f"median of {readings:,} readings{ranks}")


def _simulated(engine):
    return engine in engines.names() and engines.get(engine).simulated


def _duration(seconds, simulated):
    minutes, rest = divmod(round(seconds or 0), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h"] * (hours > 0) + [f"{minutes} min"] * (minutes > 0 or hours > 0)
    if simulated:
        return _tile("Seconds", seconds, "simulated")
    return _tile("Seconds", seconds, " ".join([*parts, f"{rest} s"]) if parts else "wall clock")
