"""The command that trains an agent and leaves a folder that shows the game."""

import itertools
import json
import re

import pytest

from dpsvi.__main__ import main
from dpsvi.commands.run_folder import RunFolder
from dpsvi.errors import Terminated
from dpsvi.rl import ActorCritic, page


def test_play_leaves_a_folder_that_shows_the_game(tmp_path, capsys):
    out = tmp_path / "run"
    argv = [
        "play", "cartpole", "--moves", "20000", "--hidden", "16,8", "--set", "gamma=0.98",
        "--set", "n_evaluations=4", "--out", str(out), "--json",
    ]  # fmt: skip
    assert main(argv) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["moves"] >= 20_000 and result["folder"] == str(out)
    agent = ActorCritic.load(out)
    assert (agent.hidden, agent.gamma) == ((16, 8), 0.98)
    assert agent.evaluate(100).mean() == result["score"]
    scores = [json.loads(line)["value"] for line in (out / "metrics.jsonl").open()]
    assert scores == [entry["score"] for entry in agent.history_] and len(scores) == 4
    text = (out / "index.html").read_text()
    assert f"{result['moves']:,} moves" in text and text.count("<circle") == 4
    frames = json.loads(re.search(r"const frames = (.*);", text)[1])
    assert len(frames) == len(agent.watch())
    assert "<section hidden>" not in text
    assert {shape[0] for shape in frames[0]} <= {"rect", "line", "circle"}
    assert "http" not in text.replace("http-equiv", "")
    assert not (out / "checkpoints").exists()
    assert main(argv) == 2
    assert "holds a model already" in capsys.readouterr().err


def test_play_of_gymnasium_leaves_a_page_without_a_replay(tmp_path, capsys):
    out = tmp_path / "run"
    argv = ["play", "gymnasium:CartPole-v1", "--moves", "500", "--hidden", "4", "--out", str(out)]
    assert main([*argv, "--set", "n_evaluations=1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert ActorCritic.load(out).evaluate(100).mean() == result["score"]
    text = (out / "index.html").read_text()
    assert "gymnasium:CartPole-v1, learned by hsa2c" in text and "const frames = [];" in text
    assert "<section hidden>" in text


@pytest.mark.parametrize("argv, message", [
    (["--set", "gama=0.9"], "has no 'gama'"),
    (["--set", "gamma=2"], "gamma must be"),
    (["--resume"], "--resume needs --out"),
    (["--algorithm", "gala"], "workers"),
])  # fmt: skip
def test_play_refuses_what_there_is_not(argv, message, capsys):
    assert main(["play", "cartpole", "--moves", "100", *argv]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--hidden", "8"], ["--set", "gamma=0.5"], ["--moves", "9000"]])
def test_a_refused_resume_leaves_the_settings(more, tmp_path, monkeypatch, capsys):
    argv = ["play", "cartpole", "--moves", "2000", "--hidden", "4", "--checkpoint-seconds", "1e-9"]
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_checkpoints", lambda self: None)
        assert main([*argv, "--out", str(tmp_path)]) == 0
    (tmp_path / "model.json").unlink()  # as if it had been killed
    files = [tmp_path / name for name in ("config.json", "env.json", "metrics.jsonl")]
    with files[2].open("a") as metrics:
        metrics.write('{"step": 1000000}\n')  # of steps after the checkpoint
    before = [file.read_bytes() for file in files]
    assert main([*argv, "--out", str(tmp_path), "--resume", *more]) == 3
    assert [file.read_bytes() for file in files] == before
    assert main([*argv, "--out", str(tmp_path), "--resume"]) == 0


def test_resume_needs_no_option_of_the_run(tmp_path, monkeypatch, capsys):
    """Whatever it was trained with is in the folder; the end is that of one go, bit for bit."""
    argv = [
        "play", "cartpole", "--moves", "6000", "--hidden", "8,4", "--seed", "3", "--algorithm",
        "pa3c", "--set", "gamma=0.9", "--set", "n_evaluations=5", "--checkpoint-seconds", "1e-9",
    ]  # fmt: skip
    assert main([*argv, "--out", str(tmp_path / "whole")]) == 0
    whole = ActorCritic.load(tmp_path / "whole")
    write, seen = RunFolder.metric, []

    def interrupt(folder, *values):
        write(folder, *values)
        seen.append(values)
        if len(seen) == 3:
            raise Terminated(15)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "metric", interrupt)
        assert main([*argv, "--out", str(tmp_path / "run")]) == 143
    (tmp_path / "run" / "model.json").unlink()  # as if it had been killed
    capsys.readouterr()
    assert main(argv[:4] + ["--out", str(tmp_path / "run")]) == 2
    assert f"`dpsvi resume {tmp_path / 'run'}` goes on with it, " in capsys.readouterr().err
    for option in ("--passes", "--workers"):
        assert main(["resume", str(tmp_path / "run"), option, "3"]) == 2
        assert f"{option} is for fits" in capsys.readouterr().err
    assert main(["resume", str(tmp_path / "run"), "--quiet"]) == 0
    assert "cartpole: mean return" in capsys.readouterr().out
    again = ActorCritic.load(tmp_path / "run")
    assert main(["evaluate", str(tmp_path / "run"), "--data", "any.npy"]) == 3
    assert f"{tmp_path / 'run'}: holds an agent, which dpsvi.rl" in capsys.readouterr().err
    assert (again.hidden, again.gamma, again.algorithm) == ((8, 4), 0.9, "pa3c")
    assert again.parameters_.tobytes() == whole.parameters_.tobytes()
    assert [e["score"] for e in again.history_] == [e["score"] for e in whole.history_]
    settings = [
        json.loads((tmp_path / name / "config.json").read_text()) for name in ("run", "whole")
    ]
    assert settings[0] | {"verbose": 1} == settings[1]


@pytest.mark.parametrize("name, message", [
    ("chess", "environment must be one of"), ("gymnasium:Chess-v1", "cannot be made"),
])  # fmt: skip
def test_play_names_an_environment_that_there_is_not(name, message, capsys):
    assert main(["play", name, "--moves", "100"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("low, high", [(0, 500), (0, 5.5), (-200, 0), (-21, 19), (0, 0), (0, 7e-3)])
def test_marks_of_the_curve_are_round_and_enclose_it(low, high):
    marks = page._ticks(low, high)
    assert marks[0] <= low and high <= marks[-1] + 1e-12 and 2 <= len(marks) <= 7
    (step,) = {f"{after - before:.6g}" for before, after in itertools.pairwise(marks)}
    assert step.replace(".", "").replace("0", "") in {"1", "2", "5"}
