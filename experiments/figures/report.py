"""The page: all figures as SVG with their tables, and what is said of them.

One file without scripts, links or fonts from elsewhere.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from experiments.provenance import named_versions

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; }
h2 { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; margin: .5rem 0; }
td, th { border-bottom: 1px solid #ddd; padding: .15rem .7rem .15rem 0; text-align: left; }
.kind { background: #fff3cd; padding: .1rem .4rem; border-radius: .2rem; font-size: 13px; }
.kind.measured { background: #d1e7dd; }
code { font-size: 13px; }
details summary { cursor: pointer; }
"""

SECTIONS = (
    ("fig1", "Figure 1: does another node help?", "simulated"),
    ("fig2", "Figure 2: do more threads of one node help?", "simulated"),
    ("fig3", "Figure 3: nodes and threads together", "simulated"),
    ("fig4", "Figure 4: perplexity against time", "simulated"),
    ("beyond", "Beyond the paper: 30 to 300 threads", "simulated"),
    ("steered", "Beyond the paper: B steered by waiting", "simulated"),
    ("averaging", "Beyond the paper: averaged parameters", "simulated"),
    ("theory", "Theory on trial", "simulated"),
    ("validate", "Is the simulation right? This machine, predicted and measured", "measured"),
    ("python_step", "How much longer does a local step take in Python?", "measured"),
    ("grid", "The baseline's settings", "simulated"),
)


def make(folder: Path, path: Path) -> None:
    """Write the page to `path` from the pictures and tables in `folder`."""
    parts = []
    for name, title, kind in SECTIONS:
        figure, table = folder / f"{name}.svg", folder / f"{name}.md"
        if not figure.exists() and not table.exists():
            continue
        parts.append(f'<h2>{title} <span class="kind {kind}">{kind}</span></h2>')
        said, bar, rest = (table.read_text("utf-8") if table.exists() else "").partition("|")
        parts.append(_html(said))
        if figure.exists():
            parts.append(_inline(figure.read_text("utf-8"), name))
        rest = _html(bar + rest)
        if figure.exists() and rest:
            rest = f"<details><summary>Table</summary>{rest}</details>"
        parts.append(rest)
    parts.append("<h2>Where the numbers come from</h2>" + _sources(folder))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>dpsvi: the paper\'s figures'
        f"</title><style>{_STYLE}</style><h1>Scaling up SVI: the paper's figures</h1>"
        "<p>Simulated: every local step, stale reading and merge is executed on real documents; "
        "only time is computed, from costs measured on the machine named below (timing.json; "
        "of the program's own step: timing-default.json).  "
        "Measured: wall time of real processes.  TSP (12) is the time of serial SVI by the step of "
        "the panel, over that of DPSVI until both are at one held-out perplexity, that of serial "
        "SVI at its end + 2 %.  Documents per second come after it: they say what asynchrony gains "
        "if it costs no "
        "perplexity.  Medians over seeds, bars are ranges; a cross is a point whose median seed "
        "did not get there, or below, whose perplexity at the end is not within 2 %.  Grey: n p.  "
        "Dotted and dashed lines are the paper's models of exchanges one after the other and "
        "overlapping.</p>" + "\n".join(parts) + "</html>\n",
        "utf-8",
    )


def _sources(folder) -> str:
    """Command, date, machine and versions of everything in the folder."""
    found = {}
    for path in sorted(folder.glob("*.json*")):
        for line in path.read_text("utf-8").splitlines() if path.suffix == ".jsonl" else [
            path.read_text("utf-8")
        ]:  # fmt: skip
            entry = json.loads(line)
            source = entry.get("from", entry)
            if "command" in source:
                machine = source["hardware"]
                machine = f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"
                versions = named_versions(source["versions"])
                row = path.name, source["command"], machine, versions, source["date"][:10]
                found.setdefault(row, None)
    rows = [
        f"<tr><td>{html.escape(name)}</td><td><code>{html.escape(command)}</code></td>"
        + "".join(f"<td>{html.escape(fact)}</td>" for fact in facts) + "</tr>"
        for name, command, *facts in found
    ]  # fmt: skip
    return (
        "<table><tr><th>file<th>command<th>machine<th>versions<th>date</tr>"
        + "".join(rows)
        + "</table>"
    )


def _inline(svg: str, name: str) -> str:
    """The picture on one line, without its prologue; names inside made unique on the page."""
    svg = " ".join(svg[svg.index("<svg") :].split("\n"))
    for kind in ('id="', "url(#", 'href="#'):
        svg = svg.replace(kind, f"{kind}{name}-")
    return svg


def _html(markdown: str) -> str:
    """Tables and lines of the Markdown that our tables use."""
    parts, rows = [], []
    for line in [*markdown.splitlines(), ""]:
        if line.startswith("|"):
            if not re.fullmatch(r"[|\s:-]+", line):  # below the head
                rows.append([html.escape(cell.strip()) for cell in line.strip("|").split("|")])
            continue
        if rows:
            head, *body = rows
            parts.append(
                "<table><tr>" + "".join(f"<th>{cell}" for cell in head) + "</tr>"
                + "".join(
                    "<tr>" + "".join(f"<td>{cell}" for cell in row) + "</tr>" for row in body
                ) + "</table>"
            )  # fmt: skip
            rows = []
        if line:
            parts.append(f"<p>{html.escape(line)}</p>")
    return "".join(parts)
