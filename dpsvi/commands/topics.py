"""``dpsvi topics DIR``: the likeliest words of every topic, largest topic first."""

from __future__ import annotations

from dpsvi.commands.arguments import add_model_argument
from dpsvi.commands.inputs import load_estimator, refused_as
from dpsvi.commands.outputs import emit
from dpsvi.errors import UsageError


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    parser.add_argument(
        "--words", type=int, default=10, metavar="N", help="words of each topic [%(default)s]"
    )


def run(args) -> None:
    """Print the topics."""
    estimator = load_estimator(args.model)
    with refused_as(UsageError):
        top = estimator.top_words(args.words)
    emit(args, {"topics": top}, table(estimator, args.words))


def table(estimator, n_words: int) -> str:
    """One line a topic: number, share of the tokens, words."""
    import numpy as np

    size = np.asarray(estimator.components_, np.float64).sum(axis=1)
    top = estimator.top_words(n_words)
    return "\n".join(
        f"topic {k:3d} {size[k] / size.sum():6.1%}  " + " ".join(map(str, top[k]))
        for k in np.argsort(-size, kind="stable")
    )
