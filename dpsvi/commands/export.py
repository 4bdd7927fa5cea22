"""``dpsvi export DIR --format F --out PATH``: a fitted model for other tools."""

from __future__ import annotations

from dpsvi.commands.arguments import add_model_argument
from dpsvi.commands.inputs import load_estimator
from dpsvi.commands.outputs import check_out, emit

FORMATS = ("csv", "npz", "gensim")


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    parser.add_argument(
        "--format", choices=FORMATS, required=True,
        help="a table of topics and words, the same as arrays, or a LdaModel of gensim",
    )  # fmt: skip
    parser.add_argument("--out", required=True, metavar="PATH", help="file to be written")


def run(args) -> None:
    """Write topic-word probabilities (csv, npz) or a gensim LdaModel."""
    import numpy as np

    from dpsvi.files.io import atomic_path

    check_out(args.out)
    estimator = load_estimator(args.model)
    if args.format == "gensim":
        estimator.to_gensim().save(args.out)
    else:
        topics = estimator.components_ / estimator.components_.sum(axis=1, keepdims=True)
        words = estimator.vocabulary_ or tuple(map(str, range(topics.shape[1])))
        with atomic_path(args.out) as temporary, open(temporary, "wb") as file:
            if args.format == "npz":
                np.savez_compressed(
                    file, topic_word=topics, doc_topic_prior=estimator.doc_topic_prior_,
                    vocabulary=np.array(words),
                )  # fmt: skip
            else:
                import csv
                import io

                text = io.TextIOWrapper(file, encoding="utf-8", newline="")
                writer = csv.writer(text, lineterminator="\n")
                writer.writerow(["topic", *words])
                for k, row in enumerate(topics):
                    writer.writerow([k, *(f"{p:.6g}" for p in row)])
                text.flush()
                text.detach()
    emit(args, {"out": args.out, "format": args.format}, f"wrote {args.out}")
