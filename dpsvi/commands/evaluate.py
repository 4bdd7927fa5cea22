"""``dpsvi evaluate DIR --corpus PATH``: document completion beside the unigram baseline."""

from __future__ import annotations

from dpsvi.commands.common import (
    add_corpus_arguments,
    add_model_argument,
    emit,
    load_estimator,
    read_corpus,
    refused_as,
    seed,
)


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    add_corpus_arguments(parser)
    parser.add_argument("--seed", type=seed, default=0, help="of the split [%(default)s]")


def run(args) -> None:
    """Print perplexity B, and A beside it."""
    from dpsvi.errors import DataFormatError

    estimator = load_estimator(args.model)
    corpus = read_corpus(args, estimator.vocabulary_)
    with refused_as(DataFormatError):
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
