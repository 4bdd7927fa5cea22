"""``dpsvi transform DIR --corpus PATH --out FILE``: topic proportions of documents."""

from __future__ import annotations

from dpsvi.commands.common import (
    add_corpus_arguments,
    add_model_argument,
    check_array_out,
    emit,
    load_estimator,
    read_corpus,
    refused_as,
    write_array,
)


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    add_corpus_arguments(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="FILE.npy or FILE.csv")


def run(args) -> None:
    """Write an array of shape (documents, topics) whose rows sum to 1."""
    import numpy as np

    from dpsvi.errors import DataFormatError

    check_array_out(args.out)
    estimator = load_estimator(args.model)
    corpus = read_corpus(args, estimator)
    with refused_as(DataFormatError):
        theta = estimator.transform(corpus).astype(np.float32)
    write_array(args.out, theta, "topic")
    n, k = theta.shape
    emit(args, {"out": args.out, "shape": [n, k]}, f"{args.out}: {n} documents x {k} topics")
