"""Texts in files: lines, or a column of a table."""

import gzip
import os

import pytest

from dpsvi.corpus import load_corpus
from dpsvi.corpus.text_files import read_texts
from dpsvi.errors import CorpusFormatError

LONG = "word " * 50_000  # longer than Python's csv takes by itself


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.txt", "one\n\ntwo, three", ["one", "", "two, three"]),
        ("a.txt", 'text\n"one"\n', ["text", '"one"']),
        ("a.txt", "\n", [""]),
        ("a.csv", "text\none\ntwo\n", ["one", "two"]),
        ("A.CSV", "text\r\none\r\ntwo", ["one", "two"]),
        ("a.csv", 'id,text\n1,"a, b"\n2,\n\n3,"c\nd ""e"""\n', ["a, b", "", 'c\nd "e"']),
        ("a.csv", f"text\n{LONG}\n", [LONG]),
        ("a.csv", "\ufefftext,x\ncafé,1\n", ["café"]),
        ("a.tsv", 'id\ttext\n1\ta, b\n2\t"c\td"\n', ["a, b", "c\td"]),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_what_is_read(name, content, texts, zipped, tmp_path):
    path = tmp_path / (name + ".gz" * zipped)
    path.write_bytes((gzip.compress if zipped else bytes)(content.encode()))
    assert read_texts(path) == texts


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", "", "a.txt:1: there is no text"),
        ("a.csv", "", r"a.csv:1: text_column must be one of \[\], .* is empty, got 'text'"),
        ("a.csv", "text\n", "a.csv:1: there is no text"),
        ("a.csv", "id,body\n1,one\n", r"a.csv:1: .* one of \['id', 'body'\], .* got 'text'"),
        ("a.csv", "text,text\n1,one\n", "a.csv:1: text_column must name one"),
        ("a.csv", "id,text\n1,one\n2\n", "a.csv:3: 1 fields, line 1 has 2 names"),
        ("a.csv", "id,text\n1,one, two\n", "a.csv:2: 3 fields, line 1 has 2 names"),
        ("a.csv", 'text\n"one\n', "a.csv:2: unexpected end of data"),
        ("a.csv", "text\ncaf\xe9\n", "a.csv:2: not utf-8"),
    ],
)
def test_what_is_refused(name, content, reason, tmp_path):
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(CorpusFormatError, match=reason):
        read_texts(path)


def test_any_column_can_hold_the_texts(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("stars,review,text\n5,good,x\n1,bad,y\n")
    assert read_texts(path, text_column="review") == ["good", "bad"]
    with pytest.raises(CorpusFormatError, match="'stars', 'review', 'text'.*got 'body'"):
        read_texts(path, text_column="body")
    lines = tmp_path / "lines.txt"
    lines.write_text("good\nbad\n")
    with pytest.raises(CorpusFormatError, match="text_column is for tables, .csv and .tsv"):
        read_texts(lines, text_column="review")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without named pipes")
def test_a_pipe_is_refused_before_anything_is_lost(tmp_path):
    """It can be read only once, and to look what it holds takes its first bytes."""
    os.mkfifo(tmp_path / "pipe")
    for read in (read_texts, load_corpus):
        with pytest.raises(CorpusFormatError, match="pipe: is no file but a pipe or a device"):
            read(tmp_path / "pipe")
