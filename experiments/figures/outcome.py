"""What comes out of the kept runs: speed-ups, the paper's models of them, tables."""

from __future__ import annotations

import statistics

import numpy as np

from dpsvi.cluster.virtual import Timing
from experiments.figures.plan import PLACES, TOLERANCE, Plan
from experiments.figures.runs import NETWORKS, Run, Store, time_to

MEASURES = {
    "tsp": "TSP when all documents are done",
    "sooner": "TSP to the perplexity of serial SVI + 2 %",
}


def speedups(plan: Plan, store: Store, figure: str) -> list[dict]:
    """TSP (12) of every point, at the end and to one perplexity: medians and ranges over seeds.

    ``tsp`` is the paper's "at end of run": all visit the same documents; None where the perplexity
    is then too high (``speed`` is it all the same).  ``sooner`` is the time to the highest
    perplexity that is not, and None where half of the seeds or more do not get there.  Points count
    with the seeds that were run so far.
    """
    serial = [store.get(run) for run in plan.serial()]
    if None in serial:
        return []
    target = plan.target(store)
    rows = []
    for (panel, series, x), runs in plan.points(figure).items():
        runs = [run for run in runs if store.get(run) is not None]
        results = [store.get(run) for run in runs]
        good = [result for result in results if "failed" not in result]
        if len(good) <= len(results) / 2:
            continue
        slower = runs[0].slower  # serial SVI is all local steps
        finals = [result["history"][-1][2] for result in good]
        to_serial = [final / target * TOLERANCE for final in finals]
        there = statistics.median(finals) <= target
        tsp = [slower * serial[0]["seconds"] / result["seconds"] for result in good]
        sooner = []
        for run in runs:
            mine = time_to(store.get(run).get("history", []), target)
            one = slower * time_to(serial[run.seed]["history"], target)
            sooner.append(0.0 if mine is None else one / mine)
        rows.append(
            {
                "panel": panel, "series": series, "x": x,
                "speed": statistics.median(tsp), "tsp": statistics.median(tsp) if there else None,
                "tsp_range": [min(tsp), max(tsp)],
                "sooner": statistics.median(sooner) or None,
                "sooner_range": [min(sooner), max(sooner)],
                "perplexity": statistics.median(to_serial),
                "perplexity_range": [min(to_serial), max(to_serial)],
                "arrived": f"{sum(final <= target for final in finals)}/{len(runs)}",
                **{
                    name: statistics.median(result[name] for result in good)
                    for name in ("master_busy", "waiting")
                },
                "staleness": statistics.median(_mean(result["staleness"]) for result in good),
                "bytes_a_document": statistics.median(r["bytes"] / r["items"] for r in good),
                "steps": statistics.median(
                    r["items"] / runs[0].batch_size / r["exchanges"] / runs[0].p for r in good
                ),
                "run": runs[0], "result": good[0],
            }
        )  # fmt: skip
    return rows


def _mean(histogram: dict) -> float:
    total = sum(histogram.values())
    return sum(int(staleness) * number for staleness, number in histogram.items()) / total


def model_curves(rows: list[dict], timing: dict, store: Store, plan: Plan) -> dict:
    """The paper's speed-up models for every series: (x, exchanges serialised, overlapping).

    ``n p / (1 + n C / (B Y))`` and ``n p / (1 + C / (B Y))``, with the time Y of an update of the
    serial baseline and the time C of an exchange on the wire and at both ends.
    """
    serial = store.get(plan.serial()[0])
    update = serial["seconds"] / (serial["items"] / plan.base.batch_size)
    costs = Timing(**timing)
    a_byte = costs.touch + (costs.read + costs.merge) / 2
    curves = {}
    for row in rows:
        run, result = row["run"], row["result"]
        n_bytes = result["bytes"] / result["exchanges"]
        network = NETWORKS[run.network]
        exchange = n_bytes * (1 / network.bandwidth + a_byte) + 2 * network.latency
        exchange += costs.message + costs.turn
        ratio = exchange / (row["steps"] * update * run.slower)
        point = row["x"], run.n * run.p / (1 + run.n * ratio), run.n * run.p / (1 + ratio)
        curves.setdefault((row["panel"], row["series"]), []).append(point)
    return {name: tuple(zip(*points, strict=True)) for name, points in curves.items()}


def best(runs: list[Run], store: Store) -> Run:
    """The run with the lowest perplexity at its end."""
    return min(runs, key=lambda run: _final(store.get(run)))


def _final(result: dict) -> float:
    return result["history"][-1][2] if "history" in result else np.inf


def grid_tables(plan: Plan, store: Store) -> str:
    """Markdown: the schedules of serial SVI and those of the workers, the best first."""
    lines = [
        "Serial SVI, one pass, 1,000 documents for tuning:", "",
        "| kappa | tau0 | batch | perplexity |", "|---|---|---|---|",
    ]  # fmt: skip
    for run in sorted(plan.grid(), key=lambda run: _final(store.get(run))):
        final = _final(store.get(run))
        lines.append(f"| {run.kappa:g} | {run.tau0:g} | {run.batch_size} | {final:.1f} |")
    for strategy in plan.workers:
        runs = plan.rates(strategy)
        lines += [
            "", f"Strategy `{strategy}`, n = {runs[0].n}, p = {runs[0].p}, B = {runs[0].B}, "
            f"{runs[0].passes} passes, the same documents, a constant rate kept (`constant`) or "
            "divided by sqrt(M p B) (`per_T`, rule 13):", "",
            "| rate | rule | perplexity |", "|---|---|---|",
        ]  # fmt: skip
        for run in sorted(runs, key=lambda run: _final(store.get(run))):
            lines.append(f"| {run.rate:g} | {run.rule} | {_final(store.get(run)):.1f} |")
    return "\n".join(lines) + "\n"


def table(rows: list[dict]) -> str:
    """Markdown."""
    lines = [
        "| cluster | series | x | TSP at the end (range) | TSP to serial + 2 % (range) "
        "| perplexity / serial (range) | seeds within 2 % | steps of a thread between exchanges "
        "| master busy | workers waiting | mean D' | bytes a document |",
        "|" + 12 * "---|",
    ]  # fmt: skip
    for row in rows:
        ratios = []
        for name in MEASURES:
            low, high = row[f"{name}_range"]
            text = f"({low:.2f}-{high:.2f})"
            ratios.append(f"missing {text}" if row[name] is None else f"{row[name]:.2f} {text}")
        low, high = row["perplexity_range"]
        lines.append(
            f"| {row['panel']} | {row['series']} | {row['x']} | {' | '.join(ratios)} "
            f"| {row['perplexity']:.3f} ({low:.3f}-{high:.3f}) | {row['arrived']} "
            f"| {row['steps']:.1f} | {100 * row['master_busy']:.0f} % "
            f"| {100 * row['waiting']:.0f} % | {row['staleness']:.1f} "
            f"| {row['bytes_a_document']:,.0f} |"
        )
    return "\n".join(lines) + "\n"


def curves(plan: Plan, store: Store) -> dict[str, dict[str, list[Run]]]:
    """What Figure 4 shows, by panel and name: serial SVI, n = p with one B; those that were run."""
    found = {}
    for (panel, _, n), runs in plan.points("fig4").items():
        if runs[0].B == plan.B_of_curves:
            found.setdefault(panel, {"serial SVI": plan.serial()})[f"DPSVI-{n}"] = runs
    return {
        panel: {
            name: runs for name, runs in lines.items()
            if all("history" in (store.get(run) or {}) for run in runs)
        }
        for panel, lines in found.items()
    }  # fmt: skip


def curve(runs: list[Run], store: Store, panel: str) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and perplexity, medians over seeds; serial SVI's steps are as slow as others'."""
    slower = PLACES[panel].get("slower", 1.0)
    histories = [store.get(run)["history"] for run in runs]
    length = min(map(len, histories))
    seconds, perplexity = (
        np.median([[entry[i] for entry in history[:length]] for history in histories], axis=0)
        for i in (0, 2)
    )
    return seconds * (1.0 if runs[0].n else slower), perplexity


def curve_table(plan: Plan, store: Store) -> str:
    """Markdown."""
    target = plan.target(store)
    lines = [
        "| cluster | curve | virtual seconds | perplexity then | seconds to serial SVI's + 2 % |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    for panel, found in curves(plan, store).items():
        for name, runs in found.items():
            seconds, perplexity = curve(runs, store, panel)
            history = [[s, 0, p] for s, p in zip(seconds, perplexity, strict=True)]
            there = time_to(history, target)
            there = "missing" if there is None else f"{there:.3g}"
            lines.append(
                f"| {panel} | {name} | {seconds[-1]:.3g} | {perplexity[-1]:.0f} | {there} |"
            )
    return "\n".join(lines) + "\n"
