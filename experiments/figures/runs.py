"""One run of a figure: what it is and how it is made."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpsvi.base import Event
from dpsvi.cluster.virtual import GIGABIT, TEN_GIGABIT, Network, Timing
from dpsvi.corpus import Corpus
from dpsvi.models.lda.estimator import DEFAULTS
from experiments.held_out import load_parts

NETWORKS = {
    "1 GbE": GIGABIT,
    "10 GbE": TEN_GIGABIT,
    # What a master in as many parts as there are workers would give.
    "10 GbE, a link each": dataclasses.replace(TEN_GIGABIT, shared=False),
}
N_TUNING, N_TRAINING = 1000, 1000  # documents that perplexities are of
# Said, so that no default of the estimator decides them.
ALPHA = ETA = 0.1
SWEEPS = 10


@dataclass(frozen=True)
class Run:
    """Settings of one simulated fit; n = 0 is serial SVI, which has no master and no network."""

    corpus: str  # file name, without its folder; or a name that dpsvi.datasets knows
    documents: int  # for training, at most
    words: int = 8000  # the most frequent ones
    tests: int = 5000  # documents held out
    topics: int = 50
    local_step: str = "mean_field"
    batch_size: int | None = 32  # None: the program's default, which workers share
    kappa: float | None = 0.7  # None: rates that follow from the corpus, the program's default
    tau0: float = 4.0
    rate: float = 0.0  # a constant one, instead of kappa and tau0
    rule: str = "constant"  # how it changes with M, p and B: (13)
    eta: float | None = ETA  # None, here and below: the program's default
    sweeps: int | None = SWEEPS  # inner iterations on a document, at most
    keep: bool = False  # responsibilities, in the last passes: these are incremental
    passes: int = 1
    every: float = 0.1  # passes between two evaluations
    seed: int = 0
    n: int = 0
    p: int = 1
    B: int | None = 4
    M: int = 1
    network: str = "10 GbE"
    slower: float = 1.0  # times that a local step takes longer than here
    contention: float | None = None  # None: as measured here
    strategy: str = "decay"
    local_decay: str = "exact"
    statistics: str = "float32"
    prefetch: bool = False
    waiting: float | None = None  # share of time that B is steered towards, where B is None
    tuning: bool = False  # held out are other documents

    @property
    def key(self) -> str:
        """Name of the run: the same settings, the same name."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @property
    def batch(self) -> int:
        """Documents in a batch of one process."""
        return self.batch_size or DEFAULTS[self.local_step].batch_size(self.documents)

    @property
    def short(self) -> str:
        """What is told of it while it is made."""
        return f"n={self.n} p={self.p} B={self.B} {self.network} x{self.slower:g} seed {self.seed}"


@functools.cache
def split(path: str, documents: int, words: int | None = None, tests: int = 5000):
    """Training documents, held-out ones and 1,000 for tuning (10 % of a small corpus).

    The paper's dictionary: the `words` that are most frequent in the training documents.
    """
    parts = load_parts(path, documents, (tests, N_TUNING))
    counts = np.bincount(parts[0].index, parts[0].value, parts[0].n_features)
    kept = np.sort(np.argsort(-counts, kind="stable")[:words])
    matrices = (part.to_csr()[:, kept] for part in parts)
    return tuple(Corpus.from_csr(matrix[np.diff(matrix.indptr) > 0]) for matrix in matrices)


def parts(run: Run, folder: str | Path):
    """What :func:`split` makes of the corpus of `run`."""
    return split(str(Path(folder) / run.corpus), run.documents, run.words, run.tests)


def some(train: Corpus) -> Corpus:
    """The training documents that training perplexity is of."""
    order = np.random.default_rng(0).permutation(train.n_items)
    return train.select(np.sort(order[:N_TRAINING]))


def perplexity(natural: np.ndarray, topics: int, documents) -> float:
    """Perplexity of natural parameters, by document completion."""
    from dpsvi.evaluation.completion import completion_perplexity

    lam = natural[:, :topics].astype(np.float64)
    found = completion_perplexity(lam / lam.sum(axis=0), documents, ALPHA, n_jobs=1)
    return float(found.perplexity)


def estimator(run: Run, timing: dict | None, callbacks: list):
    """The estimator of `run`, with its virtual cluster; without `timing`, costs are measured."""
    from dpsvi import DPSVILDA, VirtualCluster

    cluster = VirtualCluster(
        n_workers=max(1, run.n), cores=6, master_batch=run.M, strategy=run.strategy,
        local_decay=run.local_decay, global_rate=1.0, statistics=run.statistics,
        prefetch=run.prefetch, network=NETWORKS[run.network], waiting=run.waiting, seed=run.seed,
    )  # fmt: skip
    if timing is not None:
        costs = Timing(**timing)
        costs = dataclasses.replace(
            costs, step=run.slower * costs.step, value=run.slower * costs.value,
            contention=costs.contention if run.contention is None else run.contention,
        )  # fmt: skip
        if run.n == 0:
            costs = dataclasses.replace(costs, turn=0, touch=0, message=0, read=0, merge=0)
            cluster = dataclasses.replace(cluster, network=Network(0.0, np.inf))
        cluster = dataclasses.replace(cluster, timing=costs)

    class Watched(DPSVILDA):
        """Callbacks see the parameters that training starts from and those it ends with, too."""

        def _begin(self, *arguments):
            self.reports, state = [], super()._begin(*arguments)
            for callback in callbacks:
                callback(Event(0, 0, 0.0, 0.0, 0.0, state))
            return state

        def _train(self, *arguments, **more):
            ended = super()._train(*arguments, **more)
            self.reports.append(self.exchanges_)  # of these passes
            return ended

        def _optimise(self, items, rng, monitor):
            super()._optimise(items, rng, monitor)
            if run.keep:  # what was kept is summed up after the last pass, which takes time
                state = self._state
                event = Event(state.step, state.items, monitor.epoch, monitor.before[0], 0.0, state)
                for callback in callbacks:
                    callback(event)

    return Watched(
        run.topics, engine="simulated", cluster=cluster, local_step=run.local_step, n_jobs=run.p,
        local_steps=run.B, lr_rule=run.rule, learning_rate=run.rate or None,
        learning_decay=run.kappa, learning_offset=run.tau0, batch_size=run.batch_size,
        max_iter=run.passes, evaluate_every=run.every, doc_topic_prior=ALPHA,
        topic_word_prior=run.eta, max_doc_update_iter=run.sweeps, keep_responsibilities=run.keep,
        random_state=run.seed, callbacks=callbacks,
    )  # fmt: skip


def simulate(run: Run, folder: str, timing: dict) -> dict:
    """Carry out `run` on the virtual cluster; times in the result are the cluster's.

    Its history: seconds, documents visited, held-out perplexity, training perplexity.
    """
    train, test, tuning = parts(run, folder)
    held_out, trained, history = tuning if run.tuning else test, some(train), []

    def observe(event) -> None:
        natural = event.state.natural()
        found = [perplexity(natural, run.topics, held_out)]
        if not run.tuning:
            found.append(perplexity(natural, run.topics, trained))
        history.append([event.seconds, event.items, *found])

    lda = estimator(run, timing, [observe]).fit(train)
    exchanges = [exchange for report in lda.reports for exchange in report["exchanges"]]
    waited, computed = (sum(getattr(e, name) for e in exchanges) for name in ("waited", "seconds"))
    seconds = history[-1][0]
    return {
        "history": history, "seconds": seconds, "items": lda._state.items,
        "exchanges": len(exchanges), "bytes": sum(report["bytes"] for report in lda.reports),
        "master_busy": sum(report["busy"] for report in lda.reports) / seconds,
        "waiting": waited / (waited + computed),
        "staleness": dict(sorted(Counter(exchange.staleness for exchange in exchanges).items())),
    }  # fmt: skip


def time_to(history: list, target: float) -> float | None:
    """Seconds until held-out perplexity was `target`, log-linear in between; None if never."""
    before = None
    for seconds, _, found, *_ in history:
        if found <= target:
            if before is None or before[1] == found:
                return seconds
            share = (np.log(before[1]) - np.log(target)) / (np.log(before[1]) - np.log(found))
            return before[0] + float(share) * (seconds - before[0])
        before = seconds, found
    return None
