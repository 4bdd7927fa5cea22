"""One run of a figure: what it is, how it is made, and the file that keeps what came out.

A run is named by its settings.  What is in the file is not made again, so an interrupted figure
goes on where it was, and anyone can draw from the file alone.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpsvi.cluster.virtual import GIGABIT, TEN_GIGABIT, Network, Timing
from dpsvi.corpus import Corpus
from dpsvi.errors import DivergedError
from experiments.held_out import load_parts

NETWORKS = {
    "1 GbE": GIGABIT,
    "10 GbE": TEN_GIGABIT,
    # What a master in as many parts as there are workers would give.
    "10 GbE, a link each": dataclasses.replace(TEN_GIGABIT, shared=False),
}
N_TEST, N_TUNING = 5000, 1000
ALPHA = 0.1


@dataclass(frozen=True)
class Run:
    """Settings of one simulated fit; n = 0 is serial SVI, which has no master and no network."""

    corpus: str  # file name, without its folder
    documents: int  # for training
    words: int = 8000  # the most frequent ones
    topics: int = 50
    local_step: str = "mean_field"
    batch_size: int = 64
    kappa: float = 0.7
    tau0: float = 4.0
    rate: float = 0.0  # a constant one, instead of kappa and tau0
    rule: str = "constant"  # how it changes with M, p and B: (13)
    passes: int = 2
    every: float = 0.5  # passes between two evaluations
    seed: int = 0
    n: int = 0
    p: int = 1
    B: int | None = 16
    M: int = 1
    network: str = "10 GbE"
    slower: float = 1.0  # times that a local step takes longer than here
    contention: float | None = None  # None: as measured here
    strategy: str = "decay"
    statistics: str = "float32"
    prefetch: bool = False
    waiting: float | None = None  # share of time that B is steered towards, where B is None
    tuning: bool = False  # held out are other documents

    @property
    def key(self) -> str:
        """Name of the run: the same settings, the same name."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @property
    def short(self) -> str:
        """What is told of it while it is made."""
        return f"n={self.n} p={self.p} B={self.B} {self.network} x{self.slower:g} seed {self.seed}"


class Store:
    """Results of runs, one line of JSON each, appended as they come in.

    Parameters
    ----------
    path : path
    timing : dict
        What work costs.  Runs made with other costs are not comparable: they count as not made.
    """

    def __init__(self, path, timing: dict):
        self.path, self.results, self.timing = Path(path), {}, timing
        self._mark = hashlib.sha256(json.dumps(timing, sort_keys=True).encode()).hexdigest()[:16]
        if not self.path.exists():
            return
        for line in self.path.read_text("utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # killed while it was written
            if entry["timing"] == self._mark:
                self.results[Run(**entry["run"]).key] = entry["result"]

    def get(self, run: Run) -> dict | None:
        """What came out of `run`; None if it was not made."""
        return self.results.get(run.key)

    def add(self, run: Run, result: dict, source: dict) -> None:
        """Keep a result, on disk before anything else happens."""
        entry = {
            "run": dataclasses.asdict(run), "timing": self._mark, "result": result, "from": source,
        }  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            if file.tell() and not self._ends_with_a_line():
                file.write("\n")
            file.write(json.dumps(entry) + "\n")
        self.results[run.key] = result

    def _ends_with_a_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, 2)
            return file.read() == b"\n"

    def make(self, wanted: list[Run], folder, source: dict, jobs: int) -> None:
        """Make those of the `wanted` runs that are not there yet, `jobs` at a time."""
        missing = [run for run in dict.fromkeys(wanted) if self.get(run) is None]
        if not missing:
            return
        print(f"{len(missing)} of {len(wanted)} runs to make", flush=True)
        with ProcessPoolExecutor(jobs) as pool:
            futures = {pool.submit(simulate, run, str(folder), self.timing): run for run in missing}
            for done, future in enumerate(as_completed(futures), 1):
                run = futures[future]
                try:
                    self.add(run, future.result(), source)
                    told = self.get(run)["history"][-1]
                except DivergedError as error:
                    self.add(run, {"failed": str(error)}, source)
                    told = error
                except BrokenProcessPool:
                    raise SystemExit(
                        "a run was killed, most likely for want of memory: 1,000 workers take up "
                        "to 19 GB, so try --jobs 1; what was made is kept"
                    ) from None
                print(f"{done}/{len(missing)} {run.short}: {told}", flush=True)


@functools.cache
def split(path: str, documents: int, words: int | None = None):
    """Training documents, 5,000 held-out ones and 1,000 for tuning (10 % of a small corpus).

    The paper's dictionary: the `words` that are most frequent in the training documents.
    """
    parts = load_parts(path, documents, (N_TEST, N_TUNING))
    counts = np.bincount(parts[0].index, parts[0].value, parts[0].n_features)
    kept = np.sort(np.argsort(-counts, kind="stable")[:words])
    matrices = (part.to_csr()[:, kept] for part in parts)
    return tuple(Corpus.from_csr(matrix[np.diff(matrix.indptr) > 0]) for matrix in matrices)


def perplexity(natural: np.ndarray, topics: int, test) -> float:
    """Held-out perplexity of natural parameters, by document completion."""
    from dpsvi.evaluation.completion import completion_perplexity

    lam = natural[:, :topics].astype(np.float64)
    return float(completion_perplexity(lam / lam.sum(axis=0), test, ALPHA, n_jobs=1).perplexity)


def estimator(run: Run, timing: dict, callbacks: list):
    """The estimator of `run`, with its virtual cluster."""
    from dpsvi import DPSVILDA, VirtualCluster

    costs = Timing(**timing)
    costs = dataclasses.replace(
        costs, step=run.slower * costs.step, value=run.slower * costs.value,
        contention=costs.contention if run.contention is None else run.contention,
    )  # fmt: skip
    cluster = VirtualCluster(
        n_workers=max(1, run.n), timing=costs, cores=6, master_batch=run.M, strategy=run.strategy,
        global_rate=1.0, statistics=run.statistics, prefetch=run.prefetch,
        network=NETWORKS[run.network], waiting=run.waiting, seed=run.seed,
    )  # fmt: skip
    if run.n == 0:
        alone = dataclasses.replace(costs, turn=0.0, touch=0.0, message=0.0, read=0.0, merge=0.0)
        cluster = dataclasses.replace(cluster, timing=alone, network=Network(0.0, np.inf))
    return DPSVILDA(
        run.topics, engine="simulated", cluster=cluster, local_step=run.local_step, n_jobs=run.p,
        local_steps=run.B, lr_rule=run.rule, learning_rate=run.rate or None,
        learning_decay=run.kappa, learning_offset=run.tau0, batch_size=run.batch_size,
        max_iter=run.passes, evaluate_every=run.every, doc_topic_prior=ALPHA,
        topic_word_prior=None, random_state=run.seed, callbacks=callbacks,
    )  # fmt: skip


def simulate(run: Run, folder: str, timing: dict) -> dict:
    """Carry out `run` on the virtual cluster; times in the result are the cluster's."""
    train, test, tuning = split(str(Path(folder) / run.corpus), run.documents, run.words)
    held_out, history = tuning if run.tuning else test, []

    def observe(event) -> None:
        found = perplexity(event.state.natural(), run.topics, held_out)
        history.append([event.seconds, event.items, found])

    lda = estimator(run, timing, [observe]).fit(train)
    found = lda.exchanges_
    waited, computed = (
        sum(getattr(e, name) for e in found["exchanges"]) for name in ("waited", "seconds")
    )
    return {
        "history": history, "seconds": found["seconds"], "items": lda._state.items,
        "exchanges": len(found["exchanges"]), "bytes": found["bytes"],
        "master_busy": found["busy"] / found["seconds"], "waiting": waited / (waited + computed),
        "staleness": found["staleness"],
    }  # fmt: skip


def time_to(history: list, target: float) -> float | None:
    """Seconds until the perplexity was `target`, between evaluations log-linear; None if never."""
    before = None
    for seconds, _, found in history:
        if found <= target:
            if before is None or before[1] == found:
                return seconds
            share = (np.log(before[1]) - np.log(target)) / (np.log(before[1]) - np.log(found))
            return before[0] + float(share) * (seconds - before[0])
        before = seconds, found
    return None
