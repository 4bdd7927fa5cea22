"""Sentences about the figures: what came true of the paper, with the numbers."""

from __future__ import annotations

from experiments.figures.outcome import MEASURES

LINEAR = 0.8  # of n p times the first point: a speed-up above this share counts as linear


def sentences(rows: list[dict], kind: str) -> list[str]:
    """What the numbers of a figure say, beside what the paper says."""
    if kind == "beyond":
        said = walls(rows)
    elif kind == "steered":
        said = steered(rows)
    else:
        said = findings(rows, kind) + (milder(rows) if kind == "fig3" else [])
    return [seeds(rows), *said]


def seeds(rows: list[dict]) -> str:
    """How many seeds the points have, and which have fewer than the others."""
    numbers = [int(row["arrived"].split("/")[1]) for row in rows]
    several = len({row["panel"] for row in rows}) > 1
    fewer = [
        f"{row['panel'] + ', ' if several else ''}{row['series']} at {row['x']}: {number}"
        for row, number in zip(rows, numbers, strict=True) if number < max(numbers)
    ]  # fmt: skip
    if not fewer:
        return f"Seeds of every point: {max(numbers)}."
    return f"Seeds of a point: {max(numbers)}; of {'; '.join(fewer)}."


def walls(rows: list[dict]) -> list[str]:
    """Where each series stops to grow, and up to where its perplexity is that of serial SVI."""
    found = []
    for name in dict.fromkeys(row["series"] for row in rows):
        mine = [row for row in rows if row["series"] == name]
        most = max(row["speed"] for row in mine)
        wall = min(row["x"] for row in mine if row["speed"] >= 0.95 * most)
        there = [row["x"] for row in mine if row["tsp"] is not None]
        found.append(
            f"{name}: {most:.3g} times serial SVI's documents per second at most, from {wall} "
            "threads on; "
            + (f"perplexity within 2 % up to {max(there)} threads." if there
               else "perplexity never within 2 %.")
        )  # fmt: skip
    return found


def steered(rows: list[dict]) -> list[str]:
    """The best steered B against the best fixed one, in both measures."""
    found = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        for measure, name in MEASURES.items():
            best = {}
            for kind in ("fixed B", "steered B"):
                mine = [
                    r for r in rows
                    if (r["panel"], r["series"]) == (panel, kind) and r[measure] is not None
                ]  # fmt: skip
                if mine:
                    row = max(mine, key=lambda r: r[measure])
                    best[kind] = f"{row[measure]:.2f} ({row['x']:g})"
            found.append(
                f"{panel}; {name}: best fixed B {best.get('fixed B', 'missing')}, best steered B "
                f"(share of waiting) {best.get('steered B', 'missing')}."
            )
    return found


def findings(rows: list[dict], kind: str) -> list[str]:
    """Sentences: how far each series of a figure is linear, where it is best, where it ends.

    Parameters
    ----------
    rows : list of dict
        From :func:`experiments.figures.outcome.speedups`.
    kind : {"fig1", "fig2", "fig3"}
    """
    found = []
    for panel, name in dict.fromkeys((row["panel"], row["series"]) for row in rows):
        mine = [r for r in rows if (r["panel"], r["series"]) == (panel, name)]
        points = [row for row in mine if row["tsp"] is not None]
        if not points:
            found.append(f"{panel}; {name}: no point reached the perplexity of serial SVI.")
            continue
        one = points[0]["tsp"] / _threads(points[0], kind)
        linear = []
        for point in points:
            if point["tsp"] < LINEAR * one * _threads(point, kind):
                break
            linear.append(point["x"])
        best, last = max(points, key=lambda r: r["tsp"]), points[-1]
        missing = [str(r["x"]) for r in mine if r["tsp"] is None]
        sooner = max((r for r in mine if r["sooner"]), key=lambda r: r["sooner"], default=None)
        found.append(
            f"{panel}; {name}: {points[0]['tsp']:.2f} at {points[0]['x']}, linear from there "
            f"(at least {LINEAR:.0%} of it) up to {max(linear)}; best {best['tsp']:.2f} at "
            f"{best['x']}"
            + (f", {last['tsp']:.2f} at {last['x']}" if last["x"] != best["x"] else "")
            + (f"; to serial SVI's perplexity + 2 % at best {sooner['sooner']:.2f}, at "
               f"{sooner['x']}" if sooner else "")
            + (f"; missing at {', '.join(missing)}" if missing else "") + "."
        )  # fmt: skip
    return found


def _threads(row: dict, kind: str) -> int:
    """Product n p of a point."""
    return row["x"] ** 2 if kind == "fig3" else row["x"]


def milder(rows: list[dict]) -> list[str]:
    """Whether larger B slows down later (Figure 3's stated outcome), with the numbers.

    The slowing is the share of n p that the speed-up is, at the largest n = p that every B reached.
    """
    lines = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        kept: dict[int, dict] = {}
        for row in rows:
            if row["panel"] == panel and row["tsp"] is not None:
                kept.setdefault(row["run"].B, {})[row["x"]] = row["tsp"]
        common = set.intersection(*map(set, kept.values())) if len(kept) > 1 else set()
        if not common:
            lines.append(f"{panel}: whether larger B slows down less cannot be said.")
            continue
        x = max(common)
        shares = {B: kept[B][x] / x**2 for B in sorted(kept)}
        holds = list(shares.values()) == sorted(shares.values()) and len(set(shares.values())) > 1
        lines.append(
            f"{panel}: at n = p = {x} the speed-up is "
            + ", ".join(f"{share:.0%} of n p (B = {B})" for B, share in shares.items())
            + ": the paper's milder slowing for larger B "
            + ("holds." if holds else "does not hold.")
        )
    return lines
