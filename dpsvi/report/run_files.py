"""Reads a run folder, the only input of the report.

Files that appear whole or not at all (JSON, CSV) must be sound, or a `ValueError` says where they
are not. ``metrics.jsonl`` grows while a run goes on and may end in a line that is cut; its broken
lines are left out and named in `Run.notes`, as is each file that is absent.
"""

import csv
import json
import math
from pathlib import Path
from typing import NamedTuple

TOPIC_COLUMNS = ["topic", "rank", "word", "probability", "weight"]
FILES = ("config.json", "env.json", "metrics.jsonl", "topics.csv")
NAMED_LINES = 5  # broken lines named one by one; others are counted


def may_have_topics(config):
    """Whether a run with the settings `config` may be of a topic model, by what it was given."""
    return not {"data", "command"} & config.keys()


class Metric(NamedTuple):
    """One line of ``metrics.jsonl``: `value` of `metric` after `items` visits, `seconds` in."""

    step: int
    items: int
    seconds: float
    metric: str
    value: float
    split: str
    rank: int


class Topic(NamedTuple):
    """A topic, its share of the corpus tokens, and its top ``(word, probability)`` pairs.

    Where they are known, `ranked` has ``(word, probability, that in the corpus)`` of all words that
    any relevance ranks high, and `documents` ``(number, share of the topic, text)`` of examples.
    """

    topic: int
    weight: float
    words: list
    ranked: list = []
    documents: list = []


class Run(NamedTuple):
    """The contents of a run folder; `topics` are sorted by weight, heaviest first."""

    name: str
    config: dict
    env: dict
    metrics: list
    topics: list
    positions: dict  # topic -> (x, y)
    notes: list  # sentences about what is absent or left out
    ended: bool  # there is a model, and nothing from which the run could go on
    corpus: dict = {}  # how many documents, words and tokens


def read_run(run_dir, expected=FILES):
    """Read the run folder `run_dir`.

    Parameters
    ----------
    run_dir : path-like
        Folder written by ``dpsvi fit`` or ``dpsvi play``.
    expected : sequence of str
        Files whose absence is worth a note.

    Returns
    -------
    run : Run

    Raises
    ------
    NotADirectoryError
        If `run_dir` is not a folder.
    FileNotFoundError
        If it holds none of the files of a run.
    ValueError
        If a file other than ``metrics.jsonl`` is malformed; names file and line.
    """
    if not Path(run_dir).is_dir():
        raise NotADirectoryError(f"{run_dir} is not a folder")
    folder = Path(run_dir).resolve()
    absent = [name for name in FILES if not (folder / name).is_file()]
    if len(absent) == len(FILES):
        raise FileNotFoundError(f"{folder} is not a run folder: none of {', '.join(FILES)} in it")
    config = _read(folder / "config.json", _settings, {})
    expected = [name for name in expected if name != "topics.csv" or may_have_topics(config)]
    metrics, notes = _read(folder / "metrics.jsonl", _metrics, ([], []))
    topics = _read(folder / "topics.csv", _topics, [])
    numbers = {topic.topic for topic in topics}
    corpus, more = _read(folder / "topic_words.json", lambda path: _words(path, numbers), ({}, {}))
    topics = [topic._replace(**more.get(topic.topic, {})) for topic in topics]
    return Run(
        name=folder.name,
        config=config,
        env=_read(folder / "env.json", _settings, {}),
        metrics=metrics,
        topics=sorted(topics, key=lambda topic: (-topic.weight, topic.topic)),
        positions=_read(folder / "topic_map.json", lambda path: _positions(path, numbers), {}),
        notes=[f"{name} is not in the run folder." for name in absent if name in expected] + notes,
        corpus=corpus,
        ended=(folder / "model.json").is_file() and not (folder / "checkpoints").exists(),
    )


def _read(path, parse, default):
    return parse(path) if path.is_file() else default


def _json(path):
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON: {error}") from error


def _settings(path):
    settings = _json(path)
    if not isinstance(settings, dict):
        raise ValueError(f"{path}: holds a {type(settings).__name__}, not an object")
    return settings


def _number(value, low=0, high=math.inf):
    """`value`, which must be a finite number in [low, high]; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    if not (low <= value <= high and abs(value) < math.inf):
        raise ValueError(f"{value!r} is not a finite number in [{low}, {high}]")
    return value


def _metrics(path):
    metrics, broken = [], []
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                if line.strip():
                    metrics.append(_metric(json.loads(line)))
            except (ValueError, RecursionError) as error:
                cut = "" if line.endswith(b"\n") else " (the last line, cut short)"
                broken.append(f"metrics.jsonl:{number} left out{cut}: {_reason(error)}.")
    notes = broken[:NAMED_LINES]
    if len(broken) > NAMED_LINES:
        notes.append(f"metrics.jsonl: {len(broken) - NAMED_LINES:,} more broken lines left out.")
    return metrics, notes


def _reason(error):
    # The decoder counts lines within the one line that it was given.
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (column {error.colno})"
    return error


def _metric(row):
    if not isinstance(row, dict):
        raise ValueError(f"a {type(row).__name__}, not an object")
    if "items" not in row and "docs" in row:  # written by versions up to 0.2.0
        row["items"] = row.pop("docs")
    missing = [name for name in Metric._fields if name not in row]
    if missing:
        raise ValueError(f"no field {', '.join(missing)}")
    for name in ("metric", "split"):
        if not isinstance(row[name], str):
            raise ValueError(f"{name} is {row[name]!r}, not a string")
    # A perplexity is the inverse of a mean probability, hence at least 1.
    low = dict.fromkeys(("step", "items", "seconds", "rank"), 0)
    low["value"] = 1 if row["metric"].endswith("perplexity") else -math.inf
    for name, least in low.items():
        try:
            _number(row[name], least)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return Metric(*(row[name] for name in Metric._fields))


def _topics(path):
    rows, weights = {}, {}
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            if header != TOPIC_COLUMNS:
                raise ValueError(f"header {header}, expected {TOPIC_COLUMNS}")
            for row in reader:
                if len(row) != len(TOPIC_COLUMNS):
                    raise ValueError(f"{len(row)} fields, expected {len(TOPIC_COLUMNS)}")
                topic, rank = _number(int(row[0])), _number(int(row[1]))
                weight = _number(float(row[4]), 0, 1)
                if weights.setdefault(topic, weight) != weight:
                    raise ValueError(f"weight {weight} of topic {topic}, before {weights[topic]}")
                probability = _number(float(row[3]), 0, 1)
                rows.setdefault(topic, []).append((rank, row[2], probability))
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}:{reader.line_num}: {error}") from error
    return [
        Topic(topic, weights[topic], [(word, p) for _, word, p in sorted(words)])
        for topic, words in rows.items()
    ]


def _positions(path, topics):
    entries, positions = _json(path), {}
    if not isinstance(entries, list):
        raise ValueError(f"{path}: holds a {type(entries).__name__}, not a list")
    for number, entry in enumerate(entries):
        try:
            topic = entry["topic"]
            if topic not in topics or topic in positions:
                raise ValueError(f"topic {topic!r} is not in topics.csv, or given twice")
            positions[topic] = tuple(_number(entry[axis], -math.inf) for axis in "xy")
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{path}: entry {number}: {error!r}") from error
    if positions.keys() != topics:
        raise ValueError(f"{path}: places {len(positions)} of {len(topics)} topics")
    return positions


def _words(path, topics):
    """The corpus, and of each topic what the page shows besides topics.csv."""
    content, more = _json(path), {}
    try:
        corpus = {str(name): _number(value) for name, value in content["corpus"].items()}
        entries = content["topics"]
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{path}: no corpus or no topics: {error!r}") from error
    for number, entry in enumerate(entries):
        try:
            if entry["topic"] not in topics:
                raise ValueError(f"topic {entry['topic']!r} is not in topics.csv")
            more[entry["topic"]] = {
                "ranked": [
                    (str(word), _number(p, 0, 1), _number(overall, 0, 1))
                    for word, p, overall in entry["words"]
                ],
                "documents": [
                    (_number(document), _number(share, 0, 1), str(text))
                    for document, share, text in entry["documents"]
                ],
            }
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{path}: entry {number}: {error!r}") from error
    return corpus, more
