"""``dpsvi fit lda``: a corpus in; a run folder with topics, model, metrics and a page out."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import fields

from dpsvi import engines, strategies
from dpsvi.cluster import Cluster
from dpsvi.cluster.world import launched_rank, launched_size
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
    run.add_argument(
        "--engine", choices=engines.names(), help="[mpi under mpiexec or srun, else threads]"
    )
    run.add_argument("--threads", type=int, default=1, metavar="P", help="-1: all [%(default)s]")
    run.add_argument("--local-steps", type=int, metavar="B", help="steps between barriers")
    run.add_argument("--passes", type=int, default=10, metavar="N", help="[%(default)s]")
    run.add_argument("--batch-size", type=int, metavar="S", help="[64 or 128]")
    run.add_argument("--learning-decay", type=float, default=0.7, metavar="KAPPA")
    run.add_argument("--learning-offset", type=float, default=4.0, metavar="TAU0")
    run.add_argument("--learning-rate", type=float, metavar="RHO", help="constant rate")
    run.add_argument("--lr-rule", choices=["per_T", "per_sample", "constant"], default="constant")
    run.add_argument("--seed", type=int, default=0, metavar="S", help="[%(default)s]")
    held = parser.add_argument_group("evaluation")
    held.add_argument("--held-out", type=int, metavar="N", help="documents [5 %%, at most 2000]")
    held.add_argument("--evaluate-every", type=float, default=1.0, metavar="PASSES")
    held.add_argument("--early-stopping", action="store_true")
    add_cluster_arguments(parser)


def add_cluster_arguments(parser) -> None:
    """Options of a fit on several processes, and checkpoints; None: the default."""
    group = parser.add_argument_group("several processes (mpiexec -n 5 dpsvi fit ...)")
    group.add_argument("--strategy", choices=strategies.names(), help="[decay]")
    group.add_argument("--master-batch", type=int, metavar="M", help="updates merged at a time [1]")
    group.add_argument("--global-rate", type=float, metavar="GAMMA", help="1: sum, 1/M: mean [1]")
    group.add_argument("--strict", action="store_true", default=None, help="refuse unstable rates")
    group.add_argument("--sharding", choices=["whole", "shard"], help="[whole]")
    group.add_argument("--statistics", choices=["float32", "bfloat16"], help="[float32]")
    group.add_argument("--prefetch", action="store_true", default=None, help="never wait for rows")
    group.add_argument(
        "--waiting", type=float, metavar="SHARE", help="steer B: workers wait so much"
    )
    group.add_argument("--workers", type=int, metavar="N", help="of --engine simulated [1]")
    group.add_argument("--master-works", action="store_true", default=None)
    group.add_argument("--silent-seconds", type=float, metavar="S", help="then a rank is lost [20]")
    group.add_argument("--on-lost", choices=["drop", "abort"], help="[drop]")
    group.add_argument("--log-all-ranks", action="store_true", help="run.rank-1.log, ...")
    group = parser.add_argument_group("checkpoints (dpsvi resume DIR)")
    group.add_argument(
        "--checkpoint-seconds", type=float, metavar="SEC", help="between two, 0 for none [60]"
    )


def cluster_of(args) -> Cluster:
    """The options that were given."""
    given = {field.name: getattr(args, field.name, None) for field in fields(Cluster)}
    given = {name: value for name, value in given.items() if value is not None}
    if getattr(args, "engine", None) == "simulated":
        from dpsvi.cluster.virtual import VirtualCluster

        return VirtualCluster(n_workers=args.workers or 1, **given)
    return Cluster(**given)


def make_estimator(args, n_items: int):
    """The estimator that the arguments describe."""
    from dpsvi.models.lda import DPSVILDA

    held_out = args.held_out
    if held_out is None:
        held_out = min(2000, -(-n_items // 20)) if n_items > 1 else 0
    seconds = 60.0 if args.checkpoint_seconds is None else args.checkpoint_seconds
    return DPSVILDA(
        n_components=args.topics, doc_topic_prior=args.doc_topic_prior,
        topic_word_prior=args.topic_word_prior, local_step=args.local_step,
        warm_documents=args.warm_documents, keep_responsibilities=args.keep_responsibilities,
        engine=args.engine or ("mpi" if launched_size() > 1 else "threads"),
        n_jobs=args.threads, local_steps=args.local_steps, lr_rule=args.lr_rule,
        cluster=cluster_of(args),
        checkpoint_dir=None if seconds == 0 or args.keep_responsibilities else args.out,
        checkpoint_seconds=seconds,
        batch_size=args.batch_size, max_iter=args.passes, learning_decay=args.learning_decay,
        learning_offset=args.learning_offset, learning_rate=args.learning_rate,
        early_stopping=args.early_stopping, validation_size=held_out or None,
        evaluate_every=args.evaluate_every, random_state=args.seed, verbose=not args.quiet,
    )  # fmt: skip


def run(args, resume: bool = False) -> int:
    """Fit, then write everything; an interrupted fit is written too and exits 128 + signal.

    Under ``mpiexec`` every rank fits; rank 0 alone writes and prints.
    """
    from dpsvi.run_folder import RunFolder

    first = launched_rank() == 0
    if launched_size() > 1 and args.engine in (None, "mpi"):
        from dpsvi.cluster.world import world

        world()  # from here on a rank that fails can end the others
    folder = RunFolder(args.out, args.overwrite, resume) if first else None
    corpus = read_corpus(args)
    estimator = make_estimator(args, corpus.n_items)
    estimator.check_params()
    with folder if first else nullcontext(), _rank_log(args):
        if first:
            settings = {k: v for k, v in vars(args).items() if k not in ("run", "command")}
            folder.write_settings(settings, args.seed, args.threads, launched_size())
            log.info(
                "%s: %d documents, %d words, %d tokens", args.corpus, corpus.n_items,
                corpus.n_features, int(corpus.n_tokens),
            )  # fmt: skip
            estimator.callbacks = [_recorder(folder, estimator, corpus)]
        (estimator.resume if resume else estimator.fit)(corpus)
        if first:
            _write(folder, estimator, corpus)
            if not estimator.interrupted_:
                folder.drop_checkpoints()
    if first:
        result = summary(estimator, corpus)
        emit(args, {**result, "run_folder": str(folder.path)}, describe(result, estimator, folder))
    return estimator.interrupted_


def _rank_log(args):
    """One log a rank, if asked for."""
    if not args.log_all_ranks:
        return nullcontext()
    from dpsvi.run_folder import log_to

    return log_to(args.out, f"run.rank-{launched_rank()}.log")


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
    if estimator.exchanges_:
        folder.write_exchanges(estimator.exchanges_, estimator.history_)
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
        "simulated": estimator.engine == "simulated",
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
        virtual = " (SIMULATED: the clock of a virtual cluster)" * result["simulated"]
        lines.append(
            f"{result['tokens_per_second'] / 1e6:.2f} million tokens per second; "
            f"{result['passes']} passes in {result['seconds']:.2f} s of training{virtual}"
        )
    lines.append(f"run folder {folder.path}; open {folder.path / 'report.html'} in a browser")
    return "\n".join(lines)
