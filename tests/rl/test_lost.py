"""An actor-critic that loses a rank, or is stopped and goes on."""

import json
import signal
from pathlib import Path

import pytest
from tools.lda_fits import go_on, lost
from tools.mpiexec import faulty, launch, needs, until

from dpsvi.rl import ActorCritic

pytestmark = [pytest.mark.fault, pytest.mark.mpi]


def arguments(out, *more, rate=0.006):
    """A run that is slow until it is told to go on."""
    return [
        *faulty({"slow_until": f"{out}.told"}, "dpsvi"), "play", "cartpole", "--moves", "200000",
        "--local-steps", "2", "--set", f"learning_rate={rate}", "--set", "n_evaluations=200",
        "--set", "n_episodes=10", "--out", out, *more,
    ]  # fmt: skip


def learning(out):
    path = Path(out) / "metrics.jsonl"
    return path.exists() and path.read_text().count("score") > 0


@needs("openmpi")
@pytest.mark.parametrize("number, more, rate", [
    (signal.SIGKILL, [], 0.006),
    (signal.SIGKILL, ["--algorithm", "gala"], 0.0025),  # replicas drift apart at larger rates
    (signal.SIGSTOP, [], 0.006),
], ids=["killed", "killed, no master", "frozen"])  # fmt: skip
def test_a_lost_worker_is_named_and_others_make_its_steps(number, more, rate, tmp_path):
    out = tmp_path / "run"
    run = launch("openmpi", 3, *arguments(out, *more, rate=rate), options=["--with-ft", "ulfm"])
    until(lambda: learning(out))
    run.send(2, number)
    until(lambda: lost(out, 2))
    go_on(out)
    assert run.wait() in (0, 5), run.err  # 5: done, without a rank that is silent
    assert "rank 2 is lost" in run.err
    result = json.loads((out / "summary.json").read_text())
    assert result["score"] > 60
    assert ActorCritic.load(out).evaluate(100).mean() == result["score"]


@needs("openmpi")
def test_a_master_that_was_killed_goes_on_from_its_checkpoint(tmp_path):
    out = tmp_path / "run"
    run = launch("openmpi", 3, *arguments(out, "--checkpoint-seconds", "0.1"))
    until(lambda: (out / "checkpoints" / "latest").exists())
    run.send(0, signal.SIGKILL)
    assert run.wait() != 0
    go_on(out)
    again = launch("openmpi", 3, *arguments(out, "--checkpoint-seconds", "0.1", "--resume"))
    assert again.wait() == 0, again.err
    result = json.loads((out / "summary.json").read_text())
    assert result["score"] > 60 and result["moves"] >= 200_000
