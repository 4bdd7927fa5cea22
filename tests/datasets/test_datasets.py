"""Named corpora: what is fetched is checked, what is missing is explained."""

import gzip
import logging
import sys

import pooch
import pytest

from dpsvi import datasets
from dpsvi.datasets import lee, nytimes
from dpsvi.datasets.__main__ import main
from dpsvi.errors import CorpusFormatError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSVI_CACHE_DIR", str(tmp_path))
    (tmp_path / "downloads").mkdir()
    return tmp_path / "downloads"


def put(folder, docword, words):
    (folder / "docword.nytimes.txt.gz").write_bytes(gzip.compress(docword.encode()))
    (folder / "vocab.nytimes.txt").write_text("".join(f"{word}\n" for word in words))


def test_lee():
    pytest.importorskip("gensim")
    corpus = datasets.load_lee()
    assert corpus.n_items == 300
    assert {"palestinian", "afghanistan", "cricket"} <= set(corpus.vocabulary)
    assert not {"the", "said", "mr", "000"} & set(corpus.vocabulary)
    documents = (corpus.to_csr() > 0).sum(axis=0)
    assert documents.min() == 2
    assert documents.max() <= 75
    rarer = datasets.load_lee(n_min=1)
    assert set(corpus.vocabulary) < set(rarer.vocabulary)


def test_lee_without_gensim(monkeypatch):
    monkeypatch.setattr(lee, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install gensim, or take load_docstrings"):
        datasets.load_lee()


def test_docstrings_come_with_every_installation(monkeypatch):
    """They are prose, the same ones each time, and need no package for it."""
    monkeypatch.setitem(sys.modules, "gensim", None)
    texts = datasets.load_docstrings_texts()
    assert texts == datasets.load_docstrings_texts() and len(texts) > 300
    assert not any(">>>" in text for text in texts)
    assert min(len(text.split()) for text in texts) >= 20
    corpus = datasets.BY_NAME["docstrings"]()
    assert corpus.n_items == len(texts)
    assert {"topics", "posterior", "thread", "workers"} <= set(corpus.vocabulary)
    assert (corpus.to_csr() > 0).sum(axis=0).max() <= len(texts) / 4


def test_nytimes_leaves_out_empty_documents(folder, monkeypatch, caplog, recwarn):
    monkeypatch.setattr(nytimes, "NYTIMES_HEADER", (4, 2, 3))
    put(folder, "4\n2\n3\n1 1 5\n1 2 1\n4 1 2\n", ["a", "b"])
    with caplog.at_level(logging.INFO):
        corpus = datasets.fetch_nytimes()
    assert (corpus.n_items, corpus.vocabulary) == (2, ("a", "b"))
    assert "2 empty documents left out" in caplog.text
    assert not recwarn.list


@pytest.mark.parametrize(
    ("docword", "line", "name"),
    [
        ("299752\n102660\n69679427\n1 1 1\n", 1, "D"),
        ("300000\n102661\n69679427\n1 1 1\n", 2, "W"),
        ("300000\n102660\n69679426\n1 1 1\n", 3, "NNZ"),
        ("<html>\n", 1, "D"),
    ],
)
def test_nytimes_must_be_the_whole_collection(folder, docword, line, name):
    put(folder, docword, ["a"])
    with pytest.raises(
        CorpusFormatError, match=f":{line}: header {name} of the UCI NYTimes corpus"
    ):
        datasets.fetch_nytimes()


def test_nytimes_cut_after_its_header(folder):
    put(folder, "300000\n102660\n69679427\n1 1 1\n", [f"w{k}" for k in range(102_660)])
    with pytest.raises(CorpusFormatError, match=":3: header NNZ = 69679427, a file of this size"):
        datasets.fetch_nytimes()


def test_nytimes_without_network(monkeypatch, tmp_path):
    def fail(url, **options):
        raise OSError("no route to host")

    monkeypatch.setattr(pooch, "retrieve", fail)
    with pytest.raises(OSError, match="no route to host.*download docword.nytimes") as caught:
        datasets.fetch_nytimes(tmp_path / "mine")
    assert str(tmp_path / "mine") in str(caught.value)


def test_command(tmp_path, capsys):
    path = tmp_path / "docword.x.txt"
    path.write_text("2\n3\n3\n1 1 2\n1 3 1\n2 2 4\n")
    main([str(path)])
    assert capsys.readouterr().out == "2 documents, 3 words, 3 entries, 7 tokens\n"


def test_command_with_the_name_of_a_corpus(capsys):
    pytest.importorskip("gensim")
    main(["lee"])
    assert capsys.readouterr().out.startswith("300 documents")


def test_command_names_what_it_cannot_read(tmp_path, capsys):
    broken = tmp_path / "docword.y.txt"
    broken.write_text("2\n3\n3\n1 1 2\n")
    for path, reason in (
        ("wiki", "is neither docstrings nor lee nor nytimes nor a file"),
        (broken, "header NNZ = 3"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([str(path)])
        assert ended.value.code == 3
        assert f"{path}" in (said := capsys.readouterr().err) and reason in said
