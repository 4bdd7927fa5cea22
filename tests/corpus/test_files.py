"""Real corpora, and files written by other programs."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
from numpy.testing import assert_array_equal
from tools.corpus_writers import example

from dpsvi.corpus import as_corpus, load_corpus
from dpsvi.corpus.readers import detect_format

# name: documents, words, entries, tokens, as stated by whoever put the corpora together
SIZES = {
    "ap": (2_246, 10_473, 302_031, 435_838),
    "nyt": (8_254, 10_000, 1_002_334, 1_447_992),
    "wiki": (198_166, 100_000, 30_877_769, 56_451_651),
}


@pytest.fixture(autouse=True)
def cache_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSVI_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", ["ap", "nyt"])
def test_real_corpus_against_a_plain_reader(name, corpora_folder):
    path = corpora_folder / f"docword.{name}.txt.gz"
    corpus = load_corpus(path, "auto")
    rows, columns, values = np.loadtxt(path, skiprows=3, dtype=np.int64).T
    assert (*corpus.to_csr().shape, corpus.nnz, corpus.n_tokens) == SIZES[name]
    assert_array_equal(
        corpus.offsets[1:], np.searchsorted(rows, np.arange(1, rows[-1] + 1), "right")
    )
    assert_array_equal(corpus.index, columns - 1)
    assert_array_equal(corpus.value, values)
    words = path.with_name(f"vocab.{name}.txt").read_text().split()
    assert corpus.vocabulary == tuple(words)


@pytest.mark.slow
def test_wiki_in_little_memory(corpora_folder):
    """The first reading needs at most twice the memory of the result, and one block of text."""
    script = (
        "import resource, sys\n"
        "from dpsvi.corpus import load_corpus\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "load_corpus(sys.argv[1], cache=False)\n"
        "before = peak()\n"
        "corpus = load_corpus(sys.argv[2], cache=False)\n"
        "after = peak()\n"
        "size = corpus.index.nbytes + corpus.value.nbytes\n"
        "print(*corpus.to_csr().shape, corpus.nnz, int(corpus.n_tokens), size, after - before)"
    )
    paths = (corpora_folder / f"docword.{name}.txt.gz" for name in ("ap", "wiki"))
    command = [sys.executable, "-c", script, *paths]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    *sizes, nbytes, kilobytes = map(int, out.split())
    assert tuple(sizes) == SIZES["wiki"]
    unit = 1 if sys.platform == "darwin" else 1024
    assert kilobytes * unit < 2 * nbytes + (16 << 20)


@pytest.mark.slow
def test_wiki_twice(corpora_folder):
    path = corpora_folder / "docword.wiki.txt.gz"
    first, second = load_corpus(path), load_corpus(path)
    assert (*second.to_csr().shape, second.nnz, second.n_tokens) == SIZES["wiki"]
    assert_array_equal(first.offsets, second.offsets)
    assert_array_equal(first.index, second.index)


BAGS = [[(0, 2), (2, 1)], [], [(1, 4), (2, 300)]]


@pytest.mark.parametrize(
    ("kind", "suffix"), [("MmCorpus", ".mm"), ("BleiCorpus", ".blei"), ("UciCorpus", ".uci")]
)
@pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")
def test_files_of_gensim(kind, suffix, tmp_path):
    kind = getattr(pytest.importorskip("gensim.corpora"), kind)
    path = str(tmp_path / f"corpus{suffix}")
    kind.serialize(path, BAGS, id2word=dict(enumerate("abc")))
    expected = example().toarray()[:, :3]
    assert_array_equal(load_corpus(path).to_csr().toarray(), expected)
    assert_array_equal(as_corpus(kind(path), n_features=3).to_csr().toarray(), expected)


@pytest.mark.parametrize("field", ["integer", "real"])
@pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")
def test_files_of_scipy(field, tmp_path):
    path = tmp_path / "corpus.mtx"
    scipy.io.mmwrite(
        path, example().astype(int if field == "integer" else float), comment="one\ntwo"
    )
    assert field in path.read_text().splitlines()[0]
    assert_array_equal(load_corpus(path).to_csr().toarray(), example().toarray())


@pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")
def test_columns_first_as_r_writes_them(tmp_path):
    path = tmp_path / "corpus.mtx"
    scipy.io.mmwrite(path, example().tocsc())
    assert_array_equal(load_corpus(path).to_csr().toarray(), example().toarray())


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("docword.x.txt", "1\n1\n1\n1 1 1\n", "uci"),
        ("x.mtx", "", "mm"),
        ("x.MTX", "", "mm"),
        ("x.mm", "", "mm"),
        ("ap.dat", "0\n", "ldac"),
        ("x.ldac", "", "ldac"),
        ("x.blei", "", "ldac"),
        ("x.npz", "", "npz"),
        ("x.txt", "%%MatrixMarket matrix", "mm"),
        ("x.txt", "2 0:1 1:1\n", "ldac"),
        ("x", "2 0:1 1:1\n", "ldac"),
    ],
)
def test_detected_format(name, text, kind, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    assert detect_format(path) == kind
    if kind != "npz":
        assert detect_format(path.rename(tmp_path / f"{name}.gz")) == kind


def test_auto_vocabulary(tmp_path):
    path = tmp_path / "docword.x.txt"
    path.write_text("1\n2\n1\n1 1 1\n")
    assert load_corpus(path, "auto").vocabulary is None
    (tmp_path / "vocab.x.txt").write_text("a\nb\n")
    assert load_corpus(path, "auto").vocabulary == ("a", "b")
    assert load_corpus(path).vocabulary is None
    other = tmp_path / "corpus.txt"
    path.rename(other)
    assert load_corpus(other, "auto").vocabulary is None


def test_starting_up_stays_light(tmp_path):
    """Opening a corpus from the cache loads neither the compiler nor SciPy."""
    path = tmp_path / "docword.x.txt"
    path.write_text("1\n2\n1\n1 1 1\n")
    load_corpus(path)
    code = (
        "import sys, dpsvi.datasets\n"
        "dpsvi.datasets.load_corpus(sys.argv[1])\n"
        "heavy = {'numba', 'scipy', 'sklearn', 'pandas', 'gensim', 'pooch'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, path]
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
    assert out.strip() == "[]"
