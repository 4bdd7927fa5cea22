"""``dpsvi fit lda``: a corpus in; a run folder with topics, model, metrics and a page out."""

from __future__ import annotations

import logging

from dpsvi import engines
from dpsvi.commands.common import add_corpus_arguments, emit, read_corpus

log = logging.getLogger(__name__)


def _prior(text):
    return text if text == "auto" else float(text)


def add_arguments(parser) -> None:
    """Arguments of the command; defaults are those of the estimator unless stated."""
    parser.add_argument("name", choices=["lda"], help="model")
    parser.add_argument("--config", metavar="FILE", help="TOML file of these options")
    parser.add_argument("--out", default="dpsvi-run", metavar="DIR", help="[%(default)s]")
    parser.add_argument("--overwrite", action="store_true", help="replace the model in --out")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_corpus_arguments(parser)
    model = parser.add_argument_group("model")
    model.add_argument("--topics", type=int, default=100, metavar="K", help="[%(default)s]")
    for name in ("--doc-topic-prior", "--topic-word-prior"):
        model.add_argument(name, type=_prior, default="auto", metavar="X", help="[%(default)s]")
    model.add_argument(
        "--local-step", choices=["collapsed", "mean_field"], default="collapsed",
        help="[%(default)s]",
    )  # fmt: skip
    model.add_argument("--warm-documents", action="store_true")
    model.add_argument("--keep-responsibilities", action="store_true")
    run = parser.add_argument_group("optimisation")
    run.add_argument("--engine", choices=engines.names(), default="threads")
    run.add_argument("--threads", type=int, default=1, metavar="P", help="-1: all [%(default)s]")
    run.add_argument("--local-steps", type=int, metavar="B", help="steps between barriers")
    run.add_argument("--passes", type=int, default=10, metavar="N", help="[%(default)s]")
    run.add_argument("--batch-size", type=int, metavar="S", help="[64 or 128]")
    run.add_argument("--learning-decay", type=float, default=0.7, metavar="KAPPA")
    run.add_argument("--learning-offset", type=float, default=4.0, metavar="TAU0")
    run.add_argument("--learning-rate", type=float, metavar="RHO", help="constant rate")
    run.add_argument("--seed", type=int, default=0, metavar="S", help="[%(default)s]")
    held = parser.add_argument_group("evaluation")
    held.add_argument("--held-out", type=int, metavar="N", help="documents [5 %%, at most 2000]")
    held.add_argument("--evaluate-every", type=float, default=1.0, metavar="PASSES")
    held.add_argument("--early-stopping", action="store_true")


def make_estimator(args, n_items: int):
    """The estimator that the arguments describe."""
    from dpsvi.models.lda import DPSVILDA

    held_out = args.held_out
    if held_out is None:
        held_out = min(2000, -(-n_items // 20)) if n_items > 1 else 0
    return DPSVILDA(
        n_components=args.topics, doc_topic_prior=args.doc_topic_prior,
        topic_word_prior=args.topic_word_prior, local_step=args.local_step,
        warm_documents=args.warm_documents, keep_responsibilities=args.keep_responsibilities,
        engine=args.engine, n_jobs=args.threads, local_steps=args.local_steps,
        batch_size=args.batch_size, max_iter=args.passes, learning_decay=args.learning_decay,
        learning_offset=args.learning_offset, learning_rate=args.learning_rate,
        early_stopping=args.early_stopping, validation_size=held_out or None,
        evaluate_every=args.evaluate_every, random_state=args.seed, verbose=not args.quiet,
    )  # fmt: skip


def run(args) -> int:
    """Fit, then write everything; an interrupted fit is written too and exits 128 + signal."""
    from dpsvi.run_folder import RunFolder

    folder = RunFolder(args.out, args.overwrite)
    corpus = read_corpus(args)
    estimator = make_estimator(args, corpus.n_items)
    estimator.check_params()
    with folder:
        settings = {k: v for k, v in vars(args).items() if k not in ("run", "command")}
        folder.write_settings(settings, args.seed, args.threads)
        log.info(
            "%s: %d documents, %d words, %d tokens", args.corpus, corpus.n_items,
            corpus.n_features, int(corpus.n_tokens),
        )  # fmt: skip
        estimator.callbacks = [_recorder(folder, estimator, corpus)]
        estimator.fit(corpus)
        _write(folder, estimator, corpus)
    result = summary(estimator, corpus)
    emit(args, {**result, "run_folder": str(folder.path)}, describe(result, estimator, folder))
    return estimator.interrupted_


def _recorder(folder, estimator, corpus):
    """A callback that writes the newest entry of the history to metrics.jsonl."""
    tokens_a_doc = corpus.n_tokens / corpus.n_items
    last = {"docs": 0, "seconds": 0.0}

    def record(event) -> None:
        entry = estimator.history_[-1]
        at = entry["step"], entry["docs"], entry["seconds"]
        for metric in ("perplexity", "log_likelihood", "unigram_perplexity"):
            if metric in entry:
                folder.metric(*at, metric, entry[metric], "heldout")
        seconds = max(1e-9, entry["seconds"] - last["seconds"])
        rate = (entry["docs"] - last["docs"]) * tokens_a_doc / seconds
        folder.metric(*at, "tokens_per_second", rate, "train")
        last.update(docs=entry["docs"], seconds=entry["seconds"])

    return record


def _write(folder, estimator, corpus) -> None:
    import numpy as np

    from dpsvi.report import write_report

    words = estimator.top_words(20)
    weights = np.asarray(estimator.components_, np.float64).sum(axis=1)
    folder.write_topics(estimator.components_, words, weights / weights.sum())
    folder.write_vocabulary(corpus.vocabulary)
    estimator.save(folder.path)
    write_report(folder.path)


def summary(estimator, corpus) -> dict:
    """Numbers of the run: held-out perplexity, baseline, speed, size."""
    last = estimator.history_[-1] if estimator.history_ else {}
    tokens = corpus.n_tokens / corpus.n_items * last.get("docs", 0)
    seconds = last.get("seconds", 0.0)
    return {
        "topics": estimator.n_components, "documents": corpus.n_items,
        "words": corpus.n_features, "tokens": int(corpus.n_tokens),
        "passes": estimator.n_iter_, "seconds": seconds,
        "tokens_per_second": tokens / seconds if seconds else None,
        "perplexity": last.get("perplexity"), "log_likelihood": last.get("log_likelihood"),
        "unigram_perplexity": last.get("unigram_perplexity"), "bound_perplexity": estimator.bound_,
    }  # fmt: skip


def describe(result, estimator, folder) -> str:
    """The same as text, with the topics."""
    from dpsvi.commands.topics import table

    lines = [table(estimator, 8), ""]
    if result["perplexity"] is not None:
        lines.append(
            f"held-out perplexity {result['perplexity']:,.0f} "
            f"({result['log_likelihood']:.3f} nats a token); "
            f"unigram baseline {result['unigram_perplexity']:,.0f}"
        )
    if result["tokens_per_second"]:
        lines.append(
            f"{result['tokens_per_second'] / 1e6:.2f} million tokens per second; "
            f"{result['passes']} passes in {result['seconds']:.2f} s of training"
        )
    lines.append(f"run folder {folder.path}; open {folder.path / 'report.html'} in a browser")
    return "\n".join(lines)
