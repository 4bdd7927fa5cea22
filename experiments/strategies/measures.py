"""How the table of a problem speaks of its scores, of lengths of fits and of their rates."""

from __future__ import annotations

from typing import NamedTuple

SLOW = 10.0  # times slower is a slow worker


class Measure(NamedTuple):
    """What is said of all fits of a problem.

    Parameters
    ----------
    factor : float
        That makes a loss of a difference of scores.
    tolerance : float
        What "as good as serial SVI" allows, in scores.
    length, rate : str
        What records call the length of a fit, and the parameter of the rates that is chosen for
        all.
    text : str
        What stands above the table, with names for numbers.
    absent : tuple of str
        Columns that this problem has no use for; the text says why.
    """

    factor: float
    tolerance: float
    length: str
    rate: str
    text: str
    absent: tuple[str, ...] = ()


NATS = Measure(
    100.0, 0.02, "passes", "offset",
    "Serial SVI: {base:.4f} nats per {unit}, between {least:.4f} and {most:.4f} over {seeds} "
    "seeds, with an offset of the rates of {rate:g}; {length} passes. "
    "What the others lose, in hundredths of a nat per {unit} (medians over seeds; less is "
    "better, below 0 is better than serial): with n workers that draw from all items, with "
    "{groups} workers that have one of {groups} groups each, with {middle} of which one is "
    "killed at a random moment (all these simulated), and with two workers that are real "
    "processes. By how much {middle} is sooner than serial SVI at {tolerance:g} hundredths "
    "below its last score, and how much longer it takes if one worker is {slow:g} times slower "
    "(simulated seconds); bytes an item, sent and received, at n = {last}; fits in which "
    "parameters were outside of their domain at an evaluation, or that ended for such a reason; "
    "what is proved.",
)  # fmt: skip
RETURNS = Measure(
    1.0, 25.0, "moves", "learning_rate",
    "One worker alone: a mean return of {base:.1f}, between {least:.1f} and {most:.1f} over "
    "{seeds} seeds, with a learning rate of {rate:g}; {length:,} moves of all workers together. "
    "The score is the mean return of the last parameters, of 100 fresh greedy episodes, at most "
    "500. What the others lose of it (medians over seeds; less is better, below 0 is better than "
    "one worker alone): with n workers, with {middle} of which one is killed at a random moment "
    "(all these simulated), and with two workers that are real processes. *One group each* does "
    "not apply: there are no items, every worker plays games of its own. By how much {middle} is "
    "sooner than one worker alone at {tolerance:g} below its last score, and how much longer it "
    "takes if one worker is {slow:g} times slower (simulated seconds); bytes a move, sent and "
    "received, at n = {last}. *Outside* does not apply: a network may have any parameters. What "
    "is proved.",
    ("one group each", "outside"),
)  # fmt: skip
