"""A run folder: no fit loses what another one left there, unless it can put something better."""

import errno
import itertools
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from dpsvi import DPSVIGaussianMixture
from dpsvi.__main__ import main
from dpsvi.commands.run_folder import RunFolder
from dpsvi.errors import DivergedError
from dpsvi.files.set_aside import SetAside
from dpsvi.training.checkpoint import CheckpointFolder, newest_name, read_newest
from dpsvi.training.job import Snapshot
from dpsvi.training.ledger import Ledger

SETTINGS = {"name": "hmm"}


@pytest.fixture
def data(tmp_path, rng):
    np.save(tmp_path / "good.npy", rng.normal(size=(40, 2)))
    np.save(tmp_path / "bad.npy", np.full((40, 2), np.nan))
    return tmp_path


def fit(data, name, *more):
    """The exit code of a fit of this file."""
    argv = ["fit", "gaussian_mixture", "--data", str(data / name), "--out", str(data / "run")]
    return main([*argv, "--passes", "2", "--quiet", *more])


def test_what_a_model_refuses_names_the_file(data, capsys):
    assert fit(data, "good.npy") == 0
    np.save(data / "endless.npy", np.full((40, 2), np.inf))
    np.save(data / "wide.npy", np.zeros((40, 3)))
    for name in ("endless.npy", "wide.npy"):
        for more in (["evaluate"], ["predict", "--out", str(data / "found.npy")]):
            assert main([more[0], str(data / "run"), "--data", str(data / name), *more[1:]]) == 3
            assert f"dpsvi {more[0]}: {data / name}: " in capsys.readouterr().err


def killed(path):
    """What a fit leaves behind that was killed after its second checkpoint."""
    with RunFolder(path) as folder:
        folder.write_settings(SETTINGS, "documents", 0, 1)
        folder.metric(10, 100, 1.0, "score", -1.0, "heldout")
    for step in ("step-00000010", "step-00000020"):
        (path / "checkpoints" / step).mkdir(parents=True)
    (path / "checkpoints" / "latest").write_text("step-00000020\n")


def killed_within(folder):
    """Nothing else of it is called, and the system closes its files."""
    folder._metrics.close()
    folder._lock._file.close()


def content(path):
    """Every file under a folder."""
    return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_checkpoints_of_a_killed_run_are_not_lost(data, capsys):
    killed(data / "run")
    before = content(data / "run")
    for name in ("good.npy", "bad.npy"):
        assert fit(data, name) == 2
        said = capsys.readouterr().err
        assert "holds checkpoints" in said and "dpsvi resume" in said and "--overwrite" in said
    assert fit(data, "bad.npy", "--overwrite") == 3
    assert content(data / "run") == before
    assert fit(data, "good.npy", "--overwrite") == 0
    assert not (data / "run" / "checkpoints").exists()


def test_a_fit_that_fails_replaces_nothing(data, capsys):
    assert fit(data, "good.npy") == 0
    before = content(data / "run")
    for more, code in ((["--set", "mean_prior=[1]"], 2), (["--held-out", "40"], 2)):
        assert fit(data, "good.npy", "--overwrite", *more) == code
        assert content(data / "run") == before
    assert fit(data, "good.npy") == 2
    assert "--overwrite replaces it" in capsys.readouterr().err


def test_a_fit_that_ends_well_replaces_everything(data):
    killed(data / "run")
    (data / "run" / "topics.csv").write_text("of the run before")
    (data / "run" / "notes.txt").write_text("of the user")
    assert fit(data, "good.npy", "--overwrite") == 0
    assert {path.name for path in (data / "run").iterdir()} == {
        "config.json", "env.json", "metrics.jsonl", "model.json", "model.safetensors", "run.log",
        "report.html", "notes.txt",
    }  # fmt: skip


def test_the_page_of_a_model_without_topics(data, capsys):
    assert fit(data, "good.npy") == 0
    assert f"open {data / 'run' / 'report.html'} in a browser" in capsys.readouterr().out
    page = (data / "run" / "report.html").read_text()
    assert "Points per second" in page and "topics.csv" not in page
    assert '<section aria-labelledby="topics-title" hidden>' in page


def test_nothing_is_made_for_data_that_cannot_be_read(data, capsys):
    for name in ("absent.npy", "bad.npy"):
        assert fit(data, name) == 3
        assert name in capsys.readouterr().err
        assert not (data / "run").exists()


def test_measurements_of_a_fit_that_fails_are_kept(tmp_path):
    with pytest.raises(DivergedError), RunFolder(tmp_path / "run") as folder:
        folder.metric(10, 100, 1.0, "score", -1.0, "heldout")
        raise DivergedError("NaN")
    assert json.loads((tmp_path / "run" / "metrics.jsonl").read_text())["step"] == 10


def test_a_new_checkpoint_is_better_than_an_old_model(data):
    assert fit(data, "good.npy") == 0
    with pytest.raises(DivergedError), RunFolder(data / "run", overwrite=True):
        killed_at = data / "run" / "checkpoints"
        (killed_at / "step-00000010").mkdir(parents=True)
        (killed_at / "latest").write_text("step-00000010\n")
        raise DivergedError("NaN")
    assert not (data / "run" / "model.json").exists() and killed_at.exists()
    assert not (data / "run" / ".replaced").exists()


def test_what_a_python_program_is_writing_is_left_alone(data, capsys):
    """Its `checkpoint_dir` has no lock, and no settings."""
    written = data / "run/checkpoints/.step-00000010.123"
    written.mkdir(parents=True)
    assert main(["resume", str(data / "run")]) == 3
    assert "no config.json" in capsys.readouterr().err
    assert fit(data, "bad.npy") == 3 and written.exists()


def test_checkpoints_that_cannot_be_read_are_bad_input(data, capsys):
    killed(data / "run")
    (data / "run/checkpoints/latest").unlink()
    (data / "run/checkpoints/latest").mkdir()
    assert main(["resume", str(data / "run")]) == 3
    assert "latest: cannot be read: Is a directory" in capsys.readouterr().err


def test_what_a_killed_run_had_set_aside_comes_back(data):
    assert fit(data, "good.npy") == 0
    before = content(data / "run")
    folder = RunFolder(data / "run", overwrite=True)
    folder.__enter__()
    killed_within(folder)
    assert not (data / "run" / "model.json").exists()
    assert fit(data, "bad.npy", "--overwrite") == 3
    assert content(data / "run") == before


def killed_while_it_writes(write, number):
    """Whether a process ended that was to be killed as it gives a file its name, the so-manyth."""
    left, replace = [number], os.replace

    def kill_or_replace(*names):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*names)

    child = os.fork()
    if not child:
        os.replace = kill_or_replace
        try:
            write()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_nothing_that_was_not_finished_stays_and_no_checkpoint_is_lost(data, rng):
    """A process writes settings and, twice, the checkpoint of a step; it is killed anywhere."""
    X = rng.normal(size=(50, 2))
    state = DPSVIGaussianMixture(2, max_iter=1, random_state=0).fit(X)._state
    snapshot = Snapshot(state, Ledger(50, 10, 1, 0), 0.0)

    def write():
        with RunFolder(run) as folder:
            folder.write_settings(SETTINGS, "points", 0, 1)
            for _ in range(2):
                CheckpointFolder(run, 0.0).write(snapshot)

    unfinished, lost = 0, 0
    for number in itertools.count(1):
        run = data / f"run-{number}"
        if not killed_while_it_writes(write, number):
            break
        whole = newest_name(run / "checkpoints") is not None
        aside = any((run / "checkpoints").glob(".*.old"))
        unfinished += any(path.name != ".lock" for path in run.rglob(".*"))
        lost += aside and not whole
        editor = run / ".config.json.swp"  # of somebody who looks at the settings
        editor.touch()
        RunFolder(run, overwrite=True)  # which looks at what is there
        editor.unlink()
        assert number == 1 or not list(run.rglob(".*"))  # the first writes the settings
        if whole or aside:
            assert read_newest(run).meta["step"] == state.step
    assert unfinished > 8 and lost == 1, "each happened"


def test_a_place_that_cannot_be_a_folder_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(FileExistsError, match="file: is a file"):
            RunFolder(path)
    assert RunFolder(tmp_path / "a" / "b") and not (tmp_path / "a").exists()


def test_a_refused_resume_leaves_the_settings(data, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_checkpoints", lambda self: None)
        assert fit(data, "good.npy", "--passes", "5", "--checkpoint-seconds", "1e-9") == 0
    before = (data / "run/config.json").read_bytes()
    assert main(["resume", str(data / "run"), "--passes", "2", "--quiet"]) == 3
    assert "--passes is 2" in capsys.readouterr().err
    assert (data / "run/config.json").read_bytes() == before
    assert main(["resume", str(data / "run"), "--quiet"]) == 0


def test_a_log_of_each_rank_goes_on(data, monkeypatch, caplog):
    """As that of the run does: it tells why the run before has ended."""
    caplog.set_level("INFO", logger="dpsvi")
    monkeypatch.setattr(RunFolder, "drop_checkpoints", lambda self: None)
    given = "--checkpoint-seconds", "1e-9", "--log-all-ranks"
    assert fit(data, "good.npy", "--passes", "3", *given) == 0
    log = data / "run/run.rank-0.log"
    before = log.read_text()
    again = ["resume", str(data / "run"), "--passes", "5", "--quiet", "--log-all-ranks"]
    assert main(again) == 0
    assert before and log.read_text().startswith(before) and len(log.read_text()) > len(before)


def test_a_simulated_fit_goes_on_as_one(data, monkeypatch, capsys):
    cluster = "--engine", "simulated", "--workers", "3", "--checkpoint-seconds", "1e-9"
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_checkpoints", lambda self: None)
        assert fit(data, "good.npy", "--passes", "3", *cluster) == 0
    assert main(["resume", str(data / "run"), "--passes", "5", "--quiet"]) == 0
    assert "SIMULATED" in capsys.readouterr().out.splitlines()[-2]
    settings = json.loads((data / "run/config.json").read_text())
    assert settings["engine"] == "simulated" and settings["workers"] == 3


def test_options_of_a_strategy_are_kept_with_it(data, monkeypatch, capsys):
    """A resume uses them again, unless it names another strategy, which has others."""
    monkeypatch.setattr(RunFolder, "drop_checkpoints", lambda self: None)

    def kept():
        settings = json.loads((data / "run/config.json").read_text())
        return settings["strategy"], dict(settings["strategy_options"] or {})

    def resumed(passes, *more):
        assert main(["resume", str(data / "run"), "--passes", passes, "--quiet", *more]) == 0

    given = ["--strategy-options", "alpha=0.25", "--strategy-options", "synchronous=true"]
    cluster = "--engine", "simulated", "--workers", "2", "--checkpoint-seconds", "1e-9"
    assert fit(data, "good.npy", *cluster, "--strategy", "elastic", *given) == 0
    elastic = "elastic", {"alpha": 0.25, "synchronous": True}
    assert kept() == elastic
    resumed("3")
    assert kept() == elastic
    resumed("4", "--strategy", "local_sgd", "--strategy-options", "post_local=0.5")
    assert kept() == ("local_sgd", {"post_local": 0.5})
    resumed("5", "--strategy", "decay")
    assert kept() == ("decay", {})


def test_resume_refuses_what_its_engine_would_ignore(data, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_checkpoints", lambda self: None)
        assert fit(data, "good.npy", "--checkpoint-seconds", "1e-9") == 0
    assert main(["resume", str(data / "run"), "--workers", "2", "--quiet"]) == 2
    assert "--workers is for --engine simulated" in capsys.readouterr().err


def test_what_was_set_aside_comes_back_at_once_where_no_log_can_be_opened(data, monkeypatch):
    assert fit(data, "good.npy") == 0
    before = content(data / "run")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("dpsvi.commands.run_folder.log_to", full)
    with pytest.raises(OSError, match="No space left"):
        RunFolder(data / "run", overwrite=True).__enter__()
    assert content(data / "run") == before


@pytest.mark.parametrize("killed", [False, True])
def test_all_is_set_aside_or_nothing(data, killed, monkeypatch):
    """Where one file cannot be moved, those that were come back; of a killed process, later."""
    assert fit(data, "good.npy") == 0
    before, moved = content(data / "run"), []

    def fail_at_the_third(source, target):
        moved.append(source)
        if len(moved) == 3:
            raise OSError(errno.EIO, "Input/output error")
        os.rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("dpsvi.files.set_aside.os.replace", fail_at_the_third)
        if killed:
            patch.setattr(SetAside, "undo", lambda self: None)
        with pytest.raises(OSError, match="Input/output"):
            RunFolder(data / "run", overwrite=True).__enter__()
    assert (content(data / "run") == before) != killed
    assert fit(data, "good.npy") == 2, "there is a model"
    assert content(data / "run") == before


@pytest.mark.parametrize("command", ["fit", "resume"])
def test_what_a_killed_overwrite_had_set_aside_is_protected(command, data, monkeypatch, capsys):
    """It comes back at the next look at the folder, be it to refuse, and can be resumed."""
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_checkpoints", lambda self: None)
        assert fit(data, "good.npy", "--passes", "3", "--checkpoint-seconds", "1e-9") == 0
    (data / "run" / "model.json").unlink()  # it was killed before its end
    before = content(data / "run")
    folder = RunFolder(data / "run", overwrite=True)
    folder.__enter__()
    killed_within(folder)  # killed, too
    if command == "fit":
        assert fit(data, "good.npy") == 2
        assert "holds checkpoints" in capsys.readouterr().err
        assert content(data / "run") == before
    else:
        assert main(["resume", str(data / "run"), "--passes", "4", "--quiet"]) == 0


def test_sharding_stays_as_it_was(data, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_checkpoints", lambda self: None)
        assert fit(data, "good.npy", "--engine", "mpi", "--checkpoint-seconds", "1e-9") == 0
    argv = ["resume", str(data / "run"), "--engine", "mpi", "--quiet", "--sharding"]
    assert main([*argv, "shard"]) == 2
    assert "--sharding was whole when the fit began" in capsys.readouterr().err
    assert main([*argv, "whole"]) == 0


HOLDER = """
import sys
from dpsvi.commands.run_folder import RunFolder

with RunFolder(sys.argv[1], overwrite=True):
    print("begun", flush=True)
    input()
    raise ZeroDivisionError
"""


@pytest.fixture
def holder(data):
    """A process that writes the folder, until it is told to fail or is killed."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, data / "run"], stdin=subprocess.PIPE, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert other.stdout.readline() == "begun\n"
    yield other
    other.kill()
    other.communicate()


@pytest.mark.parametrize("before", [True, False])
def test_a_folder_has_one_writer(data, before, request, capsys):
    """What it has set aside is its own, too, and comes back when it fails."""
    if before:
        assert fit(data, "good.npy") == 0
    here = content(data / "run")
    other = request.getfixturevalue("holder")
    at_work = content(data / "run")
    assert not (data / "run" / "model.json").exists()
    for second in (
        lambda: fit(data, "good.npy"), lambda: fit(data, "good.npy", "--overwrite"),
        lambda: main(["resume", str(data / "run"), "--quiet"]),
        lambda: main(["play", "cartpole", "--moves", "9", "--out", str(data / "run")]),
    ):  # fmt: skip
        assert second() == 2
        said = capsys.readouterr().err
        assert f"process {other.pid} on" in said and "is writing this folder" in said
        assert content(data / "run") == at_work
    other.communicate("\n")
    assert content(data / "run") == here and (data / "run").exists() == before
    assert fit(data, "good.npy", "--overwrite") == 0
    assert not (data / "run" / ".lock").exists()


def test_a_writer_that_is_killed_leaves_no_lock(data, holder):
    holder.kill()
    holder.wait()
    assert (data / "run" / ".lock").exists()
    assert fit(data, "good.npy") == 0
    assert not (data / "run" / ".lock").exists()


def test_of_two_fits_that_begin_at_once_one_is_made(data):
    """The second one reads its data while the first one makes the folder, and ends."""
    first, second = RunFolder(data / "run"), RunFolder(data / "run")
    with first:
        with pytest.raises(FileExistsError, match="is writing this folder"), second:
            pass
        (data / "run" / "model.json").write_text("{}")
    with pytest.raises(FileExistsError, match="holds a model already"), second:
        pass
    assert (data / "run" / "model.json").read_text() == "{}"


def test_a_file_system_without_locks_is_said(data, monkeypatch, caplog):
    def flock(file, how):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("dpsvi.files.lock.fcntl.flock", flock)
    assert fit(data, "good.npy") == 0
    assert "its file system has no locks (no locks available)" in caplog.text
    assert not (data / "run" / ".lock").exists()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda settings: [], "must be an object of settings"),
        (lambda settings: None, "must be an object of settings"),
        (lambda settings: settings | {"name": None}, "'name' must be one of"),
        (lambda settings: {}, "'name' must be one of"),
        (lambda settings: settings | {"name": "dpsvi"}, "'name' must be one of"),
        (lambda settings: settings | {"set": 3}, "'set' must be a list of names and values"),
        (lambda settings: settings | {"set": ["ab"]}, "'set' must be a list of names and values"),
        (lambda settings: settings | {"data": None}, "no entry 'data' that is a text"),
        (lambda settings: {"command": "play"}, "no entry 'environment' that is a str"),
        (lambda settings: {"command": "play", "environment": "x", "moves": "3"}, "'moves'"),
        (lambda settings: {"command": "play", "environment": "x", "moves": True}, "'moves'"),
        (lambda settings: {"command": "play", "environment": "x", "moves": 3}, "environment must"),
        (lambda settings: settings | {"threads": "x"}, "threads must be"),
        (lambda settings: settings | {"set": [["covariance", 1]]}, "has the parameters"),
    ],
    ids=range(14),
)
def test_damaged_settings_are_told(data, monkeypatch, capsys, edit, said):
    killed(data / "run")
    path = data / "run" / "config.json"
    path.write_text(json.dumps(edit({"name": "gaussian_mixture", "data": str(data / "good.npy")})))
    assert main(["resume", str(data / "run"), "--quiet"]) == 3
    error = capsys.readouterr().err
    assert said in error and str(path) in error


def test_settings_that_do_not_say_all_are_completed(data, monkeypatch, capsys):
    """Older versions wrote fewer; `null` is the default of most options."""
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_checkpoints", lambda self: None)
        assert fit(data, "good.npy", "--checkpoint-seconds", "1e-9") == 0
    path = data / "run" / "config.json"
    settings = json.loads(path.read_text())
    kept = {name: settings[name] for name in ("name", "data", "components") if name in settings}
    path.write_text(json.dumps({**kept, "set": None}))
    assert main(["resume", str(data / "run"), "--passes", "3", "--quiet"]) == 0


def test_endless_settings_and_damaged_measurements(data, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_checkpoints", lambda self: None)
        assert fit(data, "good.npy", "--checkpoint-seconds", "1e-9") == 0
    path = data / "run" / "config.json"
    before = path.read_text()
    path.write_text("[" * 100_000)
    assert main(["resume", str(data / "run"), "--quiet"]) == 3
    assert f"{path}: not valid JSON" in capsys.readouterr().err
    path.write_text(before)
    with (data / "run" / "metrics.jsonl").open("ab") as metrics:
        metrics.write(b"\xff\n")
    assert main(["resume", str(data / "run"), "--passes", "3", "--quiet"]) == 0
    assert b"\xff" not in (data / "run" / "metrics.jsonl").read_bytes()
