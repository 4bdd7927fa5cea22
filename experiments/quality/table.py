"""The page for the reader, in Markdown: one table for each protocol and corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean

from experiments.panel.cells import READ_AT
from experiments.provenance import described
from experiments.quality import measures, published
from experiments.quality.documents import SPLIT
from experiments.quality.plan import SEEDS, STABLE_SEEDS, STABLE_TOPICS, TOPICS

_LABEL_COLUMNS = {
    "once_only": "diversity", "purity": "purity", "nmi": "NMI", "accuracy": "accuracy",
    "macro_f1": "macro F1", "linear_accuracy": "accuracy, linear",
}  # fmt: skip


def as_markdown(records: Sequence[dict], remarks: Sequence[str] = ()) -> str:
    """Lay out the whole page: source, coherence, labels, stability.

    Parameters
    ----------
    records : sequence of dict
    remarks : sequence of str
        What went wrong, such as runs that failed.
    """
    lines = ["# What people read of topics", "", *_source(records), ""]
    lines += [*(f"* {remark}" for remark in remarks), ""] if remarks else []
    for corpus, some in _by(records, "corpus").items():
        if corpus.endswith(SPLIT):
            lines += _labels(corpus, some)
        else:
            lines += [*_coherence(corpus, some), *_stability(corpus, some)]
    return "\n".join(lines).rstrip() + "\n"


def _source(records):
    sources = [record["provenance"] for record in records]
    dates = sorted(source["date"] for source in sources)
    revisions = sorted(
        {
            git["revision"][:10] + " (modified)" * git["modified"]
            for source in sources
            if (git := source["git"])
        }
    )
    limits = sorted({f"{record['settings']['seconds']:g}" for record in records})
    return [
        f"{described(sources[-1])}; {len(records)} runs from {dates[0]} to {dates[-1]}; revision "
        f"{', '.join(revisions) or 'unknown'}; at most {' or '.join(limits)} s of training a run.",
        "",
        f"Means over runs, passes too: ours have {READ_AT}, a peer goes on until its time is up, "
        "but for runs from before this was so, which were told to make 100. A row with fewer runs "
        "lacks numbers of topics or seeds that others have. Published rows come from other "
        "preprocessing and machines.",
    ]


def _coherence(corpus, records):
    """BERTopic's protocol: all numbers of topics and three seeds in one mean."""
    rows = []
    for entrant, some in _by(records, "entrant").items():
        some = [record for record in some if record["settings"]["seed"] in SEEDS]
        if some:
            rows.append(
                [entrant, _score(some, "npmi"), _score(some, "diversity"),
                 f"{_mean(some, lambda record: record['seconds']):.1f}", _passes(some),
                 _of(len(some), len(TOPICS) * len(SEEDS))]
            )  # fmt: skip
    for row in published.COHERENCE.get(corpus, ()):
        seconds = "-" if row.seconds is None else f"{row.seconds:g}"
        rows.append(
            [f"published: {row.model}", f"{row.npmi:.3f}", f"{row.diversity:.3f}", seconds, "", ""]
        )
    size = records[0]["corpus"]
    return [
        f"## {corpus}: coherence and diversity of ten words a topic", "",
        f"{size['documents']:,} documents, {size['words']:,} words; K = {_listed(TOPICS)}, seeds "
        f"{_listed(SEEDS)}; NPMI over whole documents: published ones have another scale.", "",
        *_table(["entrant", "NPMI", "diversity", "seconds", "passes", "runs"], rows),
        *_quoted(published.BERTOPIC, corpus in published.COHERENCE),
    ]  # fmt: skip


def _labels(corpus, records):
    """TopMost's protocol."""
    rows = []
    for entrant, some in _by(records, "entrant").items():
        scores = [_score(some, name) for name in _LABEL_COLUMNS]
        rows.append([entrant, *scores, _passes(some), _of(len(some), len(SEEDS))])
    for model, row in published.LABELS.get(corpus, {}).items():
        scores = [f"{row[name]:.3f}" if name in row else "-" for name in _LABEL_COLUMNS]
        rows.append([f"published: {model}", *scores, "", ""])
    size = records[0]["corpus"]
    return [
        f"## {corpus.removesuffix(SPLIT)}: topics and labels", "",
        f"{size['documents']:,} training and {size['test_documents']:,} test documents, "
        f"{size['words']:,} words; K = {records[0]['settings']['topics']}, seeds {_listed(SEEDS)}. "
        "Diversity: share of the 15 first words of each topic that head no other one. Purity, NMI: "
        "test documents by their largest topic. Accuracy, F1: a support vector machine on theta.",
        "",
        *_table(["entrant", *_LABEL_COLUMNS.values(), "passes", "runs"], rows),
        *_quoted(published.TOPMOST, corpus in published.LABELS),
    ]  # fmt: skip


def _stability(corpus, records):
    rows = []
    for entrant, some in _by(records, "entrant").items():
        some = [record for record in some if record["settings"]["topics"] == STABLE_TOPICS]
        if len(some) > 1:
            value = measures.stability([record["top_words"] for record in some])
            rows.append([entrant, f"{value:.3f}", _of(len(some), len(STABLE_SEEDS))])
    if not rows:
        return []
    return [
        f"## {corpus}: stability over seeds", "",
        f"K = {STABLE_TOPICS}: Jaccard similarity of the ten first words of topics of two runs, "
        "which are matched one to one; mean over all pairs of runs.", "",
        *_table(["entrant", "similarity", "runs"], rows), "",
    ]  # fmt: skip


def _by(records: Iterable[dict], key: str) -> dict:
    found: dict = {}
    for record in records:
        found.setdefault(record["settings"][key], []).append(record)
    return found


def _score(records, name):
    return f"{_mean(records, lambda record: record['scores'][name]):.3f}"


def _passes(records):
    return f"{_mean(records, lambda record: record['passes']):.0f}"


def _mean(records, value):
    """Mean over numbers of topics of the mean over seeds, of which some may have more runs."""
    return mean(mean(map(value, some)) for some in _by(records, "topics").values())


def _of(n, wanted):
    return str(n) if n == wanted else f"{n} of {wanted}"


def _listed(numbers):
    return ", ".join(map(str, numbers))


def _quoted(source, any_row):
    return ["", f"Published: {source}.", ""] if any_row else [""]


def _table(head, rows):
    return [
        f"| {' | '.join(cells)} |" for cells in (head, ["---", *["---:"] * (len(head) - 1)], *rows)
    ]
