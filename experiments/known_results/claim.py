"""What a trial of a known result says: its claim, how it was tried, what came of it."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """What came of a trial.

    Parameters
    ----------
    parts : list of bool
        Whether each part of the claim holds.
    sentence : str
        The numbers that say so.
    columns : list of str
        Of the table; the first column has names.
    lines : list of list of str
    """

    parts: list[bool]
    sentence: str
    columns: list[str]
    lines: list[list[str]]

    @property
    def verdict(self) -> str:
        """Whether the claim holds here."""
        if all(self.parts):
            return "holds"
        return "holds in part" if any(self.parts) else "does not hold"


def summary(trials: dict) -> list[str]:
    """One line of Markdown for each trial: module name -> (module, outcome)."""
    lines = ["| claim of | about | here | what was found |", "| --- | --- | --- | --- |"]
    return lines + [
        f"| {module.SOURCE} | {module.TITLE} | {found.verdict} | {found.sentence} |"
        for module, found in trials.values()
    ]


def section(module, found: Outcome, described: str) -> list[str]:
    """The whole of a trial as Markdown."""
    rows = [found.columns, ["---"] + ["---:"] * (len(found.columns) - 1), *found.lines]
    return [
        f"## {module.TITLE}", "",
        f"*Claim ({module.SOURCE}).* {module.CLAIM}", "",
        f"*Trial.* {module.TRIAL}", "",
        f"*It {found.verdict}.* {found.sentence}", "",
        *("| " + " | ".join(row) + " |" for row in rows), "",
        described, "",
    ]  # fmt: skip
