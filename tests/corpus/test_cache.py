"""The cache: hit, missed, stale, damaged, contested, or impossible to write."""

import gzip
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tools.corpus_writers import SUFFIX, example, write, write_text

from dpsvi.corpus import load, load_corpus
from dpsvi.corpus.cache import cache_folder

pytestmark = pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSVI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def readings(monkeypatch):
    """The paths that were parsed, in order."""
    paths = []
    for name, read in load.READERS.items():

        def counted(path, options, read=read):
            paths.append(path)
            return read(path, options)

        monkeypatch.setitem(load.READERS, name, counted)
    return paths


def mapped(array):
    """Whether an array lies in a memory-mapped file."""
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def same(corpus):
    assert_array_equal(corpus.to_csr().toarray(), example().toarray())


@pytest.mark.parametrize("fmt", SUFFIX)
def test_the_second_time_comes_from_the_cache(fmt, tmp_path, folder, readings):
    path = write(tmp_path, example(), fmt)
    for _ in range(3):
        corpus = load_corpus(path, n_features=4)
        same(corpus)
        assert mapped(corpus.index)
        assert mapped(corpus.value)
    assert readings == [path]
    assert len(list(folder.iterdir())) == 1


def test_words_and_dropped_rows_are_no_part_of_an_entry(tmp_path, folder, readings):
    path = write(tmp_path, example(), "uci")
    assert load_corpus(path).vocabulary is None
    assert load_corpus(path, list("abcd")).vocabulary == tuple("abcd")
    assert load_corpus(path, list("efgh")).vocabulary == tuple("efgh")
    assert load_corpus(path, drop_empty=True).n_items == 2
    assert load_corpus(path).n_items == 3
    assert len(readings) == 1


def test_the_way_of_reading_is_part_of_an_entry(tmp_path, folder, readings):
    path = write(tmp_path, example(), "ldac")
    assert load_corpus(path).n_features == 3
    assert load_corpus(path, n_features=4).n_features == 4
    assert load_corpus(path).n_features == 3
    assert load_corpus(path, allow_fractional=True).n_features == 3
    assert len(readings) == 3


def test_a_vocabulary_that_does_not_fit_is_refused_from_the_cache_too(tmp_path, folder):
    path = write(tmp_path, example(), "uci")
    load_corpus(path)
    with pytest.raises(ValueError, match=":2: header W: 4 words, but the vocabulary"):
        load_corpus(path, ["a", "b"])


def test_a_changed_source_is_noticed(tmp_path, folder):
    path = write(tmp_path, example(), "uci")
    load_corpus(path)
    times = path.stat()
    path.write_bytes(path.read_bytes().replace(b"300", b"301"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # same size, same time
    assert load_corpus(path).value.max() == 301


def test_a_copy_of_the_source_needs_no_entry_of_its_own(tmp_path, folder, readings):
    path = write(tmp_path, example(), "uci")
    load_corpus(path)
    load_corpus(path.rename(tmp_path / "other.txt"))
    assert len(readings) == 1


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def bury(path):
    """Replace an array by a pickle, with the hash to go with it."""
    import hashlib

    np.save(path, np.array([None], object), allow_pickle=True)
    meta = json.loads((path.parent / "meta.json").read_text())
    meta["sha256"][path.stem] = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / "meta.json").write_text(json.dumps(meta))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *((name, damage) for name in ("offsets.npy", "index.npy", "value.npy", "meta.json")
          for damage in (cut, flip, Path.unlink, lambda path: path.write_bytes(b""))),
        ("index.npy", bury),
        ("meta.json", lambda path: path.write_text("[]")),
        ("meta.json", lambda path: path.write_text("{}")),
        ("meta.json", lambda path: path.write_text(path.read_text().replace(": 4", ": 2"))),
        ("meta.json", lambda path: path.write_text(path.read_text().replace(": 4", ': "x"'))),
    ],
)  # fmt: skip
def test_a_damaged_entry_is_made_again(name, damage, tmp_path, folder, readings, caplog):
    path = write(tmp_path, example(), "uci")
    load_corpus(path)
    (entry,) = folder.iterdir()
    damage(entry / name)
    with caplog.at_level(logging.WARNING):
        same(load_corpus(path))
    assert "corpus cache entry" in caplog.text
    assert len(readings) == 2
    caplog.clear()
    same(load_corpus(path))
    assert caplog.text == ""
    assert len(readings) == 2
    assert list(folder.iterdir()) == [entry]


def test_a_corpus_outlives_its_cache(tmp_path, folder):
    path = write(tmp_path, example(), "uci")
    corpus = load_corpus(path)
    (entry,) = folder.iterdir()
    flip(entry / "value.npy")
    cut(entry / "index.npy")
    load_corpus(path)  # replaces the damaged entry
    assert corpus.n_items == 3


def test_what_a_killed_process_left_is_ignored(tmp_path, folder, readings):
    path = write(tmp_path, example(), "uci")
    load_corpus(path)
    (entry,) = folder.iterdir()
    left = folder / f".{entry.name}-killed" / "new"
    left.mkdir(parents=True)
    entry.rename(left / "half")
    same(load_corpus(path))
    assert len(readings) == 2


def test_without_a_place_to_write(tmp_path, caplog):
    path = write(tmp_path, example(), "uci")
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    with caplog.at_level(logging.WARNING):
        same(load_corpus(path, cache=blocked))
    assert "could not be written" in caplog.text


def test_where_the_cache_is(tmp_path, folder, monkeypatch):
    path = write(tmp_path, example(), "uci")
    same(load_corpus(path, cache=False))
    assert not folder.exists()
    load_corpus(path, cache=tmp_path / "own")
    assert (tmp_path / "own").is_dir()
    assert not folder.exists()
    assert cache_folder(True) == folder
    monkeypatch.delenv("DPSVI_CACHE_DIR")
    assert cache_folder(True).name == "dpsvi"
    assert cache_folder(True).is_absolute()
    assert cache_folder(False) is None


def test_a_source_written_to_while_it_is_read(tmp_path, folder, monkeypatch):
    """What was read then is not filed under the content that came before."""
    path = write(tmp_path, example(), "uci")
    first = path.read_bytes()
    read = load.READERS["uci"]

    def late(path, options):
        path.write_bytes(first.replace(b"300", b"301"))
        return read(path, options)

    monkeypatch.setitem(load.READERS, "uci", late)
    assert load_corpus(path).value.max() == 301
    path.write_bytes(first)
    monkeypatch.setitem(load.READERS, "uci", read)
    same(load_corpus(path))


def test_processes_at_the_same_time(tmp_path, folder):
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.2, (2000, 200)) + np.eye(2000, 200)
    dense[:, 0] += 1
    from scipy.sparse import csr_array

    path = tmp_path / "docword.txt.gz"
    path.write_bytes(gzip.compress(write_text(csr_array(dense), "uci"), 1))
    script = (
        "import sys; from dpsvi.corpus import load_corpus\n"
        "sys.stdin.read(1); print(load_corpus(sys.argv[1]).n_tokens)"
    )
    command = [sys.executable, "-W", "error", "-c", script, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(4)]
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert float(out) == dense.sum()
        assert "damaged" not in err
    (entry,) = folder.iterdir()
    assert sorted(file.name for file in entry.iterdir()) == [
        "index.npy",
        "meta.json",
        "offsets.npy",
        "value.npy",
    ]
