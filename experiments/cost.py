"""``python -m experiments.cost``: what a pass costs, over the number of rows and over K.

For every model the processor time of one thread for the steps of a pass, with all, half and a
quarter of the data and with several numbers of components.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from dpsvi import models
from experiments.provenance import described, provenance
from experiments.record import kept

COMPONENTS = (4, 8, 16, 32)
SHARES = (1, 2, 4)  # of the data, 1 / share


def data_of(name: str, rng, n: int) -> tuple[dict, dict]:
    """Arguments of `fit` with about `n` rows, and parameters of the estimator."""
    X = rng.normal(size=(n, 8)) + 4 * rng.integers(3, size=(n, 1))
    if name == "hmm":
        return {"X": X, "lengths": [100] * (n // 100)}, {"batch_size": 8}
    if "hierarchical" in name:
        y = X @ rng.normal(size=8)
        y = (y > np.median(y)).astype(float) if "probit" in name else y + rng.normal(size=n)
        return {"X": X, "y": y, "groups": np.arange(n) // 50}, {"batch_size": 16}
    if name in ("lda", "hdp") or "factorization" in name:
        return {"X": rng.poisson(0.2, size=(n, 400)).astype(float)}, {"batch_size": 64}
    return {"X": X}, {"batch_size": 256}


def seconds(name: str, n: int, n_components: int | None, repeats: int) -> float:
    """Processor seconds of one thread for the steps of one pass, the median of several passes."""
    estimator = models.get(name)
    data, params = data_of(name, np.random.default_rng(0), n)
    if n_components is not None:
        params["n_components"] = n_components
    looks = []
    estimator(
        engine="serial", max_iter=repeats + 1, random_state=0, evaluate_every=1.0,
        callbacks=[lambda event: looks.append(time.process_time())], **params,
    ).fit(**data)  # fmt: skip
    return median(np.diff(looks))


def main(argv=None) -> None:
    """Measure all models; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.cost", description=__doc__)
    parser.add_argument("--rows", type=int, default=16_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=models.names(), action="append", help="[all]")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/cost"))
    parser.add_argument("--redraw", action="store_true", help="the table, from what was kept")
    args = parser.parse_args(argv)
    source = provenance("experiments.cost", argv, ["numpy", "numba"], {"data": 0, "fit": 0})
    path = args.out / "cost.json"
    found = kept(path, source, None if args.redraw else lambda: measurements(args))
    path.with_suffix(".md").write_text(table(found["rows"], found))


def measurements(args) -> list[dict]:
    """Seconds of every model, by rows and by components."""
    rows = []
    for name in args.only or models.names():
        sizes = () if "hierarchical" in name else COMPONENTS
        row = {
            "model": name,
            "data": {args.rows // s: seconds(name, args.rows // s, None, args.repeats)
                     for s in SHARES},
            "components": {k: seconds(name, args.rows, k, args.repeats) for k in sizes},
        }  # fmt: skip
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def table(rows, source) -> str:
    """Milliseconds a pass, as Markdown."""
    head = [f"{n} rows" for n in rows[0]["data"]] + [f"K = {k}" for k in COMPONENTS]
    lines = [
        "# Cost of a pass", "", described(source), "",
        "Milliseconds of one thread's processor time; the default K over the number of rows, then "
        "all rows over K.  Features and words stay as they are.", "",
        "| model | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|",
    ]  # fmt: skip
    for row in rows:
        times = [*row["data"].values(), *row["components"].values()]
        cells = [f"{1000 * t:.1f}" for t in times] + [""] * (len(head) - len(times))
        lines.append(f"| {row['model']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
