"""Sentences about the figures: what came true of the paper, with the numbers."""

from __future__ import annotations

from experiments.figures.outcome import MEASURES

LINEAR = 0.8  # of n p times the first point: documents per second above this count as linear


def sentences(rows: list[dict], kind: str) -> list[str]:
    """What the numbers of a figure say: first (12), at equal perplexity, then all else."""
    if kind == "steered":
        return [seeds(rows), *steered(rows)]
    said = [walls, *([milder] if kind == "fig3" else [])]
    return [headline(rows), seeds(rows), *(line for say in said for line in say(rows))]


def headline(rows: list[dict]) -> str:
    """The best speed-up of each panel at equal perplexity."""
    best = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        points = [row for row in rows if row["panel"] == panel and row["tsp"]]
        if not points:
            best.append(f"no point of {panel} gets there")
            continue
        row = max(points, key=lambda row: row["tsp"])
        low, high = row["tsp_range"]
        best.append(
            f"{row['tsp']:.2f} ({low:.2f}-{high:.2f}) with {_threads(row)} threads in all "
            f"({panel}; {row['series']} at {row['x']})"
        )
    return "TSP (12), the time to serial SVI's perplexity + 2 %, at best: " + "; ".join(best) + "."


def seeds(rows: list[dict]) -> str:
    """How many seeds points have in each panel, and which have fewer than others of their panel."""
    numbers = [int(row["arrived"].split("/")[1]) for row in rows]
    usual: dict[str, int] = {}
    for row, number in zip(rows, numbers, strict=True):
        usual[row["panel"]] = max(number, usual.get(row["panel"], 0))
    fewer = [
        f"{row['panel'] + ', ' if len(usual) > 1 else ''}{row['series']} at {row['x']}: {number}"
        for row, number in zip(rows, numbers, strict=True) if number < usual[row["panel"]]
    ]  # fmt: skip
    kinds = sorted(set(usual.values()))
    if len(kinds) == 1 and not fewer:
        return f"Seeds of every point: {kinds[0]}."
    found = str(kinds[0])
    if len(kinds) > 1:
        of = {n: "; ".join(panel for panel, most in usual.items() if most == n) for n in kinds}
        found = ", ".join(f"{n} ({panels})" for n, panels in of.items())
    return f"Seeds of a point: {found}{'; of ' if fewer else ''}{'; '.join(fewer)}."


def walls(rows: list[dict]) -> list[str]:
    """How each series grows: TSP (12), documents per second, the perplexity at the end."""
    found = []
    for panel, name in dict.fromkeys((row["panel"], row["series"]) for row in rows):
        mine = [row for row in rows if (row["panel"], row["series"]) == (panel, name)]
        there = [row for row in mine if row["tsp"]]
        missing = [str(row["x"]) for row in mine if not row["tsp"]]
        ended = [row["x"] for row in mine if row["ended"]]
        first, most = mine[0], max(mine, key=lambda row: row["speed"])
        linear = []
        for row in mine:
            if row["speed"] < LINEAR * first["speed"] / _threads(first) * _threads(row):
                break
            linear.append(row["x"])
        found.append(
            f"{panel}; {name}: TSP (12) "
            + ", ".join(f"{row['tsp']:.2f} at {row['x']}" for row in there)
            + (f"{', ' if there else ''}missing at {', '.join(missing)}" if missing else "")
            + f". Documents per second {first['speed']:.2f} at {first['x']}, linear from there "
            f"(at least {LINEAR:.0%} of it) up to {max(linear)}, at most {most['speed']:.2f}, at "
            f"{most['x']}; the last perplexity is within 2 % "
            + (f"at {', '.join(map(str, ended))}" if ended else "nowhere")
            + "; with the same seed it is, in the mean, above serial SVI's by "
            + ", ".join(f"{row['paired'] - 1:+.2%} at {row['x']}" for row in mine) + "."
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


def _threads(row: dict) -> int:
    """Product n p of a point."""
    return row["run"].n * row["run"].p


def milder(rows: list[dict]) -> list[str]:
    """Whether larger B slows down later (Figure 3's stated outcome), with the numbers.

    The slowing is the share of n p that the speed-up is, at the largest n = p that every B reached.
    """
    lines = []
    rows = [row for row in rows if row["run"].B is not None]  # where it is given
    for panel in dict.fromkeys(row["panel"] for row in rows):
        kept: dict[int, dict] = {}
        for row in rows:
            if row["panel"] == panel and row["tsp"]:
                kept.setdefault(row["run"].B, {})[row["x"]] = row["tsp"]
        common = set.intersection(*map(set, kept.values())) if len(kept) > 1 else set()
        if not common:
            lines.append(f"{panel}: whether larger B slows down less cannot be said.")
            continue
        x = max(common)
        shares = {B: kept[B][x] / x**2 for B in sorted(kept)}
        holds = list(shares.values()) == sorted(shares.values()) and len(set(shares.values())) > 1
        lines.append(
            f"{panel}: at n = p = {x} TSP (12) is "
            + ", ".join(f"{share:.0%} of n p (B = {B})" for B, share in shares.items())
            + ": the paper's milder slowing for larger B "
            + ("holds." if holds else "does not hold.")
        )
    return lines
