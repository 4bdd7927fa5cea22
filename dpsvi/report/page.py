"""Assembles ``report.html`` from the page templates beside this file and a run folder.

The page asks nothing of the network: its security policy allows the one style sheet and the one
script that it carries, by their SHA-256, and nothing else. Text of the run can therefore not run
as a script even if it got past the escaping.
"""

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template

from dpsvi.files.io import atomic_path

from .run_files import read_run
from .summary import (
    curves,
    is_of_topics,
    items_of,
    measure_of,
    number,
    thinned,
    tiles,
    unigram_perplexity,
)

SCRIPTS = ("base.js", "curve.js", "map.js", "topics.js")
LIVE = "live.js"  # of a page that is served while its run goes on
FACTS = (  # shown under the title
    "date", "model", "environment", "corpus", "data", "documents", "words", "tokens",
    "version", "host", "hosts", "ranks", "cores", "seed",
)  # fmt: skip


def write_report(run_dir: str | PathLike[str]) -> Path:
    """Write ``report.html``, one self-contained page, into the run folder `run_dir`.

    The same files give the same page, byte for byte. It appears whole or not at all.

    Parameters
    ----------
    run_dir : path-like
        Folder with ``config.json``, ``env.json``, ``metrics.jsonl``, ``topics.csv`` and,
        optionally, ``topic_map.json``: a list of ``{"topic": i, "x": x, "y": y}``, see
        `topic_map`. Absent files and broken lines of ``metrics.jsonl`` are named on the page.

    Returns
    -------
    path : pathlib.Path
        The page.

    Raises
    ------
    NotADirectoryError, FileNotFoundError
        If `run_dir` is not a folder, or holds none of the files of a run.
    ValueError
        If a file other than ``metrics.jsonl`` is malformed; names file and line.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> _ = Path("config.json").write_text(json.dumps({"title": "A run"}))
    >>> page = write_report(".")
    >>> page.name, "A run" in page.read_text()
    ('report.html', True)
    """
    return write_page(read_run(run_dir), Path(run_dir) / "report.html")


def write_page(run, path):
    """Write the page of a `Run` to the file `path`, whole or not at all; return the path."""
    page, path = render(run), Path(path)
    # JSON can hold lone surrogates, which have no UTF-8 form; a browser shows U+FFFD for each.
    with atomic_path(path) as temporary:
        temporary.write_bytes(page.encode("utf-8", "xmlcharrefreplace"))
    return path


def render(run, live=False):
    """Return the HTML page of a `Run`.

    Parameters
    ----------
    run : Run
    live : bool
        The page asks again and again for itself, as it is by then, where it came from.

    Returns
    -------
    page : str
    """
    style = _template("page.css")
    script = "\n".join(map(_template, [*SCRIPTS, LIVE] if live else SCRIPTS))
    measure = measure_of(run)
    shown = [curve._replace(points=thinned(curve.points)) for curve in curves(run.metrics)]
    notes = run.notes + [
        f"The {short.label} curve shows {len(short.points):,} of {len(full.points):,} points."
        for short, full in zip(shown, curves(run.metrics), strict=True)
        if len(short.points) < len(full.points)
    ]
    title = run.config.get("title")
    return Template(_template("page.html")).substitute(
        policy=_policy(style, script) + ("; connect-src 'self'" if live else ""),
        style=style,
        script=script,
        title=escape(title if isinstance(title, str) else run.name),
        facts=_facts(run.env | run.config | run.corpus),
        notes=_notes(notes),
        tiles="".join(_tile(tile) for tile in tiles(run)),
        curve_table=_table(
            ["curve", "step", items_of(run), "seconds", measure.name],
            [
                [curve.label, p.step, p.items, p.seconds, p.value]
                for curve in shown
                for p in curve.points
            ],
        ),
        topic_table=_table(
            ["topic", "share", "top words"],
            [[t.topic, f"{t.weight:.2%}", ", ".join(w for w, _ in t.words)] for t in run.topics],
        ),
        config=_table(["setting", "value"], _flat(run.config)),
        env=_table(["environment", "value"], _flat(run.env)),
        items=items_of(run),
        caption=measure.caption,
        curve_hidden="" if live or shown else "hidden",
        topics_hidden="" if run.topics or (is_of_topics(run) and not live) else "hidden",
        data=_script_json(_data(run, shown) | ({"ended": run.ended} if live else {})),
    )


def _data(run, shown):
    measure = measure_of(run)
    return {
        "measure": {"name": measure.name, "log": measure.log},
        "items": items_of(run),
        "baseline": unigram_perplexity(run.metrics),
        "curves": [
            {
                "label": curve.label,
                "split": curve.split,
                "points": [[p.step, p.items, p.seconds, p.value] for p in curve.points],
            }
            for curve in shown
        ],
        "topics": [
            {
                "topic": topic.topic,
                "weight": topic.weight,
                "words": topic.words,
                "at": run.positions.get(topic.topic),
                "ranked": topic.ranked,
                "documents": topic.documents,
            }
            for topic in run.topics
        ],
    }


def _script_json(data):
    """JSON that cannot end its script element; ASCII, so no U+2028 either."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _template(name):
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style, script):
    def sha256(text):
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {sha256(style)}; script-src {sha256(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _facts(settings):
    settings = {"model": settings.get("name")} | settings  # its name in the command
    facts = [(k, settings[k]) for k in FACTS if isinstance(settings.get(k), str | int)]
    counted = ("documents", "words", "tokens")
    shown = [(k, f"{v:,}" if k in counted and isinstance(v, int) else str(v)) for k, v in facts]
    return "".join(f"<li>{escape(k)} <b>{escape(v)}</b></li>" for k, v in shown)


def _notes(notes):
    if not notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<aside class="notes" aria-label="Notes on this run"><ul>{items}</ul></aside>'


def _tile(tile):
    label, value, detail = map(escape, tile)
    return f"<div><dt>{label}</dt><dd><b>{value}</b><small>{detail}</small></dd></div>"


def _table(header, rows):
    if not rows:
        return '<p class="empty">Nothing recorded.</p>'
    head = "".join(
        f'<th scope="col"{_align(value)}>{escape(name)}</th>'
        for name, value in zip(header, rows[0], strict=True)
    )
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(header[0])} table">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value):
    text = escape(value) if isinstance(value, str) else number(value)
    return f"<td{_align(value)}>{text}</td>"


def _align(value):
    return ' dir="auto"' if isinstance(value, str) else ' class="number"'


def _flat(settings, prefix=""):
    """Nested settings as rows ``[dotted.name, value as text]``."""
    rows = []
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            rows += _flat(value, f"{prefix}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            rows.append([f"{prefix}{key}", text])
    return rows
