"""``dpsvi evaluate DIR --corpus PATH``: document completion beside the unigram baseline.

``dpsvi evaluate DIR --data FILE``: the score of a model that is fitted to arrays.
"""

from __future__ import annotations

from dpsvi.commands.arguments import add_corpus_arguments, add_model_argument, seed
from dpsvi.commands.fit_arrays import add_data_arguments, ask, read_arrays
from dpsvi.commands.inputs import load_estimator, read_corpus, refused_data, takes_arrays
from dpsvi.commands.outputs import emit
from dpsvi.errors import UsageError


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    add_corpus_arguments(parser, required=False)
    add_data_arguments(parser, required=False)
    parser.add_argument(
        "--seed", type=seed, default=0, help="seed of the split of documents [%(default)s]"
    )


def run(args) -> None:
    """Print perplexity B, and A beside it; or the score."""
    (_evaluate_arrays if takes_arrays(args) else _evaluate_topics)(args)


def _evaluate_arrays(args) -> None:
    estimator = load_estimator(args.model, "arrays")
    if not hasattr(estimator, "score"):
        raise UsageError(f"{args.model}: this model has no score")
    data = read_arrays(args, estimator)
    score = float(ask(estimator.score, data, args.data))
    emit(args, {"score": score, "shape": list(data["X"].shape)}, f"score {score:.6g}")


def _evaluate_topics(args) -> None:
    estimator = load_estimator(args.model)
    corpus = read_corpus(args, estimator)
    with refused_data(args.corpus):
        result = estimator.evaluate(corpus, seed=args.seed)._asdict()
        result["bound_perplexity"] = estimator.perplexity(corpus, kind="bound")
    emit(
        args, result,
        f"held-out perplexity {result['perplexity']:,.1f} "
        f"({result['log_likelihood']:.4f} nats a token, "
        f"{result['n_tokens']:,.0f} tokens predicted); "
        f"unigram baseline {result['unigram_perplexity']:,.1f}\n"
        f"bound perplexity {result['bound_perplexity']:,.1f}",
    )  # fmt: skip
