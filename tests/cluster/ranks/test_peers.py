"""Peers without a master under a real mpiexec: what the end, a loss and a signal do."""

import csv
import itertools
import json
import os
import signal

import pytest
from tools import lda_fits as fits
from tools.lda_fits import STEPS_A_PASS, TOPICS, go_on, lose, lost, training
from tools.mpiexec import EVERY_MPI, faulty, launch, needs, until

from dpsvi import DPSVILDA, load_corpus
from dpsvi.training.checkpoint import read_newest

pytestmark = [pytest.mark.fault, pytest.mark.mpi]
PASSES = 20  # of fits that go on to the end: as many as the fit in one process makes


def arguments(*given, faults=None):
    return fits.arguments(*given, "--strategy", "push_sum", topics=TOPICS, faults=faults)


@pytest.fixture(scope="module")
def serial(corpus_file):
    lda = DPSVILDA(TOPICS, max_iter=PASSES, batch_size=4, random_state=0).fit(corpus_file)
    return lda.perplexity(load_corpus(corpus_file))


def perplexity(out, corpus_file):
    return DPSVILDA.load(out).perplexity(load_corpus(corpus_file))


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_checkpoints_of_peers_hold_all_that_was_done(kind, corpus_file, tmp_path, serial, ranks):
    """Killed between two of them, a fit goes on to its end with other ranks and with a master."""
    out = tmp_path / "run"
    run = launch(kind, 4, *arguments(corpus_file, out, 1000, "--checkpoint-seconds", "0.3"))
    until(lambda: (out / "checkpoints/latest").exists() and training(out))
    run.send(2)
    assert run.wait() != 0
    meta = read_newest(out).meta
    assert 0 < meta["passes"]["n_done"] == meta["step"] < 1000 * STEPS_A_PASS
    passes = str(meta["step"] // STEPS_A_PASS + PASSES)
    ranks(kind, 3, "dpsvi", "resume", out, "--passes", passes)
    assert json.loads((out / "model.json").read_text())["step"] == int(passes) * STEPS_A_PASS
    assert perplexity(out, corpus_file) < 1.02 * serial


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("on_lost", ["drop", "abort"])
def test_a_frozen_peer(kind, on_lost, corpus_file, tmp_path, serial):
    """Named in time; the others continue without its mass, or the fit ends, as `on_lost` says."""
    out = tmp_path / "run"
    run = launch(kind, 3, *arguments(
        corpus_file, out, PASSES, "--silent-seconds", "3", "--on-lost", on_lost
    ))  # fmt: skip
    until(lambda: training(out))
    run.send(2, signal.SIGSTOP)
    if on_lost == "drop":
        until(lambda: lost(out, 2))
        go_on(out)
    code = run.wait()
    assert "rank 2 is lost" in run.err and "no heartbeat for" in run.err, run.err
    if on_lost == "abort":
        assert code == 5, run.err
    else:
        assert code == 0, run.err
        assert "its part of the mass" in run.err
        assert perplexity(out, corpus_file) < 1.02 * serial


@needs("openmpi")
def test_peers_under_ulfm_continue_without_a_killed_one(corpus_file, tmp_path, serial):
    """As soon as its process ended, not after the wait for a silent rank."""
    out = tmp_path / "run"
    run = launch("openmpi", 4, *arguments(corpus_file, out, PASSES, "--silent-seconds", "600"),
                 options=["--with-ft", "ulfm"])  # fmt: skip
    lose(run, out, 2)
    assert run.wait() == 0, run.err
    assert "rank 2 is lost (its process ended)" in run.err
    assert perplexity(out, corpus_file) < 1.02 * serial


def unheard(out, rank):
    """For each turn of a rank, how many turns ago it has merged a message, or has begun."""
    with (out / "exchanges.csv").open() as file:
        return [int(e["staleness"]) for e in csv.DictReader(file) if int(e["worker"]) == rank]


@needs("openmpi")
def test_peers_that_are_left_receive_from_each_other(corpus_file, tmp_path):
    """On a ring, of which a lost peer was the only way from one of them to the other."""
    out = tmp_path / "run"
    given = fits.arguments(corpus_file, out, PASSES, "--strategy", "gala")
    run = launch("openmpi", 3, *given, options=["--with-ft", "ulfm"])
    lose(run, out, 2)
    assert run.wait() == 0, run.err
    for rank in (0, 1):
        turns = unheard(out, rank)
        late = turns[len(turns) // 4 :]  # it was lost before
        assert any(now <= before for before, now in itertools.pairwise(late))


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_peer_that_is_late_is_waited_for(kind, corpus_file, tmp_path):
    """Else others would have done all of their part without it."""
    out = tmp_path / "run"
    # Slow to its end: each of 50 turns lasts so long that all ranks are at work in it.
    given = fits.arguments(corpus_file, out, 6, "--strategy", "gala", faults={"late": [1, 3.0]})
    run = launch(kind, 3, *given)
    assert run.wait() == 0, run.err
    for rank in range(3):
        turns = unheard(out, rank)
        assert any(since < turn for turn, since in enumerate(turns[: len(turns) // 2]))


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_signal_while_peers_wait_for_a_late_one(kind, corpus_file, tmp_path):
    """The fit ends before any of them has made a step; there is a model, that of its beginning."""
    out = tmp_path / "run"
    # Rank 0 says that all begin, and only after a while that all end.
    faults = {"late": [1, 3.0], "signalled": [0, "notify"], "slow_to_turn": [0, 0.5]}
    run = launch(kind, 3, *arguments(corpus_file, out, PASSES, faults=faults))
    assert run.wait() == 128 + signal.SIGTERM, run.err
    assert "interrupted after 0 steps" in run.err
    assert DPSVILDA.load(out).n_batch_iter_ == 0


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_signal_for_one_peer_during_a_checkpoint_ends_the_fit(kind, corpus_file, tmp_path):
    """Its replica is handed over already; the next round ends, as rank 0 says: by an interrupt."""
    out = tmp_path / "run"
    given = arguments(
        corpus_file, out, PASSES, "--checkpoint-seconds", "0.1", faults={"signalled": [1, "whole"]}
    )
    run = launch(kind, 3, *given)
    assert run.wait() == 128 + signal.SIGINT, run.err
    assert 0 < read_newest(out).meta["step"] < PASSES * STEPS_A_PASS


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_rank_0_fits_again_after_all_others_were_lost(kind, tmp_path):
    program = faulty(
        {"at_a_turn": [1, "freezes", 3]}, "mpi_fit", tmp_path / "fit", "collapsed", "max_iter=2",
        'strategy="push_sum"', "silent_seconds=3", "fits=2",
    )  # fmt: skip
    run = launch(kind, 2, *program)
    assert run.wait() == 0, run.err
    assert json.loads((tmp_path / "fit-0.json").read_text())["items"] == 2 * 1300


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_peers_continue_without_one_whose_message_cannot_be_read(kind, corpus_file, tmp_path):
    """By all, though the others can read what it sends: else rank 0 would wait for its end."""
    out = tmp_path / "run"
    faults = {"shared_from": 0, "unreadable": [1, 2]}
    run = launch(kind, 3, *arguments(corpus_file, out, PASSES, faults=faults))
    until(lambda: (out / "run.log").exists() and lost(out, 2))
    go_on(out)
    assert run.wait() == 0, run.err
    assert "rank 2 is lost (its message cannot be read: not to be found)" in run.err


@needs("openmpi")
@pytest.mark.parametrize("reader", [0, 1])
def test_a_peer_killed_before_its_message_is_read(reader, corpus_file, tmp_path):
    """Its memory is gone with it, which is no message that cannot be read from a living rank."""
    out = tmp_path / "run"
    faults = {"shared_from": 0, "killed_unread": [reader, 2]}
    given = arguments(corpus_file, out, PASSES, faults=faults)
    run = launch("openmpi", 3, *given, options=["--with-ft", "ulfm"])
    until(lambda: (out / "run.log").exists() and lost(out, 2))
    go_on(out)
    assert run.wait() == 0, run.err
    assert "rank 2 is lost (its process ended)" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_rank_0_frozen_is_named_by_the_others(kind, corpus_file, tmp_path):
    """Peers could go on without it, but nobody else would write the model: all end with 5."""
    out = tmp_path / "run"
    run = launch(kind, 3, *arguments(corpus_file, out, 5000, "--silent-seconds", "3"))
    until(lambda: training(out))
    run.send(0, signal.SIGSTOP)
    assert run.wait() == 5, run.err
    assert "rank 0, which collects the end, is lost" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_signals_end_all_peers_with_a_checkpoint(kind, corpus_file, tmp_path):
    """Without a master to tell them, all leave, with the model and a checkpoint written."""
    out = tmp_path / "run"
    run = launch(kind, 3, *arguments(corpus_file, out, 5000))
    until(lambda: training(out))
    for process in run.ranks().values():
        os.kill(process, signal.SIGTERM)
    assert run.wait() == 128 + signal.SIGTERM, run.err
    assert DPSVILDA.load(out).n_batch_iter_ > 0, "the model so far is written, too"
    assert 0 < read_newest(out).meta["step"] < 5000 * STEPS_A_PASS


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_signal_that_reaches_some_peers_later(kind, corpus_file, tmp_path):
    """They have ended their fit by then, and it does not break into what comes after."""
    out = tmp_path / "run"
    given = arguments(corpus_file, out, 5000, faults={"signalled_late": [0, 2]})
    run = launch(kind, 3, *given)
    until(lambda: training(out))
    run.send(1, signal.SIGTERM)
    assert run.wait() == 128 + signal.SIGTERM, run.err
    assert DPSVILDA.load(out).n_batch_iter_ > 0


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("rank", [0, 1])
def test_an_exception_on_any_peer_ends_all(kind, rank, tmp_path):
    """No peer waits for one that is gone, and the cause is printed."""
    program = faulty(
        {"broken": rank}, "mpi_fit", tmp_path / "fit", "collapsed", "max_iter=100",
        'strategy="push_sum"',
    )  # fmt: skip
    run = launch(kind, 3, "-m", "mpi4py", *program)
    assert run.wait() != 0
    assert "this rank is broken" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_program_that_fails_ends_beside_a_frozen_peer(kind, rank, tmp_path):
    """At once, though nobody knows yet that one is frozen, and MPI would wait for it at its end."""
    program = faulty(
        {"broken_when": [rank, str(tmp_path)]}, "mpi_fit", tmp_path / "fit", "collapsed",
        "max_iter=20000", 'strategy="push_sum"', "silent_seconds=600",
    )  # fmt: skip
    run = launch(kind, 3, *program)  # without `-m mpi4py`, which ends a job whatever failed
    until((tmp_path / "begun").exists)
    run.send(2, signal.SIGSTOP)
    (tmp_path / "broken").touch()
    assert run.wait() != 0, run.err
    assert "this rank is broken" in run.err
