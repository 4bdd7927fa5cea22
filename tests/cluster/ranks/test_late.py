"""Ranks that are ready only after others have begun: they join, and make steps of their own."""

import csv
import json
import signal
from collections import Counter

import pytest
from tools.lda_fits import STEPS_A_PASS, arguments, go_on, training
from tools.mpiexec import EVERY_MPI, launch, needs, until

from dpsvi import DPSVILDA, load_corpus
from dpsvi.training.checkpoint import read_newest

pytestmark = [pytest.mark.fault, pytest.mark.mpi]
PASSES = 40


@pytest.fixture(scope="module")
def score(corpus_file):
    """Perplexity of a fit on the corpus, and that of one without faults over the same passes."""
    corpus = load_corpus(corpus_file)
    serial = DPSVILDA(5, max_iter=PASSES, batch_size=4, random_state=0).fit(corpus_file)
    return lambda out: DPSVILDA.load(out).perplexity(corpus) / serial.perplexity(corpus)


def begin(kind, corpus_file, out, strategy, *more, passes=PASSES, options=(), faults=None):
    """A fit of three ranks, of which rank 2 is late: the others are at work when this returns."""
    given = arguments(
        corpus_file, out, passes, "--strategy", strategy, "--grace-seconds", "0.5", *more,
        faults={"late_until": [2, f"{out}.ready"], **(faults or {})},
    )  # fmt: skip
    run = launch(kind, 3, *given, options=options)
    until(lambda: training(out) or run.process.poll() is not None)
    assert run.process.poll() is None, run.wait()
    return run


def said(out, words):
    return words in (out / "run.log").read_text()


def join(out):
    """Let rank 2 be ready, and the fit go on once it has joined."""
    out.with_name(f"{out.name}.ready").touch()
    until(lambda: said(out, "rank 2 joins after"))
    go_on(out)


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("strategy", ["decay", "local_sgd", "push_sum", "ownership"])
def test_a_late_rank_joins(kind, strategy, corpus_file, tmp_path, score):
    """It makes steps; no step is lost or made twice; and the fit learns as much."""
    out = tmp_path / "run"
    run = begin(kind, corpus_file, out, strategy)
    join(out)
    assert run.wait() == 0, run.err
    assert "the others join when they come" in run.err
    with (out / "exchanges.csv").open() as file:
        steps = Counter()
        for exchange in csv.DictReader(file):
            steps[int(exchange["worker"])] += int(exchange["n_steps"])
    assert sum(steps.values()) == PASSES * STEPS_A_PASS
    assert steps[2] > 0
    assert score(out) < 1.02


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("strategy", ["decay", "push_sum"])
def test_a_rank_that_is_ready_after_the_end(kind, strategy, corpus_file, tmp_path):
    """The others have made all steps; the fit ends when it has what they came to.

    It does not wait until somebody hears what it has to say: they have gone.
    """
    out = tmp_path / "run"
    run = begin(kind, corpus_file, out, strategy, passes=2, faults={"patient": 600})
    go_on(out)
    until(lambda: json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])["step"] >= 190)
    (tmp_path / "run.ready").touch()
    assert run.wait() == 0, run.err
    assert not said(out, "rank 2 joins")


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("strategy", ["decay", "push_sum"])
def test_checkpoints_before_and_after_a_rank_joins(kind, strategy, corpus_file, tmp_path, score,
                                                   ranks):  # fmt: skip
    """A signal ends the fit, which goes on with as many ranks, all of them there."""
    for joins in (False, True):
        out = tmp_path / f"run-{joins}"
        run = begin(kind, corpus_file, out, strategy, "--checkpoint-seconds", "0.2", passes=5000)
        until((out / "checkpoints/latest").exists)
        (tmp_path / f"{out.name}.ready").touch()
        if joins:
            until(lambda out=out: said(out, "rank 2 joins after"))
            before = read_newest(out).meta["step"]
            until(lambda out=out, before=before: read_newest(out).meta["step"] > before)
        run.send(0, signal.SIGTERM)
        assert run.wait() == 128 + signal.SIGTERM, run.err
        meta = read_newest(out).meta
        assert 0 < meta["passes"]["n_done"] == meta["step"] < 5000 * STEPS_A_PASS
        passes = meta["step"] // STEPS_A_PASS + PASSES
        ranks(kind, 3, "dpsvi", "resume", out, "--passes", passes)
        assert json.loads((out / "model.json").read_text())["step"] == passes * STEPS_A_PASS
        assert score(out) < 1.02


@needs("openmpi")
@pytest.mark.parametrize("strategy", ["decay", "push_sum"])
def test_a_rank_that_dies_before_it_joins(strategy, corpus_file, tmp_path, score):
    """Nobody had counted on it, so no step is lost with it."""
    out = tmp_path / "run"
    run = begin("openmpi", corpus_file, out, strategy, options=["--with-ft", "ulfm"])
    run.send(2)
    until(lambda: said(out, "rank 2 is lost"))
    go_on(out)
    assert run.wait() == 0, run.err
    assert json.loads((out / "model.json").read_text())["step"] == PASSES * STEPS_A_PASS
    assert score(out) < 1.02
