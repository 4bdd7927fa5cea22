"""``python -m experiments.checkpoints``: which share of a fit its checkpoints take."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dpsvi import DPSVILDA, load_corpus
from dpsvi.training.checkpoint import CheckpointFolder
from experiments.provenance import provenance


def main(argv=None) -> None:
    """Fit once with checkpoints; write how long they took."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.checkpoints", description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="between two")
    parser.add_argument("--folder", help="where to write; a temporary folder")
    parser.add_argument(
        "--out", type=Path, default=Path("experiments/results/cluster/checkpoints.json")
    )
    args = parser.parse_args(argv)
    source = provenance("experiments.checkpoints", argv, ["numpy", "safetensors"], {"fit": 0})
    spent, call = [], CheckpointFolder.__call__

    def timed(self, snapshot):
        started = time.perf_counter()
        call(self, snapshot)
        spent.append(time.perf_counter() - started)

    CheckpointFolder.__call__ = timed
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        started = time.perf_counter()
        lda = DPSVILDA(
            args.topics, max_iter=args.passes, random_state=0, checkpoint_dir=folder,
            checkpoint_seconds=args.seconds,
        ).fit(load_corpus(args.corpus))  # fmt: skip
        seconds = time.perf_counter() - started
    facts = {
        "rows": list(lda.components_.T.shape), "fit_seconds": seconds, "between": args.seconds,
        "checkpoints": len(spent), "seconds_each": float(np.median(spent)),
        "share": sum(spent) / seconds, "share_at_60_seconds": float(np.median(spent)) / 60,
    }  # fmt: skip
    print(json.dumps(facts))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({**source, **facts}, indent=1) + "\n")


if __name__ == "__main__":
    main()
