"""``dpsvi fit lda``, ``dpsvi fit hdp``: a corpus in; topics and a page out."""

from __future__ import annotations

import csv
import io

from dpsvi import engines
from dpsvi.commands.arguments import add_corpus_arguments
from dpsvi.commands.inputs import read_corpus
from dpsvi.models.lda import local_steps

SOURCE = "corpus"  # the option that names the data


def _prior(text):
    return text if text == "auto" else float(text)


def add_arguments(parser, name: str) -> None:
    """Arguments that say what is fitted to which documents."""
    add_corpus_arguments(parser)
    model = parser.add_argument_group("model")
    model.add_argument(
        "--topics", type=int, default=100, metavar="K",
        help="topics, 1 to 65,535; the HDP uses as many of them as it needs [%(default)s]",
    )  # fmt: skip
    if name == "lda":
        model.add_argument(
            "--doc-topic-prior", type=_prior, default="auto", metavar="X",
            help='alpha, the Dirichlet prior of the topics of a document, or "auto" to learn it '
            "[%(default)s]",
        )  # fmt: skip
        model.add_argument(
            "--topic-word-prior", type=_prior, default="auto", metavar="X",
            help='eta, the Dirichlet prior of the words of a topic, or "auto" to learn it '
            "[%(default)s]",
        )  # fmt: skip
        model.add_argument(
            "--local-step", choices=local_steps.names(), default="collapsed",
            help="how a document is explained; mean_field is the paper's [%(default)s]",
        )  # fmt: skip
        model.add_argument(
            "--warm-documents", action="store_true",
            help="start each document where its last visit ended: 4 K bytes a document",
        )  # fmt: skip
        model.add_argument(
            "--keep-responsibilities", action="store_true",
            help="batch CVB0 in the last tenth of the passes: 2 K bytes a word of a document",
        )  # fmt: skip


def read(args) -> dict:
    """Arguments of the estimator's `fit`."""
    return {"X": read_corpus(args)}


def parameters(args, data) -> dict:
    """Parameters of the estimator that the arguments give."""
    n_items, held_out = data["X"].n_items, args.held_out
    if held_out is None:
        held_out = min(2000, -(-n_items // 20)) if n_items > 1 else 0
    given = {"n_components": args.topics, "validation_size": held_out or None}
    if args.name == "lda":
        for name in (
            "doc_topic_prior", "topic_word_prior", "local_step", "warm_documents",
            "keep_responsibilities",
        ):  # fmt: skip
            given[name] = getattr(args, name)
    return given


def described(data) -> str:
    """The data in a line of the log."""
    corpus = data["X"]
    return f"{corpus.n_items} documents, {corpus.n_features} words, {int(corpus.n_tokens)} tokens"


def metrics(entry: dict, data, items_a_second: float):
    """Pairs (name, value, split) of an entry of the history."""
    from dpsvi.families.topics.page import measures

    corpus = data["X"]
    return measures(entry, corpus.n_tokens / corpus.n_items, items_a_second)


def write(folder, estimator, data) -> None:
    """Files of the run folder besides the model; of very many topics there is no map."""
    from dpsvi.families.topics import page
    from dpsvi.files.io import write_json, write_text
    from dpsvi.report import MOST_TOPICS, topic_map

    components, vocabulary = estimator.components_, data["X"].vocabulary
    words, weights = estimator.top_words(page.WORDS), page.shares(components)
    write_text(folder.path / "topics.csv", _topics_table(components, words, weights))
    if len(components) <= MOST_TOPICS:
        places = topic_map(components, weights).tolist()
        write_json(
            folder.path / "topic_map.json",
            [{"topic": i, "x": x, "y": y} for i, (x, y) in enumerate(places)],
        )
    write_json(folder.path / "topic_words.json", page.details(estimator, data["X"]))
    if vocabulary is not None:
        write_text(folder.path / "vocab.txt", "".join(f"{word}\n" for word in vocabulary))


def _topics_table(components, words, weights) -> str:
    """The top words of every topic, a line for each, as CSV."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["topic", "rank", "word", "probability", "weight"])
    for topic, top in enumerate(words):
        probabilities = components[topic] / components[topic].sum()
        order = (-probabilities).argsort(kind="stable")
        for rank, word in enumerate(top):
            row = [topic, rank, word, f"{probabilities[order[rank]]:.6g}"]
            writer.writerow([*row, f"{weights[topic]:.6g}"])
    return table.getvalue()


def summary(estimator, data) -> dict:
    """Numbers of the run: held-out perplexity, baseline, speed, size."""
    corpus = data["X"]
    last = estimator.history_[-1] if estimator.history_ else {}
    tokens = corpus.n_tokens / corpus.n_items * last.get("items", 0)
    seconds = last.get("seconds", 0.0)
    return {
        "topics": estimator.n_components, "documents": corpus.n_items,
        "words": corpus.n_features, "tokens": int(corpus.n_tokens),
        "passes": estimator.n_iter_, "seconds": seconds,
        "tokens_per_second": tokens / seconds if seconds else None,
        "perplexity": last.get("perplexity"), "log_likelihood": last.get("log_likelihood"),
        "unigram_perplexity": last.get("unigram_perplexity"), "bound_perplexity": estimator.bound_,
        "simulated": engines.get(estimator.engine).simulated,
    }  # fmt: skip


def describe(result, estimator) -> list[str]:
    """The same as lines of text, with the topics."""
    from dpsvi.commands.topics import table

    lines = [table(estimator, 8), ""]
    if result["perplexity"] is not None:
        lines.append(
            f"held-out perplexity {result['perplexity']:,.0f} "
            f"({result['log_likelihood']:.3f} nats a token); "
            f"unigram baseline {result['unigram_perplexity']:,.0f}"
        )
    if result["tokens_per_second"]:
        lines.append(f"{result['tokens_per_second'] / 1e6:.2f} million tokens per second")
    return lines
