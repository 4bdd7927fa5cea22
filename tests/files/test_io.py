"""Files are whole or not at all; a model comes back bit for bit, or is refused by name."""

import errno
import hashlib
import json
import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsvi.errors import DpsviError, ModelFormatError
from dpsvi.files import io

ARRAYS = {
    "lambda": np.arange(12, dtype=np.float32).reshape(3, 4) + 0.1,
    "alpha": np.array([0.1, 0.2, np.pi]),
    "scalar": np.array(7, np.int64),
    "nothing": np.zeros((0, 4), np.float32),
    "transposed": np.arange(6.0).reshape(2, 3).T,
}
META = {
    "params": {"n_components": 4, "tol": np.float64(1e-3)},
    "vocabulary": ["naïve", "\u2028", ""],
}


@pytest.fixture
def model(tmp_path):
    """The folder of a small saved model."""
    folder = tmp_path / "deep" / "model"
    io.save_model(folder, kind="toy", arrays=ARRAYS, meta=META)
    return folder


def edit(folder, **changes):
    path = folder / "model.json"
    meta = json.loads(path.read_text("utf-8")) | changes
    path.write_text(io.meta_text({k: v for k, v in meta.items() if v is not None}), "utf-8")


# --- there and back ----------------------------------------------------------------------------


def test_round_trip(model):
    arrays, meta = io.load_model(model, "toy")
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype and arrays[name].shape == array.shape
        assert arrays[name].tobytes() == np.ascontiguousarray(array).tobytes()
    assert meta["params"] == {"n_components": 4, "tol": 1e-3}
    assert meta["vocabulary"] == META["vocabulary"]
    assert meta["schema"] == io.SCHEMA and meta["kind"] == "toy"
    assert io.read_meta(model) == meta
    assert io.load_model(model)[1] == meta, "the kind need not be known"


def test_what_is_written(model):
    """Plain JSON, safetensors, and nothing else; readable by whoever may read the folder."""
    assert sorted(os.listdir(model)) == ["model.json", "model.safetensors"]
    meta = json.loads((model / "model.json").read_text("utf-8"))
    assert meta["arrays"]["lambda"] == {"shape": [3, 4], "dtype": "float32"}
    umask = os.umask(0)
    os.umask(umask)
    for name in os.listdir(model):
        assert stat.S_IMODE((model / name).stat().st_mode) == 0o666 & ~umask


def test_saving_again_replaces(model):
    io.save_model(model, kind="toy", arrays={"x": np.ones(2)}, meta={"params": {}})
    arrays, _ = io.load_model(model, "toy")
    assert list(arrays) == ["x"]
    assert sorted(os.listdir(model)) == ["model.json", "model.safetensors"]


def test_what_json_cannot_hold_leaves_the_old_model(model):
    before = io.load_model(model)
    for value in (object(), b"bytes", np.array(["2020-01-01"], "datetime64[s]")):
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            io.save_model(model, kind="toy", arrays={"x": np.ones(2)}, meta={"params": value})
    arrays, meta = io.load_model(model)
    assert meta == before[1] and arrays.keys() == before[0].keys()


# --- refused -----------------------------------------------------------------------------------


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def flip(folder):
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(folder):
    (folder / "model.safetensors").write_bytes(b"")


def other(folder):
    io.save_model(folder.parent / "b", kind="toy", arrays={"x": np.ones(1)}, meta=META)
    os.replace(folder.parent / "b" / "model.safetensors", folder / "model.safetensors")


def no_arrays(folder):
    """With the right hash, as whoever edits files may write it."""
    payload = b"not arrays"
    (folder / "model.safetensors").write_bytes(payload)
    edit(folder, sha256=hashlib.sha256(payload).hexdigest())


def cut_json(folder):
    path = folder / "model.json"
    path.write_text(path.read_text("utf-8")[:-20], "utf-8")


def empty_json(folder):
    (folder / "model.json").write_bytes(b"")


def list_json(folder):
    (folder / "model.json").write_text("[1, 2]")


def not_utf8(folder):
    (folder / "model.json").write_bytes(b'{"schema": 1, "kind": "\xff"}')


def swap(folder, before, after):
    """As a disk that fails may do it."""
    path = folder / "model.json"
    text = path.read_text("utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), "utf-8")


def unsigned(folder):
    path = folder / "model.json"
    meta = json.loads(path.read_text("utf-8"))
    del meta["json_sha256"]
    path.write_text(json.dumps(meta), "utf-8")


DAMAGE = {
    "cut": (cut, r"model\.safetensors.*SHA-256"),
    "one bit": (flip, r"model\.safetensors.*SHA-256"),
    "empty": (empty, r"model\.safetensors.*SHA-256"),
    "of another model": (other, r"model\.safetensors.*SHA-256"),
    "not arrays": (no_arrays, r"model\.safetensors: no arrays can be read from it"),
    "cut JSON": (cut_json, r"model\.json:\d+"),
    "empty JSON": (empty_json, r"model\.json:1"),
    "a list": (list_json, r"model\.json.*schema"),
    "not UTF-8": (not_utf8, r"model\.json"),
    "newer": (
        lambda f: edit(f, schema=io.SCHEMA + 1),
        rf"schema {io.SCHEMA + 1} is newer.*upgrade",
    ),
    "schema is text": (lambda f: edit(f, schema="1"), r"schema"),
    "schema is true": (lambda f: edit(f, schema=True), r"schema"),
    "schema below 1": (lambda f: edit(f, schema=-1), r"schema"),
    "no schema": (lambda f: edit(f, schema=None), r"schema"),
    "no kind": (lambda f: edit(f, kind=None), r"'kind'"),
    "no arrays": (lambda f: edit(f, arrays=None), r"'arrays'"),
    "arrays are a list": (lambda f: edit(f, arrays=[]), r"'arrays' that is a dict"),
    "no hash": (lambda f: edit(f, sha256=None), r"'sha256'"),
    "no parameters": (lambda f: edit(f, params=None), r"'params'"),
    "no hash of its own": (unsigned, r"'json_sha256'"),
    "a number": (
        lambda f: swap(f, '"n_components": 4', '"n_components": 5'), r"model\.json.*own SHA"
    ),
    "a key": (lambda f: swap(f, '"json_sha256"', '"json_sha257"'), r"'json_sha256'"),
    "an older schema": (
        lambda f: swap(f, f'"schema": {io.SCHEMA}', f'"schema": {io.SCHEMA - 1}'), r"own SHA"
    ),
    "other kind": (lambda f: edit(f, kind="mixture"), r"'mixture'.*'toy'"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_refused(model, case):
    damage, message = DAMAGE[case]
    damage(model)
    with pytest.raises(ModelFormatError, match=message) as caught:
        io.load_model(model, "toy")
    assert str(model) in str(caught.value), "the message says which file"
    assert isinstance(caught.value, DpsviError) and isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_missing(model, name):
    (model / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        io.load_model(model, "toy")


def test_unpickling_is_impossible(model):
    """A pickle that would leave a trace, in place of either file."""
    import pickle

    class Trace:
        def __reduce__(self):
            return os.mkdir, (str(model / "executed"),)

    for name in ("model.safetensors", "model.json"):
        (model / name).write_bytes(pickle.dumps(Trace()))
        with pytest.raises(ModelFormatError):
            io.load_model(model, "toy")
    assert not (model / "executed").exists()


# --- whole or not at all -----------------------------------------------------------------------


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.txt"
    io.write_text(path, "old")
    with pytest.raises(RuntimeError, match="half way"), io.atomic_path(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old", "until the block has ended"
        assert temporary.parent == path.parent, "a rename must not cross file systems"
        raise RuntimeError("half way")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.txt"], "no rubbish is left"


def test_a_failure_leaves_nothing_where_nothing_was(tmp_path):
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        io.write_json(tmp_path / "x.json", {"x": object()})
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="other systems have other permissions")
def test_nobody_may_read_more_at_any_time_and_no_thread_sees_another_umask(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was changed"))
        with io.atomic_path(tmp_path / "x.txt") as temporary:
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o640
            temporary.write_text("new")
        assert stat.S_IMODE((tmp_path / "x.txt").stat().st_mode) == 0o640
    finally:
        monkeypatch.undo()
        os.umask(before)


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        io.write_text(tmp_path / "absent" / "x.txt", "new")
    assert error.value.filename == str(tmp_path / "absent" / "x.txt")


def test_interrupted_before_the_rename(tmp_path, monkeypatch):
    """Ctrl-C at the worst moment: the temporary file is complete, the rename has not happened."""

    def interrupt(*_):
        raise KeyboardInterrupt

    path = tmp_path / "x.txt"
    io.write_text(path, "old")
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        io.write_text(path, "new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["x.txt"]


def test_the_data_are_on_disk_before_the_name(tmp_path, monkeypatch):
    """fsync of the file, then the rename, then fsync of the folder."""
    done, fsync, replace = [], os.fsync, os.replace

    def spy_fsync(descriptor):
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def spy_replace(*names):
        done.append("rename")
        replace(*names)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", spy_replace)
    io.write_text(tmp_path / "x.txt", "text")
    assert done == ["file", "rename", "folder"]


def test_a_crash_between_the_two_files_is_noticed(model, monkeypatch):
    """The arrays are new, the JSON is old: together they are no model."""
    replace = os.replace

    def crash(old, new):
        if new.name == "model.json":
            raise KeyboardInterrupt
        replace(old, new)

    monkeypatch.setattr(io.os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        io.save_model(model, kind="toy", arrays={"x": np.ones(2)}, meta=META)
    with pytest.raises(ModelFormatError, match="SHA-256"):
        io.load_model(model, "toy")


@pytest.mark.parametrize(
    ("method", "name"), [("write_bytes", "safetensors"), ("write_text", "json")]
)
def test_a_full_disk_leaves_the_old_model(model, monkeypatch, method, name):
    """Whichever file it has no room for; the error names that file."""
    before, _ = io.load_model(model, "toy")

    def full(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, method, full)
    with pytest.raises(OSError, match=f"No space left on device: '.*model.{name}'"):
        io.save_model(model, kind="toy", arrays={"x": np.ones(2)}, meta=META)
    after, _ = io.load_model(model, "toy")
    assert after.keys() == before.keys()
    assert sorted(os.listdir(model)) == ["model.json", "model.safetensors"]


def test_json_of_numpy(tmp_path):
    data = {"a": np.float32(0.5), "b": np.arange(3), "c": tmp_path, "d": np.bool_(True)}
    io.write_json(tmp_path / "x.json", data)
    assert json.loads((tmp_path / "x.json").read_text()) == {
        "a": 0.5, "b": [0, 1, 2], "c": str(tmp_path), "d": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "kept"), [(3, 3), (np.int64(3), 3), (None, None), (np.random.RandomState(0), None)]
)
def test_parameters_that_json_can_hold(seed, kept):
    from dpsvi import DPSVILDA

    params = io.plain_params(DPSVILDA(random_state=seed, callbacks=[print], tol=0.5))
    assert params["random_state"] == kept and params["tol"] == 0.5
    assert "callbacks" not in params
    assert json.loads(json.dumps(params)) == params


def test_parameters_may_be_whatever_is_an_array():
    from dpsvi import DPSVILDA, DPSVIGaussianMixture

    prior = pd.DataFrame(np.eye(2))
    assert io.plain_params(DPSVIGaussianMixture(covariance_prior=prior))["covariance_prior"] == [
        [1.0, 0.0], [0.0, 1.0],
    ]  # fmt: skip
    for prior in (pd.Series([0.5, 0.25]), (0.5, 0.25), np.array([0.5, 0.25])):
        params = io.plain_params(DPSVILDA(n_components=2, doc_topic_prior=prior))
        assert params["doc_topic_prior"] == [0.5, 0.25]
