"""``python -m experiments.first_fit``: how long a first fit takes, whose code is not compiled yet.

For every model two new processes, one after the other, with a folder of their own for compiled
code: it is empty for the first (*cold*) and filled for the second (*warm*).  Each imports the
model, makes small data, and measures one ``fit`` with the default parameters and two passes.  What
`fit` itself imports counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from dpsvi import models
from experiments.cost import data_of
from experiments.provenance import described, provenance

ROWS = 400
ALLOWED = {"cold": 5.0, "warm": 0.7}  # processor seconds


def fit(name: str) -> None:
    """Print what a fit of this process costs, as JSON."""
    from numba.core.event import install_recorder

    estimator = models.get(name)
    data, params = data_of(name, np.random.default_rng(0), ROWS)
    with install_recorder("numba:compile") as recorder:
        began, processor = time.perf_counter(), time.process_time()
        estimator(max_iter=2, random_state=0, **params).fit(**data)
        found = {"seconds": time.perf_counter() - began,
                 "processor": time.process_time() - processor}  # fmt: skip
    compiled = sum(event.is_start for _, event in recorder.buffer)
    print(json.dumps({**found, "compiled": compiled}))


def cold_and_warm(name: str) -> dict[str, dict]:
    """What :func:`fit` says in a process without compiled code, and in the next one."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"from experiments.first_fit import fit; fit({name!r})"
        return {
            kind: json.loads(subprocess.run(
                [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env={**os.environ, "NUMBA_CACHE_DIR": folder},
            ).stdout) for kind in ALLOWED
        }  # fmt: skip


def main(argv=None) -> None:
    """Measure all models; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.first_fit", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="the median counts [%(default)s]")
    parser.add_argument("--only", choices=models.names(), action="append", help="[all]")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/first_fit"))
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.first_fit", argv, ["numpy", "scikit-learn", "numba", "llvmlite"],
        {"data": 0, "fit": 0},
    )  # fmt: skip
    rows = []
    for name in args.only or models.names():
        runs = [cold_and_warm(name) for _ in range(args.repeats)]
        rows.append({"model": name, **{
            kind: {key: median(run[kind][key] for run in runs) for key in runs[0][kind]}
            for kind in ALLOWED
        }})  # fmt: skip
        print(json.dumps(rows[-1]), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "first_fit.json").write_text(json.dumps({**source, "rows": rows}, indent=1) + "\n")
    (args.out / "first_fit.md").write_text(table(rows, source))


def table(rows, source) -> str:
    """Seconds of the fits, as Markdown."""
    lines = [
        "# First fit", "", described(source), "",
        f"Cold: nothing is compiled yet; warm: the next process.  Small data ({ROWS} rows), two "
        "passes, one thread, imports excluded, medians.  A free machine takes no longer than the "
        "processor seconds; seconds are of this one, with all else that ran on it.  Allowed are "
        f"{ALLOWED['cold']:g} processor seconds cold and {ALLOWED['warm']:g} warm.", "",
        "| model | functions compiled | cold, processor s | s | warm, processor s | s | allowed |",
        "|---" * 7 + "|",
    ]  # fmt: skip
    for row in rows:
        missed = [kind for kind in ALLOWED if row[kind]["processor"] > ALLOWED[kind]]
        times = [f"{row[kind][key]:.2f}" for kind in ALLOWED for key in ("processor", "seconds")]
        lines.append(
            f"| {row['model']} | {row['cold']['compiled']:g} | " + " | ".join(times)
            + f" | {'no: ' + ', '.join(missed) if missed else 'yes'} |"
        )  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
