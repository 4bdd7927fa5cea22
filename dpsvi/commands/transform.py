"""``dpsvi transform DIR --corpus PATH --out FILE``: topic proportions of documents.

``dpsvi transform DIR --data FILE --out FILE``: the ``transform`` of a model that is fitted to
arrays.
"""

from __future__ import annotations

from dpsvi.commands.arguments import add_corpus_arguments, add_model_argument
from dpsvi.commands.fit_arrays import add_data_arguments
from dpsvi.commands.inputs import load_estimator, read_corpus, refused_as, takes_arrays
from dpsvi.commands.outputs import check_array_out, emit, write_array
from dpsvi.commands.predict import answer


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    add_corpus_arguments(parser, required=False)
    add_data_arguments(parser, required=False)
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="file to be written, FILE.npy or FILE.csv"
    )


def run(args) -> None:
    """Write an array of shape (documents, topics) whose rows sum to 1, or (rows, columns)."""
    import numpy as np

    from dpsvi.errors import DataFormatError

    check_array_out(args.out)
    if takes_arrays(args):
        answer(args, ("transform",))
        return
    estimator = load_estimator(args.model)
    corpus = read_corpus(args, estimator)
    with refused_as(DataFormatError):
        theta = estimator.transform(corpus).astype(np.float32)
    write_array(args.out, theta, "topic")
    n, k = theta.shape
    emit(args, {"out": args.out, "shape": [n, k]}, f"{args.out}: {n} documents x {k} topics")
