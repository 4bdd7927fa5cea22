"""``python -m experiments.strategies FOLDER``: every strategy beside every other, SIMULATED.

LDA on 20news of FOLDER, which holds docword.20news.txt.gz and labels.20news.txt.gz: 20 groups of as
many documents each.  Every fit makes the same number of passes over the same documents, on
``engine="simulated"``, whose costs are measured once on this machine.  What is asked:

* how far from serial SVI is the held-out perplexity with n workers, who draw from all documents?
* how far with one group a worker, so that no worker ever sees what another one does?
* how much longer does a fit take in which one worker is ten times slower?
* how many bytes does a document cost?
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpsvi import DPSVILDA, VirtualCluster, strategies
from dpsvi.cluster.virtual import TEN_GIGABIT, Timing
from dpsvi.corpus import Corpus, load_corpus
from dpsvi.errors import DivergedError
from experiments.provenance import described, provenance
from experiments.quality.documents import read_labels

GROUPS = 20
ALPHA = 0.1
SLOW = 10.0
# What is no default: a step that counts several times in the long run must be the smaller for it.
OWN = {
    "momentum": {"momentum": 0.5},
    "diloco": {"momentum": 0.5, "outer_rate": 0.5},
}


def load(folder: Path, documents: int | None) -> tuple[Corpus, Corpus]:
    """Training documents, of which the i-th is of group ``i % 20``, and 1,000 test documents.

    Parameters
    ----------
    folder : Path
    documents : int or None
        Of a group, at most.
    """
    corpus = load_corpus(folder / "docword.20news.txt.gz")
    labels, _ = read_labels(folder / "labels.20news.txt.gz", corpus.n_items)
    order = np.random.default_rng(0).permutation(corpus.n_items)
    test, rest = order[:1000], order[1000:]
    members = [rest[labels[rest] == group] for group in range(GROUPS)]
    each = min(documents or len(rest), *(len(found) for found in members))
    train = np.stack([found[:each] for found in members], axis=1).ravel()
    return corpus.select(train), corpus.select(test)


class Trial:
    """One corpus, one set of costs; a row of numbers for every strategy.

    Parameters
    ----------
    train, test : Corpus
    args : argparse.Namespace
    """

    def __init__(self, train: Corpus, test: Corpus, args):
        self.train, self.test, self.args = train, test, args
        self.timing: Timing | None = None

    def fit(self, seed: int, strategy: str = "decay", n: int = 1, **options) -> dict:
        """Perplexity, virtual seconds and bytes a document of one fit; or why there are none."""
        args = self.args
        cluster = VirtualCluster(
            n_workers=n, network=TEN_GIGABIT, timing=self.timing, strategy=strategy,
            strategy_options=args.own.get(strategy, {}), seed=seed, **options,
        )  # fmt: skip
        lda = DPSVILDA(
            args.topics, engine="simulated", cluster=cluster, batch_size=args.batch_size,
            max_iter=args.passes, doc_topic_prior=ALPHA, random_state=seed,
        )  # fmt: skip
        try:
            lda.fit(self.train)
        except DivergedError as error:
            return {"failed": str(error)}
        found = lda.exchanges_
        self.timing = self.timing or replace(found["timing"], spread=(1.0,))
        return {
            "perplexity": lda.perplexity(self.test), "seconds": found["seconds"],
            "bytes": found["bytes"] / lda._state.items, "exchanges": len(found["exchanges"]),
        }  # fmt: skip

    def row(self, strategy: str, seed: int) -> dict:
        """All answers for a strategy; the slow worker is one of `args.apart`."""
        n, apart = self.args.workers, self.args.apart
        found = {f"n = {k}": self.fit(seed, strategy, k) for k in n}
        if not self.args.only_n:
            found["one group each"] = self.fit(seed, strategy, GROUPS, sharding="shard")
            found["none slow"] = self.fit(seed, strategy, apart)
            found["one slow"] = self.fit(seed, strategy, apart, stragglers=(1 / apart, SLOW))
        return found


def table(serial: list[dict], rows: dict[str, list[dict]], args) -> str:
    """Markdown: medians over seeds; perplexities in per cent above serial SVI's."""
    base = statistics.median(found["perplexity"] for found in serial)
    if args.only_n:
        return _short_table(base, rows, args)
    conditions = [*(f"n = {n}" for n in args.workers), "one group each"]
    lines = [
        f"Serial SVI: perplexity {base:,.0f}. Per cent above it, with workers that draw from all "
        f"documents and with one of {GROUPS} groups a worker; how much longer a fit of "
        f"{args.apart} workers takes if one of them is {SLOW:g} times slower; bytes a document at "
        f"n = {args.workers[-1]}.\n",
        f"| strategy | {' | '.join(conditions)} | one slow | bytes a document |",
        "| --- |" + " ---: |" * (len(conditions) + 2),
    ]
    for strategy, found in rows.items():
        cells = [_above(found, name, base) for name in conditions]
        slow = _ratio(found, "one slow", "none slow")
        n_bytes = _median(found, f"n = {args.workers[-1]}", "bytes")
        cells += [slow, "-" if n_bytes is None else f"{n_bytes:,.0f}"]
        lines.append(f"| {strategy} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _short_table(base, rows, args) -> str:
    """What `table` says of workers that draw from all documents."""
    lines = [
        f"Serial SVI: perplexity {base:,.0f}. Per cent above it, with n workers that draw from all "
        f"documents; bytes a document at n = {args.workers[-1]}, sent and received.\n",
        f"| strategy | {' | '.join(f'n = {n}' for n in args.workers)} | bytes a document |",
        "| --- |" + " ---: |" * (len(args.workers) + 1),
    ]
    for strategy, found in rows.items():
        cells = [_above(found, f"n = {n}", base) for n in args.workers]
        n_bytes = _median(found, f"n = {args.workers[-1]}", "bytes")
        own = ", ".join(f"{k} {v:g}" for k, v in args.own.get(strategy, {}).items())
        name = f"{strategy}, {own}" if own else strategy
        lines.append(f"| {name} | {' | '.join(cells)} | {n_bytes:,.0f} |")
    return "\n".join(lines) + "\n"


def _median(found, name, key):
    values = [one[name][key] for one in found if key in one[name]]
    return statistics.median(values) if values else None


def _above(found, name, base):
    perplexity = _median(found, name, "perplexity")
    return "diverged" if perplexity is None else f"{100 * (perplexity / base - 1):+.1f} %"


def _ratio(found, name, other):
    seconds, without = _median(found, name, "seconds"), _median(found, other, "seconds")
    return "-" if seconds is None or without is None else f"{seconds / without:.1f} times"


def main(argv=None) -> None:
    """Make all fits; write JSON and the table after each strategy."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.strategies", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="some strategies (all)")
    parser.add_argument("--workers", default="4,16,64", help="n (%(default)s)")
    parser.add_argument("--apart", type=int, default=8, help="n beside one that is slow")
    parser.add_argument("--only-n", action="store_true", help="neither groups nor a slow worker")
    parser.add_argument(
        "--option", action="append", default=[], metavar="STRATEGY.NAME=VALUE",
        help="an option of a strategy, in the place of all that it has here",
    )  # fmt: skip
    parser.add_argument("--documents", type=int, help="of a group, at most")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/strategies"))
    args = parser.parse_args(argv)
    args.workers = [int(n) for n in args.workers.split(",")]
    chosen: dict[str, dict] = {}
    for option in args.option:
        name, value = option.split("=")
        strategy, name = name.split(".")
        chosen.setdefault(strategy, {})[name] = json.loads(value)
    args.own = {**OWN, **chosen}
    seeds = list(range(args.seeds))
    source = provenance(
        "experiments.strategies", argv, ["numpy", "numba"], {"fit": seeds, "split": 0}
    )
    trial, rows = Trial(*load(args.folder, args.documents), args), {}
    serial = [trial.fit(seed) for seed in seeds]
    args.out.mkdir(parents=True, exist_ok=True)
    for strategy in args.only.split(",") if args.only else strategies.names():
        rows[strategy] = [trial.row(strategy, seed) for seed in seeds]
        record = {**source, "simulated": True, "serial": serial, "rows": rows}
        (args.out / "strategies.json").write_text(json.dumps(record, indent=1) + "\n")
        text = f"# Strategies, simulated\n\n{described(source)}\n\n{table(serial, rows, args)}"
        (args.out / "strategies.md").write_text(text)
        print(text.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
