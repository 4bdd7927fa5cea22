"""A worker lost while ranks keep responsibilities: what it remembered is lost with it."""

import re
import signal
from pathlib import Path

import pytest
import tools
from tools.lda_cases import mass
from tools.lda_fits import arguments, go_on, lost
from tools.mpiexec import EVERY_MPI, faulty, launch, needs, until

from dpsvi import DPSVILDA, load_corpus

pytestmark = [pytest.mark.fault, pytest.mark.mpi]
PASSES = 12  # of which the last two keep responsibilities
N_DOCUMENTS = 380  # that are not held out


def kept_fit(corpus_file, out, *more, faults=None):
    """Arguments of a fit that is slow until it is told to go on."""
    given = ("--keep-responsibilities", "--seed", "0", "--evaluate-every", "0.25", *more)
    return arguments(corpus_file, out, PASSES, *given, faults=faults)


def within(out, n_passes):
    """Whether a quarter of the pass that follows so many is over: no two parts meet there."""
    path = out / "metrics.jsonl"
    found = re.findall(r'"items": (\d+)', path.read_text()) if path.exists() else []
    return max(map(int, found), default=0) >= (n_passes + 0.25) * N_DOCUMENTS


def check(run, out, corpus_file):
    """The fit has ended well, and every token counts once."""
    assert run.wait() == 0, run.err
    model, corpus = DPSVILDA.load(out), load_corpus(corpus_file)
    serial = DPSVILDA(
        5, max_iter=PASSES, batch_size=4, random_state=0, keep_responsibilities=True,
        validation_size=20,
    ).fit(corpus)  # fmt: skip
    assert mass(model) == pytest.approx(mass(serial), rel=1e-5)
    assert model.perplexity(corpus) < 1.03 * serial.perplexity(corpus)


@needs("openmpi")
@pytest.mark.parametrize("after", [10, 11])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda n: n.name)
def test_a_worker_is_killed_or_leaves(after, number, corpus_file, tmp_path):
    """In the first pass that keeps, or later; the others begin to remember anew."""
    out = tmp_path / "run"
    given = kept_fit(corpus_file, out)
    run = launch("openmpi", 4, *given, options=["--with-ft", "ulfm"])
    until(lambda: within(out, after))
    run.send(2, number)
    until(lambda: lost(out, 2))
    go_on(out)
    check(run, out, corpus_file)
    assert run.err.count("with it what it remembered of its items; 2 workers are left") == 1


@needs("openmpi")
@pytest.mark.parametrize(
    ("where", "number"),
    [("adopt", 1), ("_hello", 2), ("adopt", 2), ("_hello", 3), ("adopt", 4), ("adopt", 5)],
)
def test_a_worker_is_killed_between_two_parts(where, number, corpus_file, tmp_path):
    """Rank 0 may know at once, and the others only when they begin the next part, or later.

    Parts are: ten passes, the first one that keeps, its sum, the second one, its sum.
    """
    out = tmp_path / "run"
    go_on(out)
    faults = {"killed_between_fits": [2, where, number]}
    given = kept_fit(corpus_file, out, faults=faults)
    run = launch("openmpi", 4, *given, options=["--with-ft", "ulfm"])
    check(run, out, corpus_file)
    assert "rank 2 is lost (its process ended)" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_an_interrupt_between_two_parts_ends_them_on_all_ranks(kind, tmp_path):
    """Rank 0 hears it when it can tell the others, who have begun the next part."""
    program = Path(tools.__file__).parent / "mpi_interrupted.py"
    run = launch(kind, 3, program, tmp_path / "code")
    assert run.wait() == 0, run.err
    assert [(tmp_path / f"code-{rank}").read_text() for rank in range(3)] == ["130"] * 3


@needs("openmpi")
def test_a_signal_for_a_worker_between_two_parts_ends_that_one(corpus_file, tmp_path):
    out = tmp_path / "run"
    go_on(out)
    given = kept_fit(corpus_file, out, faults={"signalled": [2, "_part"]})
    check(launch("openmpi", 4, *given), out, corpus_file)


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_worker_freezes(kind, corpus_file, tmp_path):
    out = tmp_path / "run"
    run = launch(kind, 4, *kept_fit(corpus_file, out, "--silent-seconds", "3"))
    until(lambda: within(out, 10))
    run.send(2, signal.SIGSTOP)
    until(lambda: lost(out, 2))
    go_on(out)
    check(run, out, corpus_file)


@needs("openmpi")
def test_a_killed_job_is_resumed(corpus_file, tmp_path):
    """From a checkpoint of a pass that keeps responsibilities, by another number of ranks."""
    out = tmp_path / "run"
    run = launch("openmpi", 3, *kept_fit(corpus_file, out, "--checkpoint-seconds", "0.2"))
    until(lambda: within(out, 10))
    before = set((out / "checkpoints").iterdir())
    until(lambda: set((out / "checkpoints").glob("step-*")) - before)
    run.end()
    run.wait()
    go_on(out)
    again = launch("openmpi", 4, *faulty({}, "dpsvi", "resume", out))
    check(again, out, corpus_file)
