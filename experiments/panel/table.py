"""The table for the reader, in Markdown, and what is said beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from experiments.panel import cells, in_time, libraries, losses, plan, reading
from experiments.panel.reading import Cell

OURS = {
    "defaults": "dpsvi", "fixed-pair": "dpsvi, fixed pair", "mean-field": "mean field",
    "mean-field-fixed-pair": "mean field, fixed pair", "kept": "kept",
    "kept-fixed-pair": "kept, fixed pair",
}  # fmt: skip
_TOPICA = ("sparse", "light", "warp", "cvb0")
# Rows of a peer in one column of the table: the best of them counts.
PEERS = {
    "sklearn": ("sklearn",),
    "sklearn, fixed pair": ("sklearn-fixed-pair", "sklearn-online-fixed-pair"),
    "gensim": ("gensim",),
    "gensim, fixed pair": ("gensim-fixed-pair",),
    "tomotopy": ("tomotopy",),
    "tomotopy, fixed pair": ("tomotopy-fixed-pair",),
    "topica": tuple(f"topica-{sampler}" for sampler in _TOPICA),
    "topica, fixed pair": tuple(f"topica-{sampler}-fixed-pair" for sampler in _TOPICA),
    "pyrmallet": ("pyrmallet",),
    "pyrmallet, fixed pair": ("pyrmallet-fixed-pair",),
    "bigartm": ("bigartm",),
    "bigartm, fixed pair": ("bigartm-fixed-pair",),
}
GRID_TOLERANCE = 1.02


def is_grid(record: Mapping) -> bool:
    """Whether a record is an entry of the grid."""
    return "grid-" in record["settings"]["entrant"]


def as_markdown(records: Sequence[dict], remarks: Sequence[str] = ()) -> str:
    """Lay out the whole page: source, table, losses, peers cut short, seeds, grid.

    Parameters
    ----------
    records : sequence of dict
        All of one panel: same threads, same number of documents.
    remarks : sequence of str
        What went wrong, such as corpora that could not be read.
    """
    own = reading.by_cell(record for record in records if not is_grid(record))
    lost = losses.find(own)
    lines = ["# The panel", "", *_source(records), "", *(f"* {remark}" for remark in remarks), ""]
    lines += [*_main_table(own, lost), "", "## Losses", "", *_losses(lost), ""]
    lines += [*in_time.as_lines(own), *_cut_short(own), *_seeds(own)]
    lines += _grid(reading.by_cell(records))
    return "\n".join(lines).rstrip() + "\n"


def _source(records):
    """Where the records come from; several machines or revisions are all named."""
    sources = [record["provenance"] for record in records]
    dates = sorted(source["date"] for source in sources)
    gits = {
        f"{git['revision'][:10]}{' (modified)' if git['modified'] else ''}"
        for source in sources
        if (git := source["git"])
    }
    machines = {
        f"{s['hardware']['processor']}, {s['hardware']['cores']} cores" for s in sources
    }
    packages = {
        f"{name} {version}" for s in sources for name, version in s["versions"].items() if version
    }
    settings = [record["settings"] for record in records]
    loads = [s["hardware"]["load_average"] for s in sources if "load_average" in s["hardware"]]
    return [
        f"`{sources[-1]['command']}`; {len(records)} runs from {dates[0]} to {dates[-1]}; "
        f"revision {', '.join(sorted(gits)) or 'unknown'}; {'; '.join(sorted(machines))}; "
        f"{max(s['threads'] for s in settings)} threads; at most "
        f"{max(s['seconds'] for s in settings):g} s and {max(s['documents'] for s in settings):,} "
        f"documents a run; {', '.join(sorted(packages))}.",
        "",
        "Held-out perplexity with each model's own priors / with alpha .1 (one number: they are "
        f"the same). Ours after {cells.READ_AT} passes, or after as many as stand in brackets if "
        "no more ended in time; each peer at the best moment that it had. Bold: worse than some "
        "peer, or another of the losses listed below. \"Fixed pair\": alpha "
        f"{cells.FIXED_ALPHA:g} and eta {cells.FIXED_ETA:g}.",
        *([] if not loads else [
            "",
            f"Other work kept the cores busy: the load was {min(loads):g} to {max(loads):g}, half "
            f"of the runs had more than {median(loads):.1f}. Seconds are too long, for all but not "
            "alike; what is fair is perplexity after equal passes. A peer that ran out of seconds "
            "had fewer passes than an idle machine would give it.",
        ]),
    ]  # fmt: skip


def _main_table(own, lost):
    marked = {(loss.corpus, loss.topics, loss.entrant) for loss in lost}
    entrants = {entrant for cell in own.values() for entrant in cell}
    peers = {name: rows for name, rows in PEERS.items() if entrants & {*rows}}
    lines = [_row(["corpus", "K", "counting words", *OURS.values(), *peers])]
    lines.append(_row(["---"] + ["---:"] * (2 + len(OURS) + len(peers))))
    for (corpus, topics), cell in own.items():
        values = [corpus, str(topics), _number(reading.unigram(cell))]
        for entrant in OURS:
            text = _pair([reading.ours(cell.get(entrant), column) for column in reading.COLUMNS])
            passes = reading.read_at(cell.get(entrant, []))
            if passes not in (None, cells.READ_AT):
                text += f" ({passes})"
            values.append(f"**{text}**" if (corpus, topics, entrant) in marked else text)
        for rows in peers.values():
            values.append(
                _pair(
                    [
                        reading.lowest(reading.best(cell.get(row), column) for row in rows)
                        for column in reading.COLUMNS
                    ]
                )
            )
        lines.append(_row(values))
    return lines


def _losses(lost):
    if not lost:
        return ["None."]
    lines = []
    for kind, title in losses.KINDS.items():
        some = [loss for loss in lost if loss.kind == kind]
        if some:
            lines += [f"{title} ({len(some)}):", "", *(f"* {loss}" for loss in some), ""]
    return lines


def _cut_short(own: Mapping[tuple[str, int], Cell]):
    """How far the peers came in their time."""
    lines = []
    for (corpus, topics), cell in own.items():
        made = []
        for entrant, records in cell.items():
            if reading.is_ours(records):
                continue
            library, most = records[0]["settings"]["library"], max(r["passes"] for r in records)
            if libraries.is_watched(library):
                told = " as told" * any(not record["cut"] for record in records)
                made.append(f"{entrant} {most:,.0f}{told}")
            elif most < libraries.get(library).PASSES[-1]:
                made.append(f"{entrant} {most:,.0f} of {libraries.get(library).PASSES[-1]:,}")
        if made:
            lines.append(f"* {corpus}, K = {topics}: {', '.join(made)}")
    if not lines:
        return []
    return [
        "## Passes that peers had time for", "",
        "topica and pyrmallet make 10, 30, 100, 300 and 1,125 passes in runs of their own; those "
        "that would take twice as long as allowed are not begun, and those that made all are not "
        "listed. The others go on until their time is up, but for runs from before this was so: "
        "100 passes, \"as told\".", "",
        *lines, "",
    ]  # fmt: skip


def _seeds(own: Mapping[tuple[str, int], Cell]):
    """Medians and ranges where there are several seeds."""
    lines = []
    for (corpus, topics), cell in own.items():
        for entrant, records in cell.items():
            passes = reading.read_at(records) if reading.is_ours(records) else None
            ends = [
                r["points"][-1]["own"]
                for r in records
                if r["settings"]["passes"] == passes and not r["cut"]
            ]
            if len(ends) > 1:
                spread = [_number(value) for value in (median(ends), min(ends), max(ends))]
                lines.append(
                    _row([corpus, str(topics), entrant, str(passes), str(len(ends)), *spread])
                )
    if not lines:
        return []
    head = ["corpus", "K", "entrant", "passes", "seeds", "median", "lowest", "highest"]
    return ["## Seeds", "", "Own priors.", "", _row(head), _row(["---"] * len(head)), *lines, ""]


def _grid(by_cell):
    """The default of each step beside the best entry of the grid, at equal passes."""
    lines = []
    for (corpus, topics), cell in by_cell.items():
        for entrant, prefix, passes in (
            ("defaults", "grid-", plan.GRID_PASSES),
            *(("mean-field", "mean-field-grid-", n) for n in plan.GRID_MEAN_FIELD_PASSES),
        ):
            entries = {
                name: value
                for name, records in cell.items()
                if name.startswith(prefix)
                and (value := reading.at_passes(records, passes, "own")) is not None
            }
            default = entrant in cell and reading.at_passes(cell[entrant], passes, "own")
            if entries and default:
                name = min(entries, key=entries.get)
                ratio = default / entries[name]
                shown = f"**{ratio:.3f}**" if ratio > GRID_TOLERANCE else f"{ratio:.3f}"
                lines.append(
                    _row(
                        [corpus, str(topics), entrant, str(passes), _number(default), name,
                         f"{_number(entries[name])} of {len(entries)}", shown]
                    )
                )  # fmt: skip
    if not lines:
        return []
    head = ["corpus", "K", "step", "passes", "default", "best entry", "perplexity", "ratio"]
    return [
        "## Defaults and a grid of fixed settings", "",
        "Entries are named by batch size and decay, with an offset of 10. Own priors; bold: the "
        "default is more than 2 % worse.", "",
        _row(head), _row(["---"] * len(head)), *lines, "",
    ]  # fmt: skip


def _row(values):
    return f"| {' | '.join(values)} |"


def _number(value):
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _pair(values):
    own, fixed = (_number(value) for value in values)
    return own if own == fixed else f"{own} / {fixed}"
