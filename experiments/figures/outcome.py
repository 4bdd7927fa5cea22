"""What comes out of the kept runs: speed-ups, the paper's models of them, tables."""

from __future__ import annotations

import statistics

import numpy as np

from dpsvi.cluster.virtual import Timing
from experiments.figures.plan import DECAY, PAPER, PLACES, RULE, TOLERANCE, Plan, Problem
from experiments.figures.runs import NETWORKS, Run, time_to
from experiments.figures.store import Store

MEASURES = {
    "tsp": "TSP (12): to serial SVI's perplexity + 2 %",
    "speed": "documents per second / serial SVI's",
}
STRICTER = (1.01, 1.005)  # of the perplexity of serial SVI, beside TOLERANCE


def speedups(plan: Problem, store: Store, figure: str) -> list[dict]:
    """What each point of a figure comes to, against serial SVI: medians and ranges over seeds.

    ``tsp`` is (12), the ratio of the times at which both are at one held-out perplexity, that of
    serial SVI at its end + 2 %; None where half of the seeds or more do not get there; ``stricter``
    is the same at + 1 % and at + 0.5 %.  ``speed`` is the ratio of the times in which both visit
    all documents, and ``ended`` says whether perplexity is then within 2 %.  ``paired`` is the mean
    over seeds of the last perplexity by that of serial SVI with the same seed.  Points count with
    the seeds that were run so far.
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
        finals = [_final(result) for result in good]
        to_serial = [final / target * TOLERANCE for final in finals]
        paired = [
            _final(result) / _final(serial[run.seed])
            for run, result in zip(runs, results, strict=True) if "failed" not in result
        ]  # fmt: skip
        speed = [slower * serial[0]["seconds"] / result["seconds"] for result in good]
        tsp, *stricter = (
            [_tsp(store.get(run), serial[run.seed], slower, share / TOLERANCE * target)
             for run in runs]
            for share in (TOLERANCE, *STRICTER)
        )  # fmt: skip
        rows.append(
            {
                "panel": panel, "series": series, "x": x,
                "tsp": statistics.median(tsp) or None, "tsp_range": [min(tsp), max(tsp)],
                "stricter": [statistics.median(ratios) or None for ratios in stricter],
                "arrived": f"{sum(ratio > 0 for ratio in tsp)}/{len(runs)}",
                "speed": statistics.median(speed), "speed_range": [min(speed), max(speed)],
                "ended": statistics.median(finals) <= target,
                "perplexity": statistics.median(to_serial),
                "perplexity_range": [min(to_serial), max(to_serial)],
                "paired": statistics.mean(paired), "paired_range": [min(paired), max(paired)],
                **{
                    name: statistics.median(result[name] for result in good)
                    for name in ("master_busy", "waiting")
                },
                "staleness": statistics.median(_mean(result["staleness"]) for result in good),
                "bytes_a_document": statistics.median(r["bytes"] / r["items"] for r in good),
                "steps": statistics.median(
                    r["items"] / runs[0].batch / r["exchanges"] / runs[0].p for r in good
                ),
                "run": runs[0], "result": good[0],
            }
        )  # fmt: skip
    return rows


def _tsp(result: dict, serial: dict, slower: float, target: float) -> float:
    """(12) of one run; 0 if it does not get there, or if serial SVI does not."""
    mine, one = (time_to(r.get("history", []), target) for r in (result, serial))
    return 0.0 if mine is None or one is None else slower * one / mine


def _mean(histogram: dict) -> float:
    total = sum(histogram.values())
    return sum(int(staleness) * number for staleness, number in histogram.items()) / total


def model_curves(rows: list[dict], store: Store, plan: Problem) -> dict:
    """The paper's speed-up models for every series: (x, exchanges serialised, overlapping).

    ``n p / (1 + n C / (B Y))`` and ``n p / (1 + C / (B Y))``, with the time Y of an update of the
    serial baseline and the time C of an exchange on the wire and at both ends.
    """
    serial = store.get(plan.serial()[0])
    update = serial["seconds"] / (serial["items"] / plan.base.batch)
    costs = Timing(**store.timing)
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


def soonest(runs: list[Run], store: Store, serial: Run) -> Run:
    """The run that is first at the last perplexity of `serial` + 2 %; if none is, the best."""
    there = {run: _there(run, store, serial) for run in runs}
    arrived = [run for run in runs if there[run] is not None]
    return min(arrived, key=there.get) if arrived else best(runs, store)


def _final(result: dict) -> float:
    return result["history"][-1][2] if "history" in result else np.inf


def _there(run: Run, store: Store, serial: Run) -> float | None:
    """Passes until the last perplexity of `serial` + 2 %."""
    result = store.get(run)
    seconds = time_to(result.get("history", []), TOLERANCE * _final(store.get(serial)))
    return None if seconds is None else seconds / result["seconds"] * run.passes


def grid_tables(plan: Plan, store: Store) -> str:
    """Markdown: the schedules of serial SVI and the rates of the workers, the best first."""
    grid = sorted([*plan.grid(), *plan.rates(RULE)], key=lambda run: _final(store.get(run)))
    lines = [
        f"Serial SVI, passes: {grid[0].passes}, documents for tuning, one seed; the last column "
        "says after how many passes it is at the last perplexity of the best + 2 %:", "",
        "| rate | batch | perplexity | passes |", "|---|---|---|---|",
    ]  # fmt: skip
    for run in grid:
        rate = f"{run.rate:g}" if run.rate else f"(t + {run.tau0:g})^-{run.kappa:g}"
        lines.append(f"| {rate} | {run.batch_size} {_told(run, store, grid[0])}")
    for way in (DECAY, PAPER):
        runs = plan.rates(way)
        lines += [
            "", f"Workers, {way}, n = {runs[0].n}, p = {runs[0].p}, B = {runs[0].B}, "
            "the same documents and passes:", "",
            "| rate | perplexity | passes |", "|---|---|---|",
        ]  # fmt: skip
        lines += [f"| {run.rate:g} {_told(run, store, grid[0])}" for run in runs]
    return "\n".join(lines) + "\n"


def _told(run: Run, store: Store, serial: Run) -> str:
    there = _there(run, store, serial)
    there = "missing" if there is None else f"{there:.2f}"
    return f"| {_final(store.get(run)):.1f} | {there} |"


def table(rows: list[dict]) -> str:
    """Markdown."""
    lines = [
        "| cluster | series | x | TSP (12) (range) | seeds that get there "
        "| TSP at + 1 % | at + 0.5 % "
        "| documents per second / serial (range) | perplexity at the end / serial (range) "
        "| above serial with the same seed, mean (range) | batches of a thread between exchanges "
        "| master busy | workers waiting | mean D' | bytes a document |",
        "|" + 15 * "---|",
    ]  # fmt: skip
    for row in rows:
        tsp, speed, perplexity = (
            f"({row[name][0]:.{digits}f}-{row[name][1]:.{digits}f})"
            for name, digits in (("tsp_range", 2), ("speed_range", 2), ("perplexity_range", 3))
        )
        tsp = f"missing {tsp}" if row["tsp"] is None else f"{row['tsp']:.2f} {tsp}"
        stricter = ("missing" if ratio is None else f"{ratio:.2f}" for ratio in row["stricter"])
        above = "{:+.2%} ({:+.2%} to {:+.2%})".format(
            *(ratio - 1 for ratio in (row["paired"], *row["paired_range"]))
        )
        lines.append(
            f"| {row['panel']} | {row['series']} | {row['x']} | {tsp} | {row['arrived']} "
            f"| {' | '.join(stricter)} "
            f"| {row['speed']:.2f} {speed} | {row['perplexity']:.3f} {perplexity} | {above} "
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


def curve(runs: list[Run], store: Store, panel: str) -> np.ndarray:
    """Seconds, held-out and training perplexity, medians over seeds, from t = 0 on.

    Serial SVI's steps are as slow as others'.
    """
    slower = PLACES[panel].get("slower", 1.0)
    histories = [store.get(run)["history"] for run in runs]
    length = min(map(len, histories))
    found = np.median([np.array(history[:length])[:, [0, 2, 3]] for history in histories], axis=0)
    found[:, 0] *= 1.0 if runs[0].n else slower
    return found.T


def curve_table(plan: Plan, store: Store) -> str:
    """Markdown."""
    target = plan.target(store)
    lines = [
        "| cluster | curve | seconds to serial SVI's perplexity + 2 % | virtual seconds "
        "| held-out perplexity then | training perplexity then |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for panel, found in curves(plan, store).items():
        for name, runs in found.items():
            seconds, held_out, training = curve(runs, store, panel)
            there = time_to([[s, 0, p] for s, p in zip(seconds, held_out, strict=True)], target)
            there = "missing" if there is None else f"{there:.3g}"
            lines.append(
                f"| {panel} | {name} | {there} | {seconds[-1]:.3g} | {held_out[-1]:.0f} "
                f"| {training[-1]:.0f} |"
            )
    return "\n".join(lines) + "\n"
