"""Figure 5 on links: moves per second of workers that are slowed down, over TCP.

The master and the workers are two hosts, network namespaces of one machine, and the link between
them carries 1 Gbit/s or 100 Mbit/s each way, less by the same factor as in
:mod:`experiments.hsa2c.paced`, since our messages are shorter than those of the paper's network.
Workers sleep until a step has taken as long as at 1,500 moves a second.  Linux, root, Open MPI.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from experiments.cluster import namespaces
from experiments.hsa2c import figure5, paced
from experiments.hsa2c.runs import Runs
from experiments.mpiexec import ROOT_MAY, finish

NODES = (1, 2, 4, 8)
MASTER, WORKERS = 1, 2  # hosts
LONGEST = 300.0  # seconds of a fit


def make(runs: Runs, args) -> list[dict]:
    """A row for each link, B and n."""
    rows = []
    for link in paced.LINKS:
        for B in figure5.LOCAL_STEPS:
            for n in args.nodes or NODES:
                cell = {**figure5.SETTINGS, "link": link, "B": B, "n": n}
                exchanges = max(args.exchanges, 64 // B)
                found = runs.get(over_tcp, {**cell, "exchanges": exchanges}, os.geteuid() == 0)
                if found is not None:
                    rows.append({**cell, **found, "predicted": figure5.prediction(link, B, n)})
    return rows


def over_tcp(settings: dict) -> dict:
    """Moves per second and the share of time that workers wait, with a master far from them."""
    moves = figure5.moves(settings)
    size = paced.exchange_bytes(settings["environment"], tuple(settings["hidden"]))
    load = os.getloadavg()[0]
    with namespaces.hosts((MASTER, WORKERS)):
        namespaces.limit(MASTER, paced.scaled(settings["link"], size))
        command = [
            *namespaces.mpiexec({MASTER: 1, WORKERS: settings["n"]}),
            sys.executable, "-m", "experiments.hsa2c.paced_rank", json.dumps(settings), str(moves),
        ]  # fmt: skip
        process = subprocess.Popen(
            namespaces.on_host(MASTER, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, **ROOT_MAY},
        )  # fmt: skip
        return {**finish(process, LONGEST), "load": load}


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown: moves per second, predicted ones in brackets."""
    return figure5.table(rows, "measured between two network namespaces, a link so much slower as "
                               "messages are shorter")  # fmt: skip


def draw(rows: list[dict], path) -> None:
    """A panel for each link: dots are measured, lines are the formula."""
    figure5.draw(rows, path, "measured over TCP, workers that sleep")
