"""``dpsvi info PATH``: what a run folder or a corpus holds."""

from __future__ import annotations

from dpsvi.commands.inputs import reading_input
from dpsvi.commands.outputs import emit


def add_arguments(parser) -> None:
    """Arguments of the command."""
    parser.add_argument("path", metavar="PATH", help="run folder or corpus file")


def run(args) -> None:
    """Print a description without loading any array of a model."""
    import os

    with reading_input(args.path):
        facts = _model(args.path) if os.path.isdir(args.path) else _corpus(args.path)
    emit(args, facts, "\n".join(_lines(facts)))


def _lines(facts: dict):
    """A line for each fact; those that consist of several have theirs below, indented."""
    for key, value in facts.items():
        if isinstance(value, dict):
            yield f"{key}:"
            yield from (f"  {line}" for line in _lines(value))
        else:
            yield f"{key}: {value}"


def _model(path) -> dict:
    from dpsvi.files.io import read_meta, reading

    meta = read_meta(path)
    named = {key: meta[key] for key in ("step", "items", "n_iter", "bound") if key in meta}
    with reading(path):
        shapes = {name: array["shape"] for name, array in meta["arrays"].items()}
    facts = {"kind": meta["kind"], "schema": meta["schema"], "arrays": shapes}
    return {**facts, **named, "params": meta["params"]}


def _corpus(path) -> dict:
    import numpy as np

    from dpsvi.corpus import load_corpus

    corpus = load_corpus(path, "auto")
    lengths = np.diff(corpus.offsets)
    return {
        "documents": corpus.n_items, "words": corpus.n_features, "entries": corpus.nnz,
        "tokens": int(corpus.n_tokens), "empty_documents": int((lengths == 0).sum()),
        "entries_a_document_median": float(np.median(lengths)),
        "vocabulary": corpus.vocabulary is not None,
    }  # fmt: skip
