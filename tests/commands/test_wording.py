"""Errors and warnings name what the user of a command can type."""

import re
import subprocess
import sys
from argparse import Namespace

import numpy as np
import pytest

from dpsvi import models
from dpsvi.__main__ import main, make_parser
from dpsvi.commands.outputs import way_to_go_on
from dpsvi.commands.wording import NOT_JSON, in_options


def parsed(*argv):
    return make_parser().parse_args(argv)


LDA = ("fit", "lda", "--corpus", "x")
MIXTURE = ("fit", "gaussian_mixture", "--data", "x")


@pytest.mark.parametrize(
    ("argv", "message", "said"),
    [
        (LDA, "n_components must be >= 1, got 0", "--topics must be >= 1, got 0"),
        (MIXTURE, "n_components must be >= 1, got 0", "--set n_components must be >= 1, got 0"),
        (LDA, "tol must be a number", "--set tol must be a number"),
        (LDA, "max_iter='auto' or early_stopping=True", "--passes=auto or --early-stopping"),
        (LDA, "needs validation_size, got validation_size=None",
         "needs --held-out, got no --held-out"),
        (LDA, "most_blind=None lets all work", "--set most_blind=null lets all work"),
        (LDA, "local_steps=4 of 2 threads", "--local-steps=4 of 2 threads"),
        (LDA, "strategy='gap' has no master_batch=2", "--strategy=gap has no --master-batch=2"),
        (LDA, "above the limit; raise max_bytes", "above the limit; raise --max-bytes"),
        ((*LDA, "--set", "max_iter=-2"), "max_iter must be >= 0", "--set max_iter must be >= 0"),
        (("evaluate", "x", "--corpus", "y"), "y: raise max_bytes", "y: raise --max-bytes"),
        (("resume", "x"), "max_iter must be >= 0", "--passes must be >= 0"),
        (("play", "cartpole"), "n_jobs must be >= 1", "--threads must be >= 1"),
        (("play", "pong"), "environment must be one of", "environment must be one of"),
        (LDA, "X: no words in 2 texts", "x: no words in 2 texts"),
        (("play", "cartpole"), "n_moves must be >= 1", "--set n_moves must be >= 1"),
        # What is no parameter stays as it is.
        (LDA, "the engine and its threads, batch_sizes, model.batch_size", None),
        (LDA, "runs/max_iter/a.txt: 'n_jobs' is not a word", None),
        (LDA, "--set n_jobs=2 and --batch-size", None),
        (("topics", "run"), "max_iter must be >= 0", None),
    ],
)  # fmt: skip
def test_parameters_are_named_by_their_options(argv, message, said):
    assert in_options(message, parsed(*argv)) == (said or message)


@pytest.mark.parametrize("name", models.names())
def test_every_parameter_of_every_model_can_be_typed(name, tmp_path, capsys):
    """What the message names is an option of the command, or `--set` takes it."""
    data = "--corpus" if models.declared(name)["FITTED_TO"] == "corpus" else "--data"
    args = parsed("fit", name, data, "x")
    for parameter in models.get(name)().get_params().keys() - NOT_JSON:
        said = in_options(f"{parameter} must be another", args).removesuffix(" must be another")
        typed = [said] if said.startswith("--set") else [said, "1"]
        if said.startswith("--set "):
            typed = ["--set", f"{said.removeprefix('--set ')}=1"]
        for more in (typed, typed[:1]):
            try:
                assert parsed(*("fit", name, data, "x"), *more)
                break
            except SystemExit:  # it is one of few words, or takes no value
                assert "unrecognized arguments: --" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--doc-topic-prior", "-1"], "--doc-topic-prior must be > 0"),
        (["--learning-decay", "2"], "--learning-decay must be a number > 0 and <= 1, got 2.0"),
        (["--set", "n_components=0"], "--set n_components must be an integer >= 1"),
        (["--set", "n_iter_no_change=0"], "--set n_iter_no_change must be an integer >= 1"),
        (["--evaluate-every", "0"], "--evaluate-every must be a number > 0"),
        (["--threads", "2", "--engine", "serial"], "--engine=serial runs one thread, got --thr"),
        (["--passes", "auto", "--early-stopping"], "--passes=auto ends by itself"),
        (["--engine", "simulated", "--strategy-options", "a=1"], "--strategy-options of 'decay'"),
    ],
)
def test_a_refusal_names_the_option(options, message, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("a dog\na cat\n" * 20)
    argv = ["fit", "lda", "--corpus", str(tmp_path / "texts.txt"), "--texts", "--topics", "2"]
    assert main([*argv, *options, "--out", str(tmp_path / "run")]) == 2
    assert f"dpsvi fit: {message}" in capsys.readouterr().err


def test_warnings_name_options_and_files(tmp_path):
    """They name no line of a program that the user has not written."""
    X = np.eye(6, dtype=int)
    rows = [f"{i + 1} {i + 1} 2" for i in reversed(range(len(X)))]
    path = tmp_path / "docword.x.txt"
    path.write_text("\n".join(["6", "6", "6", *rows]) + "\n")
    argv = ["fit", "lda", "--corpus", str(path), "--topics", "2", "--passes", "1", "--quiet",
            "--set", "max_batch_size=400", "--no-cache",
            "--out", str(tmp_path / "run")]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "dpsvi", *argv], capture_output=True, text=True, check=True
    )
    told = [line for line in done.stderr.splitlines() if "compil" not in line]
    assert any(line.startswith(f"{path}: ") for line in told), told
    assert any(line.startswith("--set max_batch_size=400: no checkpoints") for line in told), told
    assert not re.search(r"\.py:\d+: ", done.stderr)


def test_names_of_python_alone_are_left():
    args = Namespace(command="fit", name="lda", set=[], threads=1)
    assert in_options("cluster must be a dpsvi.Cluster", args) == "cluster must be a dpsvi.Cluster"


def test_a_folder_with_checkpoints_can_go_on(tmp_path):
    assert way_to_go_on(tmp_path) == ""
    (tmp_path / "checkpoints").mkdir()
    assert f"`dpsvi resume {tmp_path}`" in way_to_go_on(tmp_path)
