"""Fits of LDA by the command line, on several ranks, that last until a test lets them end."""

import signal
from pathlib import Path

from tools.mpiexec import faulty, until

STEPS_A_PASS = 95  # batches of 4 of the 380 documents that are not held out
# Of short fits, more than the five that the corpus has: with five, the moment in which a rank is
# lost can decide whether all of them are found, which says nothing about the loss.
TOPICS = 8


def arguments(corpus_file, out, passes, *more, topics=5, faults=None):
    """Arguments for Python: the fit is slow until :func:`go_on`, and has these other `faults`.

    A rank is then at work, or waits, for as long as a test needs to do something to it, and the
    steps that are left cost little.
    """
    faults = {"slow_until": str(_told(out)), **(faults or {})}
    return [
        *faulty(faults, "dpsvi"), "fit", "lda", "--corpus", corpus_file, "--topics", topics,
        "--batch-size", "4", "--passes", passes, "--out", out, "--overwrite", "--local-steps", "4",
        "--held-out", "20", "--evaluate-every", "1", *more,
    ]  # fmt: skip


def _told(out):
    return Path(f"{out}.told")


def go_on(out):
    """Let a fit go on at full speed."""
    _told(out).touch()


def training(out):
    """Whether steps are being made: the first evaluation was written."""
    path = out / "metrics.jsonl"
    return path.exists() and path.read_text().count("perplexity") > 0


def lose(run, out, rank, number=signal.SIGKILL):
    """Send a signal to a rank while steps are made; once it is found lost, go on at full speed."""
    until(lambda: training(out))
    run.send(rank, number)
    until(lambda: lost(out, rank))
    go_on(out)


def lost(out, rank):
    """Whether a rank has been found to be lost."""
    return f"rank {rank} is lost" in (out / "run.log").read_text()
