"""``python -m experiments.many_topics``: what a pass of LDA costs as the number of topics grows.

Each local step is fitted to a corpus with each number of topics, one thread, the same seed.  What
is compared is the processor time that a pass takes for each (document, word) pair, without what
comes before the first and after the last step; the held-out perplexity of the topics (document
completion, with the alpha that the model ends with); the bytes that are kept of each pair; and the
most memory that the process has had by then, reading the corpus included.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

from dpsvi import DPSVILDA
from experiments.held_out import load_split
from experiments.provenance import described, provenance


def fit(train, test, **settings) -> dict:
    """One fit: microseconds a pair and pass, perplexity, processor time of all of it."""
    times: list[tuple[float, float]] = []
    started = time.process_time()
    lda = DPSVILDA(
        **settings, n_jobs=1, engine="serial",
        callbacks=[lambda event: times.append((event.epoch, time.process_time()))],
    ).fit(train)  # fmt: skip
    seconds = time.process_time() - started
    (first, begun), (last, ended) = times[0], times[-1]
    return {
        "microseconds": 1e6 * (ended - begun) / ((last - first) * train.nnz),
        "perplexity": lda.perplexity(test), "processor_seconds": seconds,
        "bytes_a_pair": lda._state.shared.value_memory.nbytes / train.nnz,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,  # of KiB
    }  # fmt: skip


def table(rows: list[dict]) -> str:
    """Markdown: a line for each corpus, local step and number of topics."""
    lines = [
        "| corpus | local step | K | passes | µs a pair and pass | of the fewest topics' | "
        "seconds of the fit | perplexity | bytes kept a pair | most memory so far, GiB |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        first = next(r for r in rows if (r["corpus"], r["step"]) == (row["corpus"], row["step"]))
        lines.append(
            f"| {row['corpus']} | {row['step']} | {row['topics']:,} | {row['passes']} | "
            f"{row['microseconds']:.2f} | {row['microseconds'] / first['microseconds']:.1f} | "
            f"{row['processor_seconds']:.0f} | {row['perplexity']:,.0f} | "
            f"{row['bytes_a_pair']:.0f} | {row['peak_gib']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Fit everything; write JSON and a table after each fit."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.many_topics", description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--topics", default="100,1000,10000", help="K (%(default)s)")
    parser.add_argument("--steps", default="sparse,collapsed", help="(%(default)s)")
    parser.add_argument("--most", type=int, default=1000,
                        help="topics of all steps but the sparse one (%(default)s)")  # fmt: skip
    parser.add_argument("--passes", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--documents", type=int, default=20_000, help="at most (%(default)s)")
    parser.add_argument("--alpha", type=float, help="the default prior by default")
    parser.add_argument("--eta", type=float, help="the default prior by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="many_topics", help="of the files")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/many_topics"))
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.many_topics", argv, ["numpy", "numba"], {"fit": args.seed, "split": 0}
    )
    args.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict] = []
    for path in args.corpora:
        train, test = load_split(path, args.documents)
        for step in args.steps.split(","):
            settings = {"local_step": step, "max_iter": args.passes, "random_state": args.seed}
            if args.alpha is not None:
                settings["doc_topic_prior"] = args.alpha
            if args.eta is not None:
                settings["topic_word_prior"] = args.eta
            DPSVILDA(2, **settings).fit(train[:50])  # what is compiled is compiled now
            for topics in map(int, args.topics.split(",")):
                if step != "sparse" and topics > args.most:
                    continue
                rows.append({
                    "corpus": path.name.removeprefix("docword.").split(".")[0], "step": step,
                    "documents": train.n_items, "topics": topics, "passes": args.passes,
                    **fit(train, test, n_components=topics, **settings),
                })  # fmt: skip
                print(table(rows).splitlines()[-1], flush=True)
                stem = args.out / args.name
                found = json.dumps({**source, "rows": rows}, indent=1)
                stem.with_suffix(".json").write_text(found + "\n")
                stem.with_suffix(".md").write_text(
                    f"# LDA with many topics\n\n{described(source)}\n\n{table(rows)}"
                )


if __name__ == "__main__":
    main()
