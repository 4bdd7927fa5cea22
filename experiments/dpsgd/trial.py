"""Table and picture of Theorem 3.1 on trial."""

from __future__ import annotations

import numpy as np

from experiments.dpsgd.theorem import (
    BOUNDED,
    LENGTHS,
    NAMES,
    POWERS,
    WORSE,
    bound,
    leaving,
    medians,
    scaled,
)


def table(rows) -> list[str]:
    """Lines of Markdown."""
    lines = [
        "| sweep | | T | n | M | p | B | staleness | rate | mean \\|grad\\|^2 | times serial SGD's "
        "| times sqrt(T M p B) | loss at the end |",
        "|" + 13 * "---|",
    ]
    slopes = []
    for sweep in ("T", *POWERS):
        for name, found in medians(rows, sweep).items():
            for r in found:
                lines.append(
                    f"| {sweep} | {name} | {r['T']} | {r['n']} | {r['M']} | {r['p']} | {r['B']} "
                    f"| {r['staleness']:.1f} | {r['rate']:.4f} | {r['norm']:.5f} "
                    f"| {r['times_serial']:.3f} | {scaled(r):.3f} | {r['loss']:.3f} |"
                )
            if sweep == "T":
                logs = np.log([[r["T"], r["norm"]] for r in found]).T
                slopes.append(f"{name}: {np.polyfit(*logs, 1)[0]:.2f}")
    lines += [
        "", f"Exponents of T, by least squares (-0.5 in the bound): {'; '.join(slopes)}.", "",
        f"Rates are c / sqrt(T M p B), c = sqrt(D / (L V^2)) = {r['c']:.3f}: D = {r['drop']:.2f}, "
        f"L = {r['L']:.2f}, V^2 = {r['V2']:.3f}.  The last column but one is at most "
        f"6 sqrt(L D V^2) = {bound(r):.1f} in (11).", "",
        f"Where the mean squared norm is {WORSE:g} times that of serial SGD with as many gradients "
        "and the same rate, log-linear between the settings above:", "",
        "| T | workers n | sqrt(T) | n / sqrt(T) | threads p | T^(1/4) | p / T^(1/4) |",
        "|" + 7 * "---|",
    ]  # fmt: skip
    for length in BOUNDED:
        cells = [str(length)]
        for sweep, power in POWERS.items():
            number, most = _left(rows, sweep, length)
            sign = "" if number else "> "
            number = number or most
            cells += [f"{sign}{number:.0f}", f"{length**power:.1f}"]
            cells.append(f"{sign}{number / length**power:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    for sweep in POWERS:
        points = [(length, _left(rows, sweep, length)[0]) for length in BOUNDED]
        points = [point for point in points if point[1]]
        if len(points) > 1:
            slope = np.polyfit(*np.log(points).T, 1)[0]
            lines += ["", f"{NAMES[sweep]} grows as T^{slope:.2f} (bound: T^{POWERS[sweep]:g})."]
    return lines


def _left(rows, sweep, length) -> tuple[float | None, int]:
    """Where a sweep leaves serial SGD, and how far it goes."""
    found = medians(rows, sweep)[f"T = {length}"]
    return leaving(found, sweep), found[-1][NAMES[sweep]]


def plot(rows, path) -> None:
    """Norms over T; times serial SGD's over workers and over threads; where they leave it."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 8))
    first, last = axes[0, 0], axes[1, 1]
    for name, found in medians(rows, "T").items():
        first.plot([r["T"] for r in found], [r["norm"] for r in found], "o-", label=name)
    limit = bound(rows[0])
    first.plot(LENGTHS, limit / np.sqrt(LENGTHS), "k:", label="bound (11), M p B = 1")
    first.set(xlabel="global steps T", ylabel="mean |grad f(v_t)|^2")
    for axis, (sweep, power) in zip((axes[0, 1], axes[1, 0]), POWERS.items(), strict=True):
        key, root = NAMES[sweep], round(1 / power)
        for number, (name, found) in enumerate(medians(rows, sweep).items()):
            axis.plot(
                [r[key] for r in found], [r["times_serial"] for r in found], "o-",
                color=f"C{number}", label=f"{name}, dashed: T^(1/{root})",
            )  # fmt: skip
            axis.axvline(found[0]["T"] ** power, color=f"C{number}", ls="--", lw=1)
        axis.axhline(WORSE, color="k", ls=":", label=f"{WORSE:g}")
        axis.set(xlabel=f"{sweep} {key}", ylabel="mean |grad|^2 / serial SGD's")
    for number, (sweep, power) in enumerate(POWERS.items()):
        colour, lengths = f"C{number}", np.array(BOUNDED)
        left = [_left(rows, sweep, length) for length in BOUNDED]
        last.plot(lengths, lengths**power, "--", color=colour, label=f"T^{power:g}")
        for marker, points, label in (
            ("o-", [(t, n) for t, (n, _) in zip(BOUNDED, left, strict=True) if n], "reached"),
            ("^", [(t, n) for t, (m, n) in zip(BOUNDED, left, strict=True) if not m],
             "not reached at the most tried"),
        ):  # fmt: skip
            if points:
                last.plot(*zip(*points, strict=True), marker, color=colour,
                          label=f"{sweep} {NAMES[sweep]}, {label}")  # fmt: skip
    last.set(xlabel="global steps T", ylabel=f"number at {WORSE:g} times serial SGD's norm")
    for axis in axes.flat:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
        axis.margins(y=0.1)
    for axis, place in zip(
        axes.flat, ("lower left", "upper left", "center right", "lower right"), strict=True
    ):
        axis.legend(fontsize=8, loc=place)
    first.set_ylim(0.004, None)  # legends cover no point
    last.set_ylim(0.6, None)
    figure.suptitle("A network with 16 hidden units on 1,024 digits, SIMULATED cluster")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
