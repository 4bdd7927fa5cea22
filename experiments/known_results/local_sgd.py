"""Local SGD, and post-local SGD, against large batches."""

from __future__ import annotations

from experiments.known_results.claim import Outcome
from experiments.known_results.compare import Entrant, compare, median, spread, values, wins
from experiments.known_results.digits import BATCH, fit

TITLE = "Local SGD against large batches"
SOURCE = "Lin, Stich, Patel and Jaggi (2020)"
CLAIM = (
    "With as many gradients and as many rounds of communication, H local steps with small batches "
    "generalise better than one step with batches H times as large; and rounds of one step at "
    "first, of H steps in the second half, generalise at least as well as rounds of one step "
    "throughout."
)
WORKERS, PASSES, LOCAL = 8, 20, 16
TRIAL = (
    f"{WORKERS} workers, {PASSES} passes, H = {LOCAL}: `local_sgd` with H steps of {BATCH} images, "
    f"with one step of {BATCH * LOCAL} images, with one step of {BATCH} images, and with "
    "`post_local=0.5`. Looked at is the test error."
)
LARGE, SMALL, LONG, POST = "one large step", "one small step", "H small steps", "post-local"


def score(run: dict) -> float:
    """Share of the images that are taken for another digit, at the end; ties go by the loss."""
    return run["error"] + 1e-6 * run["loss"]


def rounds(run: dict) -> float:
    """Rounds of a fit, in each of which every worker is exchanged with once."""
    return run["exchanges"] / run["n"]


def run(seeds, workers: int = WORKERS, passes: int = PASSES, local: int = LOCAL) -> dict:
    """The four forms."""
    forms = {
        LARGE: {"batch": BATCH * local},
        LONG: {"local_steps": local},
        SMALL: {},
        POST: {"local_steps": local, "options": {"post_local": 0.5}},
    }
    entrants = [
        Entrant(
            name,
            lambda rate, seed, tuning, own=own: fit(
                "local_sgd", rate, seed, n=workers, passes=passes, tuning=tuning, **own
            ),
        )
        for name, own in forms.items()
    ]  # fmt: skip
    return compare(entrants, seeds, score)


def outcome(rows: dict) -> Outcome:
    """Local SGD has fewer errors than large batches; post-local SGD no more than small ones."""
    ends = {name: 100 * median(row, score) for name, row in rows.items()}
    seeds = len(rows[LARGE]["runs"])
    return Outcome(
        [ends[LONG] < ends[LARGE], ends[POST] <= ends[SMALL]],
        f"H small steps come to {ends[LONG]:.1f} % errors and one large step to "
        f"{ends[LARGE]:.1f} % (fewer for {wins(rows[LONG], rows[LARGE], score)} of {seeds} seeds); "
        f"post-local SGD to {ends[POST]:.1f} % and one small step to {ends[SMALL]:.1f} % (fewer "
        f"for {wins(rows[POST], rows[SMALL], score)} of {seeds} seeds).",
        ["rounds of", "rate", "rounds", "test error, %", "test loss", "training loss"],
        [
            [name, f"{row['rate']:g}", spread(values(row, rounds), ",.0f"),
             spread([100 * error for error in values(row, lambda run: run["error"])], ".1f"),
             spread(values(row, lambda run: run["loss"])),
             spread(values(row, lambda run: run["train"]), ".4f")]
            for name, row in rows.items()
        ],
    )  # fmt: skip
