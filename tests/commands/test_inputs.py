"""What a command says of input that is not there or cannot be opened: exit code 3, and its path."""

import os

import numpy as np
import pytest

from dpsvi.__main__ import COMMANDS, main

# Arguments of each command, with INPUT for what cannot be read.
COMMANDS_AND_INPUTS = [
    ["fit", "lda", "--out", "OUT", "--corpus", "INPUT"],
    ["fit", "lda", "--out", "OUT", "--corpus", "INPUT", "--texts"],
    ["fit", "lda", "--out", "OUT", "--corpus", "CORPUS", "--vocab", "INPUT"],
    ["fit", "lda", "--out", "OUT", "--corpus", "CORPUS", "--config", "INPUT"],
    ["fit", "gaussian_mixture", "--out", "OUT", "--data", "INPUT.npy"],
    ["fit", "gaussian_mixture", "--out", "OUT", "--data", "INPUT.npz"],
    ["fit", "gaussian_mixture", "--out", "OUT", "--data", "INPUT.csv"],
    ["fit", "gaussian_mixture", "--out", "OUT", "--data", "INPUT.mtx"],
    ["resume", "INPUT"],
    ["transform", "INPUT", "--corpus", "CORPUS", "--out", "OUT.npy"],
    ["transform", "TOPICS", "--corpus", "INPUT", "--out", "OUT.npy"],
    ["predict", "INPUT", "--data", "POINTS", "--out", "OUT.npy"],
    ["predict", "MIXTURE", "--data", "INPUT.npy", "--out", "OUT.npy"],
    ["evaluate", "INPUT", "--corpus", "CORPUS"],
    ["evaluate", "TOPICS", "--corpus", "INPUT"],
    ["evaluate", "TOPICS", "--corpus", "CORPUS", "--vocab", "INPUT"],
    ["evaluate", "MIXTURE", "--data", "INPUT.npy"],
    ["topics", "INPUT"],
    ["info", "INPUT"],
    ["export", "INPUT", "--format", "csv", "--out", "OUT.csv"],
    ["watch", "INPUT"],
    ["play", "cartpole", "--out", "INPUT", "--resume"],
]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Inputs that can be read: files, and run folders of two kinds of model."""
    folder = tmp_path_factory.mktemp("inputs")
    corpus, points = folder / "docword.few.txt", folder / "points.npy"
    counts = [f"{d} {w} 1" for d in range(1, 7) for w in (1, 2 + d % 3)]
    corpus.write_text("\n".join(["6", "4", str(len(counts)), *counts]) + "\n")
    np.save(points, np.random.default_rng(0).normal(size=(20, 2)))
    topics, mixture = folder / "topics", folder / "mixture"
    few = ["--passes", "1", "--quiet", "--checkpoint-seconds", "0", "--held-out", "0"]
    fit_topics = ["fit", "lda", "--corpus", corpus, "--topics", "2", "--no-cache", "--out", topics]
    fit_mixture = ["fit", "gaussian_mixture", "--data", points, "--out", mixture]
    for argv in (fit_topics, fit_mixture):
        assert main([*map(str, argv), *few]) == 0
    return {"CORPUS": corpus, "POINTS": points, "TOPICS": topics, "MIXTURE": mixture}


def code_of(argv) -> int:
    """The exit code, whether `main` returns it or ends the process."""
    try:
        return main(argv)
    except SystemExit as ended:
        return ended.code


def test_every_command_with_an_input_is_here():
    assert {argv[0] for argv in COMMANDS_AND_INPUTS} == set(COMMANDS) - {"warmup"}


@pytest.mark.parametrize("fault", ["absent", "another kind", "cannot be opened"])
@pytest.mark.parametrize("argv", COMMANDS_AND_INPUTS, ids=" ".join)
def test_input_that_cannot_be_read(argv, fault, places, tmp_path, capsys):
    name = next(word for word in argv if word.startswith("INPUT"))
    path, out = tmp_path / name.replace("INPUT", "given"), tmp_path / "out"
    of_a_folder = argv[1] == "INPUT" or argv[0] == "play"
    if fault == "another kind" and of_a_folder:
        path.write_text("a file\n")
    elif fault == "another kind":
        path.mkdir()
    elif fault == "cannot be opened":
        os.symlink(path.name, path)  # to itself, so that nobody can open it, not even root
    before = os.listdir(tmp_path)
    words = {name: path, **places}
    argv = [str(words.get(word, word)).replace("OUT", str(out)) for word in argv]
    assert code_of(argv) == 3
    said = capsys.readouterr().err.splitlines()[-1]
    assert str(path) in said and said.startswith("dpsvi")
    assert os.listdir(tmp_path) == before


def test_a_config_file_that_is_no_toml(tmp_path, capsys):
    path = tmp_path / "run.toml"
    for content, reason in ((b"topics = ", "Invalid value"), (b"\xff", "can't decode")):
        path.write_bytes(content)
        assert code_of(["fit", "lda", "--corpus", "any", "--config", str(path)]) == 3
        said = capsys.readouterr().err
        assert f"{path}: not valid TOML" in said and reason in said


def test_an_output_folder_that_cannot_be_written_is_no_bad_data(places, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("")
    argv = ["fit", "gaussian_mixture", "--data", str(places["POINTS"]), "--out", str(file / "run")]
    assert main(argv) == 2
    assert f"{file}: is a file, a folder is needed" in capsys.readouterr().err
