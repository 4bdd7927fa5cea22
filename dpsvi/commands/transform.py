"""``dpsvi transform DIR --corpus PATH --out FILE``: topic proportions of documents."""

from __future__ import annotations

from dpsvi.commands.common import (
    add_corpus_arguments,
    add_model_argument,
    emit,
    load_estimator,
    read_corpus,
)


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    add_corpus_arguments(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="FILE.npy or FILE.csv")


def run(args) -> int:
    """Write an array of shape (documents, topics) whose rows sum to 1."""
    import sys

    import numpy as np

    from dpsvi.io import atomic_path

    if not args.out.endswith((".npy", ".csv")):
        print(f"dpsvi transform: --out must end in .npy or .csv, got {args.out!r}", file=sys.stderr)
        return 2
    theta = load_estimator(args.model).transform(read_corpus(args)).astype(np.float32)
    with atomic_path(args.out) as temporary, open(temporary, "wb") as file:
        if args.out.endswith(".npy"):
            np.save(file, theta)
        else:
            header = ",".join(f"topic{k}" for k in range(theta.shape[1]))
            np.savetxt(file, theta, delimiter=",", fmt="%.6g", header=header, comments="")
    n, k = theta.shape
    emit(args, {"out": args.out, "shape": [n, k]}, f"{args.out}: {n} documents x {k} topics")
    return 0
