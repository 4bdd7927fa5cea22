"""Ranks that die, freeze or crawl, signals, full disks: each test really does it."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tools import lda_fits as fits
from tools.lda_fits import STEPS_A_PASS, TOPICS, go_on, lose, lost, training
from tools.mpiexec import EVERY_MPI, faulty, launch, needs, until

from dpsvi import DPSVILDA, load_corpus
from dpsvi.training.checkpoint import read_newest

pytestmark = [pytest.mark.fault, pytest.mark.mpi]
ULFM = ["--with-ft", "ulfm"]
OPENMPI = needs("openmpi")
PASSES = 20  # of fits that go on to the end: as many as the fit without faults makes
PATIENT = ["--silent-seconds", "600"]  # what ends sooner has not waited for this


def arguments(*given, faults=None):
    return fits.arguments(*given, topics=TOPICS, faults=faults)


@pytest.fixture(scope="module")
def held_out(corpus_file):
    """Perplexity of a fit without faults on documents that no fit sees is not needed: the known
    corpus is small enough to score whole."""
    lda = DPSVILDA(TOPICS, max_iter=PASSES, batch_size=4, random_state=0).fit(corpus_file)
    return lda.perplexity(load_corpus(corpus_file))


def perplexity(out, corpus_file):
    return DPSVILDA.load(out).perplexity(load_corpus(corpus_file))


# --- (a), (b) processes that die ------------------------------------------------------------------


@OPENMPI
def test_the_fit_continues_without_a_killed_worker(corpus_file, tmp_path, held_out):
    """Exit 0, the rank named, perplexity as without the fault."""
    out = tmp_path / "run"
    run = launch("openmpi", 4, *arguments(corpus_file, out, PASSES), options=ULFM)
    lose(run, out, 2)
    assert run.wait() == 0, run.err
    assert "rank 2 is lost (its process ended)" in run.err
    assert perplexity(out, corpus_file) < 1.01 * held_out
    last = [json.loads(line) for line in (out / "metrics.jsonl").open()][-1]
    assert last["items"] == PASSES * 380, "every document of every pass"


@OPENMPI
@pytest.mark.parametrize("apart", [0, 1])
def test_two_workers_killed(apart, corpus_file, tmp_path, held_out):
    """At once, and one a second after the other."""
    out = tmp_path / "run"
    run = launch("openmpi", 4, *arguments(corpus_file, out, PASSES), options=ULFM)
    until(lambda: training(out))
    numbers = run.ranks()
    os.kill(numbers[3], signal.SIGKILL)
    time.sleep(apart)
    os.kill(numbers[1], signal.SIGKILL)
    until(lambda: lost(out, 3) and lost(out, 1))
    go_on(out)
    assert run.wait() == 0, run.err
    assert "rank 3 is lost" in run.err and "rank 1 is lost" in run.err
    assert perplexity(out, corpus_file) < 1.01 * held_out


@OPENMPI
def test_the_last_worker_killed_leaves_a_checkpoint_of_all_that_was_done(corpus_file, tmp_path):
    """Work is not lost with the last rank that could do more of it."""
    out = tmp_path / "run"
    given = arguments(corpus_file, out, 5000, "--checkpoint-seconds", "3600")
    run = launch("openmpi", 2, *given, options=ULFM)
    until(lambda: training(out))
    run.send(1)
    assert run.wait() == 5, run.err
    assert "no worker is left" in run.err
    last = [json.loads(line) for line in (out / "metrics.jsonl").open()][-1]
    assert read_newest(out).meta["step"] >= last["step"] > 0


def endless(kind, corpus_file, folder, *then):
    """Three ranks that fit until `folder` holds a file ``enough``."""
    faults = {"slow_until": str(folder / "enough")}
    program = faulty(faults, "mpi_endless", corpus_file, folder, *then)
    return launch(kind, 3, "-m", "mpi4py", *program)


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("wakes", [False, True])
def test_a_program_goes_on_without_a_frozen_rank(kind, wakes, corpus_file, tmp_path):
    """It ends well although that rank never ends, or raises when it wakes up."""
    run = endless(kind, corpus_file, tmp_path)
    until((tmp_path / "training").exists)
    number = run.ranks()[2]
    os.kill(number, signal.SIGSTOP)
    until((tmp_path / "lost").exists)
    if wakes:
        os.kill(number, signal.SIGCONT)
    (tmp_path / "enough").touch()
    assert run.wait() == 0, run.err
    assert "rank 2 is lost (no heartbeat" in run.err
    assert "saved" in run.out, "nothing printed is lost"
    assert DPSVILDA.load(tmp_path / "model").n_batch_iter_ > 0


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_program_that_fails_beside_a_frozen_rank(kind, corpus_file, tmp_path):
    """What ends the ranks that would not end is not to hide that the program failed."""
    run = endless(kind, corpus_file, tmp_path, "raises")
    until((tmp_path / "training").exists)
    run.send(2, signal.SIGSTOP)
    until((tmp_path / "lost").exists)
    (tmp_path / "enough").touch()
    assert run.wait() != 0, run.err
    assert "something else" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_program_ends_when_rank_0_is_frozen(kind, corpus_file, tmp_path):
    """The others know that nobody goes on: MPI would wait for rank 0 at the end of each of them."""
    program = faulty({"slow_until": str(tmp_path / "enough")}, "mpi_endless", corpus_file, tmp_path)
    run = launch(kind, 3, *program)  # without `-m mpi4py`, which ends a job whatever failed
    until((tmp_path / "training").exists)
    run.send(0, signal.SIGSTOP)
    assert run.wait() == 5, run.err
    assert "rank 0, the master, is lost" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("rank", [0, 2])
def test_without_ulfm_a_death_ends_the_job_and_it_resumes(kind, rank, corpus_file, tmp_path,
                                                          held_out, ranks):  # fmt: skip
    """At once, not with 0; then with other numbers of ranks and threads to the end."""
    out = tmp_path / "run"
    given = arguments(corpus_file, out, PASSES, "--checkpoint-seconds", "0.3", *PATIENT)
    run = launch(kind, 3, *given)
    until(lambda: (out / "checkpoints/latest").exists() and training(out))
    run.send(rank)
    killed = time.monotonic()
    assert run.wait() != 0
    assert time.monotonic() - killed < 60, "long before a rank would count as silent"
    assert run.err.strip(), "the cause is printed"
    step = read_newest(out).meta["step"]
    assert 0 < step < PASSES * STEPS_A_PASS
    ranks(kind, 2, "dpsvi", "resume", out, "--threads", "2")
    assert perplexity(out, corpus_file) < 1.01 * held_out
    assert json.loads((out / "model.json").read_text())["step"] == PASSES * STEPS_A_PASS
    steps = [json.loads(line)["step"] for line in (out / "metrics.jsonl").open()]
    assert steps == sorted(steps), "no step is reported twice"
    assert not (out / "checkpoints").exists()


@OPENMPI
def test_the_master_killed_under_ulfm_ends_the_job(corpus_file, tmp_path):
    """Workers, which would survive it, end by themselves: nobody else has the parameters."""
    out = tmp_path / "run"
    run = launch("openmpi", 3, *arguments(corpus_file, out, 5000, *PATIENT), options=ULFM)
    until(lambda: training(out))
    run.send(0)
    killed = time.monotonic()
    assert run.wait() != 0
    assert time.monotonic() - killed < 60, "long before a rank would count as silent"
    assert "rank 0, the master, is lost" in run.err


# --- (d), (e) processes that freeze or crawl ------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("on_lost", ["drop", "abort"])
def test_a_frozen_rank(kind, on_lost, corpus_file, tmp_path, held_out):
    """Named in time; then the fit goes on without it, or ends, as told."""
    out = tmp_path / "run"
    run = launch(kind, 3, *arguments(
        corpus_file, out, PASSES, "--silent-seconds", "3", "--on-lost", on_lost
    ))  # fmt: skip
    lose(run, out, 2, signal.SIGSTOP)
    code = run.wait()
    assert re.search(r"rank 2 is lost.*no heartbeat for \d", run.err), run.err
    if on_lost == "abort":
        assert code == 5, run.err
    else:
        assert code == 0
        assert perplexity(out, corpus_file) < 1.01 * held_out


@OPENMPI
def test_a_frozen_rank_under_ulfm(corpus_file, tmp_path, held_out):
    """Open MPI would not end while it is there: on the same host it is killed for good."""
    out = tmp_path / "run"
    run = launch("openmpi", 4, *arguments(
        corpus_file, out, PASSES, "--silent-seconds", "3"
    ), options=ULFM)  # fmt: skip
    lose(run, out, 3, signal.SIGSTOP)
    assert run.wait() == 0
    assert "rank 3 is lost (no heartbeat" in run.err
    assert perplexity(out, corpus_file) < 1.01 * held_out


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("shared", [False, True])
def test_a_rank_that_wakes_up_too_late_does_no_harm(kind, shared, corpus_file, tmp_path, held_out):
    """Dropped while it slept, it must not end the job of the others when it wakes up."""
    out, faults = tmp_path / "run", {"shared_from": 0} if shared else {}
    run = launch(kind, 4, *arguments(
        corpus_file, out, PASSES, "--silent-seconds", "2", faults=faults
    ))  # fmt: skip
    until(lambda: training(out))
    number = run.ranks()[3]
    os.kill(number, signal.SIGSTOP)
    until(lambda: lost(out, 3))
    os.kill(number, signal.SIGCONT)
    time.sleep(2)  # it looks around while the others are at work
    go_on(out)
    assert run.wait() == 0, run.err
    assert perplexity(out, corpus_file) < 1.01 * held_out


@OPENMPI
def test_a_slow_rank_does_not_set_the_pace(corpus_file, tmp_path):
    """One of four workers runs a fiftieth of the time: the others make more documents than it does.

    Workers that waited for it would all make as many.  Documents per second would show the same,
    but depend on what else the machine does.  A tenth of the time is too much: where other
    processes keep all cores busy, the others do not get much more than that.
    """
    out = tmp_path / "run"
    run = launch("openmpi", 5, *arguments(corpus_file, out, 100, *PATIENT))
    until(lambda: training(out))
    number = run.ranks()[4]
    os.kill(number, signal.SIGSTOP)
    go_on(out)
    # Of the last tenth it may make its share: its last step, and its end, would take long.
    metrics = out / "metrics.jsonl"
    with suppress(ProcessLookupError):
        while json.loads(metrics.read_text().splitlines()[-1])["step"] < 90 * STEPS_A_PASS:
            os.kill(number, signal.SIGCONT)
            time.sleep(0.005)
            os.kill(number, signal.SIGSTOP)
            time.sleep(0.245)
        os.kill(number, signal.SIGCONT)
    assert run.wait() == 0, run.err
    with (out / "exchanges.csv").open() as lines:
        made = Counter()
        for line in csv.DictReader(lines):
            made[int(line["worker"])] += int(line["n_items"])
    slow = made.pop(4)
    assert slow > 0
    assert min(made.values()) > 2 * slow, made


@OPENMPI
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_lost_while_it_reads_the_shared_rows(number, corpus_file, tmp_path, held_out):
    """The master merges nothing while somebody reads: a rank that never ends reading is let go."""
    out, faults = tmp_path / "run", {"shared_from": 0, "lost_while_reading": int(number)}
    run = launch("openmpi", 4, *arguments(
        corpus_file, out, PASSES, "--silent-seconds", "3", faults=faults
    ), options=ULFM)  # fmt: skip
    until(lambda: training(out) and lost(out, 2))
    go_on(out)
    assert run.wait() == 0, run.err
    said = "its process ended" if number == signal.SIGKILL else "no heartbeat for"
    assert f"rank 2 is lost ({said}" in run.err
    assert perplexity(out, corpus_file) < 1.01 * held_out


# --- (f) signals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_leave_a_checkpoint(kind, number, corpus_file, tmp_path):
    """Sent to all ranks, as Slurm does; all leave, and the fit can be resumed."""
    out = tmp_path / "run"
    run = launch(kind, 3, *arguments(corpus_file, out, 5000))
    until(lambda: training(out))
    for _, process in sorted(run.ranks().items(), reverse=True):  # the workers a little before
        os.kill(process, number)
    assert run.wait() == 128 + number, run.err
    assert DPSVILDA.load(out).n_batch_iter_ > 0, "the model so far is written, too"
    meta = read_newest(out).meta
    assert 0 < meta["step"] < 5000 * STEPS_A_PASS
    passes = meta["step"] // STEPS_A_PASS + 20
    again = fit_alone(*faulty({}, "dpsvi", "resume", out, "--passes", passes, "--engine", "serial"))
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_signal_that_reaches_a_worker_later(kind, corpus_file, tmp_path):
    """It has ended its fit by then, and does not end rank 0, which writes the model."""
    out = tmp_path / "run"
    run = launch(kind, 3, *arguments(corpus_file, out, 5000, faults={"signalled_late": [2]}))
    until(lambda: training(out))
    run.send(0, signal.SIGTERM)
    assert run.wait() == 128 + signal.SIGTERM, run.err
    assert DPSVILDA.load(out).n_batch_iter_ > 0


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("early", [False, True])
def test_a_signal_for_one_worker_ends_that_one(kind, early, corpus_file, tmp_path):
    """At once, without the wait for a silent rank, also while it still compiles."""
    out = tmp_path / "run"
    run = launch(kind, 3, *arguments(corpus_file, out, PASSES, *PATIENT))
    log = out / "run.log"
    until((lambda: log.exists() and "ranks on" in log.read_text()) if early
          else (lambda: training(out)))  # fmt: skip
    run.send(2, signal.SIGTERM)
    until(lambda: lost(out, 2))
    go_on(out)
    assert run.wait() == 0, run.err
    assert "rank 2 is lost (ended by a signal)" in run.err
    last = [json.loads(line) for line in (out / "metrics.jsonl").open()][-1]
    assert last["items"] == PASSES * 380, "every document of every pass"


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("where", ["all_gather", "channel", "load"])
def test_a_signal_while_a_fit_begins_ends_one_worker(kind, where, corpus_file, tmp_path):
    """Also before the worker can say anything to rank 0, and where numba would swallow it."""
    out = tmp_path / "run"
    faults = {"signalled": [2, where]}
    run = launch(kind, 3, *arguments(corpus_file, out, 2, *PATIENT, faults=faults))
    until(lambda: (out / "run.log").exists() and lost(out, 2))
    go_on(out)
    assert run.wait() == 0, run.err
    assert "rank 2 is lost (ended by a signal)" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("rank", [0, 2])
def test_a_signal_while_ranks_meet_ends_the_job(kind, rank, corpus_file, tmp_path):
    """None of them waits for ever for the one that has heard it."""
    given = arguments(corpus_file, tmp_path / "run", 2, faults={"signalled": [rank, "Neighbours"]})
    run = launch(kind, 3, *given)
    assert run.wait() == 128 + signal.SIGTERM, run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_signal_for_rank_0_does_not_wait_for_long_turns(kind, corpus_file, tmp_path):
    """Workers hear the stop in the middle of their steps, of which one takes a second or two."""
    out = tmp_path / "run"
    slow = ["--set", "max_doc_update_iter=1000000", "--set", "mean_change_tol=0"]
    given = arguments(corpus_file, out, 5, "--learning-rate", "1e-3", *slow)
    given[given.index("--local-steps") + 1] = "100"
    run = launch(kind, 3, *given)
    log = out / "run.log"
    until(lambda: log.exists() and "ranks on" in log.read_text())
    time.sleep(5)  # compiled, and at work
    begun = time.monotonic()
    run.send(0, signal.SIGTERM)
    assert run.wait() == 143, run.err
    assert time.monotonic() - begun < 60


# --- (g) disks ------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """Four megabytes; root only."""
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount a small disk")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fit_alone(*more):
    return subprocess.run(
        [sys.executable, *map(str, more)], capture_output=True, text=True, timeout=240
    )


def test_a_disk_too_small_is_found_before_training(small_disk, corpus_file):
    """Not when the first checkpoint is written, hours later."""
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filler").write_bytes(bytes(8_000_000))
    done = fit_alone(*arguments(corpus_file, small_disk / "run", 5))
    assert done.returncode == 1
    assert "are free, two checkpoints need" in done.stderr or "No space left" in done.stderr
    assert "exchanges" not in done.stderr and not (small_disk / "run/model.json").exists()


def test_a_disk_that_fills_up_keeps_the_last_good_checkpoint(small_disk, corpus_file):
    """A checkpoint that cannot be written neither ends the fit nor harms the one before."""
    out = small_disk / "run"
    command = [sys.executable, *map(str, arguments(
        corpus_file, out, 4000, "--checkpoint-seconds", "0.2", "--evaluate-every", "10"
    ))]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: (out / "checkpoints/latest").exists())
        with pytest.raises(OSError, match="No space left"):
            (small_disk / "filler").write_bytes(bytes(8_000_000))
        time.sleep(2)
        assert process.poll() is None, "training goes on"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=240)
    finally:
        process.kill()
    assert "no checkpoint at step" in err and "the last good one is step-" in err
    assert read_newest(out).arrays["rows"].shape[0] == 150


def test_a_run_cannot_be_resumed_with_fewer_passes_than_it_began(corpus_file, tmp_path):
    from dpsvi.errors import ModelFormatError

    paths = {"checkpoint_dir": tmp_path, "checkpoint_seconds": 0.0}
    settings = dict(n_components=5, batch_size=4, random_state=0)
    DPSVILDA(max_iter=5, **settings, **paths).fit(corpus_file)
    with pytest.raises(ModelFormatError, match="pass 5 had begun, max_iter is 2 now"):
        DPSVILDA(max_iter=2, **settings, **paths).resume(corpus_file)


def test_an_unwritable_folder_is_found_before_training(corpus_file, tmp_path):
    (tmp_path / "run").write_text("a file, not a folder")
    done = fit_alone(*arguments(corpus_file, tmp_path / "run", 5))
    assert done.returncode != 0 and "run" in done.stderr


# --- (h) no numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_nan_ends_the_fit_with_4_and_keeps_the_last_good_checkpoint(kind, corpus_file, tmp_path):
    """Checkpoints are written all the time: none may hold what is no number."""
    out = tmp_path / "run"
    go_on(out)
    run = launch(kind, 3, *arguments(
        corpus_file, out, 2000, "--checkpoint-seconds", "0.05", faults={"nan_after": 30}
    ))  # fmt: skip
    assert run.wait() == 4, run.err
    assert "NaN or infinite" in run.err
    checkpoint = read_newest(out)
    assert np.all(np.isfinite(checkpoint.arrays["rows"]))
    assert checkpoint.meta["step"] < 45 * STEPS_A_PASS


# --- checkpoints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_a_killed_fit_resumes_bit_for_bit(engine, corpus_file, tmp_path):
    """One rank, one thread: killed -9 twice on the way, the same bits in the end.

    Each time between two checkpoints: what was done since the first of them is done again.
    """
    often = ["--checkpoint-seconds", "1e-9", "--evaluate-every", "2", "--engine", engine]
    whole, out = tmp_path / "whole", tmp_path / "killed"
    assert fit_alone(*arguments(corpus_file, whole, 12, *often)).returncode == 0
    first = arguments(corpus_file, out, 12, *often, faults={"killed_after": 3})
    again = faulty({"killed_after": 7}, "dpsvi", "resume", out)
    for command, passes in ((first, (2, 4)), (again, (6, 8))):
        assert fit_alone(*command).returncode == -signal.SIGKILL
        assert passes[0] < read_newest(out).meta["step"] / STEPS_A_PASS < passes[1]
    done = fit_alone(*faulty({}, "dpsvi", "resume", out))
    assert done.returncode == 0, done.stderr
    read = [(path / "model.safetensors").read_bytes() for path in (whole, out)]
    assert read[0] == read[1]


def newest(out):
    path = Path(out) / "checkpoints/latest"
    return path.read_text() if path.exists() else None


def test_the_newest_three_are_kept_and_resume_refuses_other_parameters(corpus_file, tmp_path):
    from dpsvi.errors import ModelFormatError

    corpus = load_corpus(corpus_file)
    settings = dict(n_components=5, batch_size=4, max_iter=5, random_state=0)
    paths = {"checkpoint_dir": tmp_path, "checkpoint_seconds": 0.0}
    whole = DPSVILDA(**settings, **paths).fit(corpus)
    names = sorted(p.name for p in (tmp_path / "checkpoints").glob("step-*"))
    assert len(names) == 3 and newest(tmp_path).strip() == names[-1]
    with pytest.raises(ModelFormatError, match="learning_decay was None, now 0.6"):
        DPSVILDA(**settings, learning_decay=0.6, **paths).resume(corpus)
    with pytest.raises(ModelFormatError, match="n_items was 400, in this fit it is 100"):
        DPSVILDA(**settings, **paths).resume(corpus.select(slice(0, 100)))
    (tmp_path / "checkpoints/latest").write_text(names[0] + "\n")
    again = DPSVILDA(**settings, **paths).resume(corpus)
    assert np.array_equal(again.components_, whole.components_)
    assert [e["step"] for e in again.history_] == [e["step"] for e in whole.history_]
    file = tmp_path / "checkpoints" / newest(tmp_path).strip() / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(ModelFormatError, match="SHA-256"):
        DPSVILDA(**settings, **paths).resume(corpus)
    shutil.rmtree(tmp_path / "checkpoints")
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        DPSVILDA(**settings, **paths).resume(corpus)


def test_a_shorter_fit_does_not_lose_its_checkpoints_to_an_earlier_one(corpus_file, tmp_path):
    corpus = load_corpus(corpus_file)
    settings = dict(n_components=5, batch_size=4, checkpoint_dir=tmp_path, checkpoint_seconds=0.0)
    DPSVILDA(max_iter=5, random_state=0, **settings).fit(corpus)
    second = DPSVILDA(max_iter=2, random_state=1, **settings).fit(corpus)
    (tmp_path / "checkpoints/latest").write_text("gone\n")  # then the newest folder counts
    again = DPSVILDA(max_iter=2, random_state=1, **settings).resume(corpus)
    assert again.n_batch_iter_ == second.n_batch_iter_ == 2 * 100
    assert np.array_equal(again.components_, second.components_)
