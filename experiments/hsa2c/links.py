"""Figure 5 on links: moves per second of workers that are slowed down, over TCP.

The master and the workers are two hosts, network namespaces of one machine, and the link between
them carries 1 Gbit/s or 100 Mbit/s each way, less by the same factor as in
:mod:`experiments.hsa2c.paced`, since our messages are shorter than those of the paper's network.
Workers sleep until a step has taken as long as at 1,500 moves a second.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

from experiments.cluster import namespaces
from experiments.hsa2c import figure5, paced
from experiments.hsa2c.runs import Runs
from experiments.mpiexec import ROOT_MAY, finish

NODES = (1, 2, 4, 8)
REPEATS = 3
MASTER, WORKERS = 1, 2  # hosts
LONGEST = 900.0  # seconds of all fits of one link and n


def make(runs: Runs, args) -> list[dict]:
    """A row for each link, B and n, with the rates of all repeats."""
    rows = []
    for link in paced.LINKS:
        for n in args.nodes or NODES:
            cell = {**figure5.SETTINGS, "link": link, "n": n}
            # Workers begin at the same moment: their first exchanges wait for those of all others.
            least = max(args.exchanges, 2 * n)
            settings = {
                **cell, "repeats": REPEATS,
                "exchanges": {str(B): max(least, 32 // B) for B in figure5.LOCAL_STEPS},
            }  # fmt: skip
            found = runs.get(over_tcp, settings, namespaces.possible())
            for B in figure5.LOCAL_STEPS if found is not None else ():
                fits = [fit for fit in found["fits"] if fit["B"] == B]
                rows.append(
                    {
                        **cell, "B": B, "fits": fits, "load": found["load"],
                        "rate": statistics.median(fit["rate"] for fit in fits),
                        "predicted": figure5.prediction(link, B, n),
                    }
                )  # fmt: skip
    return rows


def over_tcp(settings: dict) -> dict:
    """Fits with each B, all of one job of MPI, with the master on a host of its own.

    Raises
    ------
    RuntimeError
        Fewer bytes crossed the link than were exchanged, so that not all workers were behind it.
    """
    size = paced.exchange_bytes(settings["environment"], tuple(settings["hidden"]))
    load = os.getloadavg()[0]
    with namespaces.hosts((MASTER, WORKERS)):
        namespaces.limit(MASTER, paced.scaled(settings["link"], size))
        command = [
            *namespaces.mpiexec({MASTER: 1, WORKERS: settings["n"]}),
            sys.executable, "-m", "experiments.hsa2c.paced_rank", json.dumps(settings),
        ]  # fmt: skip
        process = subprocess.Popen(
            namespaces.on_host(MASTER, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, **ROOT_MAY},
        )  # fmt: skip
        fits = finish(process, LONGEST)
    if min(fit["crossed"] for fit in fits) < 1:
        raise RuntimeError(f"fewer bytes crossed the link than were exchanged: {fits}")
    return {"fits": fits, "load": load}


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown: medians of moves per second, predicted ones in brackets; how sure."""
    fits = [fit for row in rows for fit in row["fits"]]
    spread = max(
        max(abs(fit["rate"] / row["rate"] - 1) for fit in row["fits"]) for row in rows
    )
    crossed, pace = ([fit[key] for fit in fits] for key in ("crossed", "pace"))
    loads = [row["load"] for row in rows]
    return [
        *figure5.table(
            rows, "MEASURED between two network namespaces, the link so much slower as messages "
            "are shorter"
        ),
        f"Medians of {REPEATS} fits; none is further than {100 * spread:.1f} % from its median. "
        f"{min(crossed):.2f} to {max(crossed):.2f} bytes crossed the link for each byte of the "
        f"messages. Local steps took {min(pace):.3f} to {max(pace):.3f} times as long as those of "
        f"{paced.MOVES_A_SECOND:,.0f} moves per second. Load averages before: {min(loads):.1f} to "
        f"{max(loads):.1f}.",
    ]  # fmt: skip


def draw(rows: list[dict], path) -> None:
    """A panel for each link: dots are measured, lines are the formula."""
    figure5.draw(rows, path, "MEASURED over TCP, workers that sleep")
