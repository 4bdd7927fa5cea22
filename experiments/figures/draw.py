"""Figures and tables from kept results alone."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np

from experiments.figures.plan import Plan
from experiments.figures.runs import NETWORKS, Run, Store, time_to

TITLES = {
    "fig1": ("Figure 1: workers, one thread each", "workers n"),
    "fig2": ("Figure 2: threads of one worker", "threads p"),
    "fig3": ("Figure 3: n workers of n threads", "n = p"),
    "beyond": ("Beyond the paper: one thread a worker, 10 GbE", "workers n"),
}


def speedups(plan: Plan, store: Store, figure: str) -> list[dict]:
    """TSP (12) of every point: medians and ranges over seeds; None where one did not arrive."""
    rows = []
    for (series, x), runs in plan.points(figure, store).items():
        results = [store.get(run) for run in runs]
        if any(result is None for result in results):
            continue
        ratios = []
        for run, result in zip(runs, results, strict=True):
            serial = time_to(store.get(plan.serial()[run.seed])["history"], run.stop_at)
            mine = time_to(result.get("history", []), run.stop_at)
            ratios.append(None if mine is None else serial / mine)
        results = [result for result in results if "failed" not in result]
        if not results:
            continue
        arrived = [ratio for ratio in ratios if ratio is not None]
        whole = len(arrived) == len(ratios)
        rows.append(
            {
                "series": series, "x": x, "tsp": statistics.median(arrived) if whole else None,
                "range": [min(arrived), max(arrived)] if whole else None,
                "arrived": f"{len(arrived)}/{len(ratios)}",
                **{
                    name: statistics.median(result[name] for result in results)
                    for name in ("master_busy", "waiting")
                },
                "staleness": statistics.median(_mean(result["staleness"]) for result in results),
                "bytes_a_document": statistics.median(r["bytes"] / r["items"] for r in results),
                "steps": statistics.median(
                    r["items"] / runs[0].batch_size / r["exchanges"] / runs[0].p for r in results
                ),
                "run": runs[0], "result": results[0],
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
    a_byte = timing["touch"] + (timing["read"] + timing["merge"]) / 2
    curves = {}
    for row in rows:
        run, result = row["run"], row["result"]
        n_bytes = result["bytes"] / result["exchanges"]
        network = NETWORKS[run.network]
        exchange = n_bytes * (1 / network.bandwidth + a_byte) + timing["message"]
        exchange += 2 * network.latency
        ratio = exchange / (row["steps"] * update)
        point = row["x"], run.n * run.p / (1 + run.n * ratio), run.n * run.p / (1 + ratio)
        curves.setdefault(row["series"], []).append(point)
    return {name: tuple(zip(*points, strict=True)) for name, points in curves.items()}


def grid(runs: list[Run], store: Store) -> list[dict]:
    """The baseline's settings, the best first."""
    rows = [{"run": run, "perplexity": store.get(run)["history"][-1][2]} for run in runs]
    return sorted(rows, key=lambda row: row["perplexity"])


def grid_table(rows: list[dict]) -> str:
    """Markdown."""
    lines = ["| kappa | tau0 | batch | perplexity after one pass |", "|---|---|---|---|"]
    for row in rows:
        run = row["run"]
        lines.append(
            f"| {run.kappa:g} | {run.tau0:g} | {run.batch_size} | {row['perplexity']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def table(rows: list[dict]) -> str:
    """Markdown."""
    lines = [
        "| series | x | TSP (range) | seeds that arrived | steps of a thread between exchanges "
        "| master busy | workers waiting | mean D' | bytes a document |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        low, high = row["range"] or (None, None)
        tsp = "missing" if row["tsp"] is None else f"{row['tsp']:.2f} ({low:.2f}-{high:.2f})"
        lines.append(
            f"| {row['series']} | {row['x']} | {tsp} | {row['arrived']} "
            f"| {row['steps']:.1f} | {100 * row['master_busy']:.0f} % "
            f"| {100 * row['waiting']:.0f} % | {row['staleness']:.1f} "
            f"| {row['bytes_a_document']:,.0f} |"
        )
    return "\n".join(lines) + "\n"


def speedup_figure(
    rows: list[dict], figure: str, path: Path, models: dict, measured: list[dict]
) -> None:
    """TSP over the number of workers or threads; a panel for each network.

    Parameters
    ----------
    rows : list of dict
        From :func:`speedups`: simulated.
    models : dict
        Curves (x, serialised, overlapping) of the paper's models, by series.
    measured : list of dict
        Points with ``x`` and ``tsp``: measured on the cores of this machine.
    """
    plt = pyplot()
    panels = [network for network in NETWORKS if any(network in r["series"] for r in rows)] or [""]
    figure_, axes = plt.subplots(1, len(panels), figsize=(5.6 * len(panels), 4.2), squeeze=False)
    title, label = TITLES[figure]
    for axis, network in zip(axes[0], panels, strict=True):
        mine = [row for row in rows if network in row["series"]]
        names = list(dict.fromkeys(row["series"] for row in mine))
        for number, name in enumerate(names):
            colour = f"C{number}"
            points = [r for r in mine if r["series"] == name and r["tsp"] is not None]
            xs, ys = [r["x"] for r in points], [r["tsp"] for r in points]
            bars = np.array([[r["tsp"] - r["range"][0], r["range"][1] - r["tsp"]] for r in points])
            axis.errorbar(
                xs, ys, bars.T if len(points) else None, fmt="-o", color=colour, capsize=2,
                markersize=4, label=name.split(f", {network}")[0] if network else name,
            )  # fmt: skip
            gone = [r["x"] for r in mine if r["series"] == name and r["tsp"] is None]
            axis.plot(gone, [0.03] * len(gone), "x", color=colour,
                      transform=axis.get_xaxis_transform())  # fmt: skip
            if name in models:
                x, serialised, overlapping = models[name]
                faint = {"color": colour, "alpha": 0.6, "linewidth": 1}
                first = number == 0
                axis.plot(x, serialised, ":", **faint, label="model: in turn" if first else None)
                axis.plot(x, overlapping, "--", **faint, label="model: at once" if first else None)
        if measured:
            axis.plot(
                [m["x"] for m in measured], [m["tsp"] for m in measured], "k*", markersize=10,
                label="measured here, no network, against 1",
            )  # fmt: skip
        xs = sorted({row["x"] for row in mine})
        if figure == "beyond":
            axis.set(xscale="log")
            if any(row["tsp"] is not None for row in mine):
                axis.set(yscale="log")
        elif figure != "fig3":
            axis.plot(xs, xs, color="0.8", zorder=0)
        axis.set_xticks(xs, [str(x) for x in xs])
        axis.minorticks_off()
        axis.set(xlabel=label, ylabel="TSP", title=network or None)
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize=8)
    figure_.suptitle(f"{title} (SIMULATED where not said otherwise)", fontsize=10)
    save(figure_, path)


def convergence_figure(plan: Plan, store: Store, path: Path) -> None:
    """Figure 4: held-out perplexity over time for n = p, the largest B, both networks."""
    plt = pyplot()
    B = plan.Bs[-1]
    figure, axes = plt.subplots(1, len(NETWORKS), figsize=(5.6 * len(NETWORKS), 4.2), sharey=True)
    points = plan.points("fig4", store)
    for axis, network in zip(axes, NETWORKS, strict=True):
        curves = {0: [store.get(run) for run in plan.serial()]}
        for (series, n), runs in points.items():
            if series == f"B = {B}, {network}":
                curves[n] = [store.get(run) for run in runs]
        for n, results in curves.items():
            if any(result is None or "failed" in result for result in results):
                continue
            length = min(len(result["history"]) for result in results)
            seconds, found = (
                np.median([[h[i] for h in r["history"][:length]] for r in results], axis=0)
                for i in (0, 2)
            )
            axis.plot(seconds, found, "-o" if n else "-", color=None if n else "black",
                      markersize=3, label=f"DPSVI-{n}" if n else "serial SVI")  # fmt: skip
        axis.set(xscale="log", xlabel="virtual seconds", title=network)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("held-out perplexity")
    axes[0].legend(fontsize=8)
    figure.suptitle(f"Figure 4: n workers of n threads, B = {B} (SIMULATED)", fontsize=10)
    save(figure, path)


def pyplot():
    """Matplotlib without a screen."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    return plt


def save(figure, path: Path) -> None:
    """Write PNG and SVG."""
    figure.tight_layout()
    for end in (".png", ".svg"):
        # The same figure, the same file: no date.
        plain = dict.fromkeys(("Creator", "Date", "Format", "Type")) if end == ".svg" else None
        figure.savefig(path.with_suffix(end), dpi=120, metadata=plain)
    pyplot().close(figure)
