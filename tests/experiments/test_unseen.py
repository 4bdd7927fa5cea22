"""Eleven corpora of other kinds: that sources are read as the texts say."""

import gzip
import io
import tarfile

import numpy as np
import pytest

from dpsvi.corpus import load_corpus
from experiments import unseen

FILES = {
    "glosses": ("./usr/share/wordnet/data.noun", "  1 licence\n00001740 03 n | a ship; of | oak\n"),
    "sayings": ("./usr/share/games/fortunes/work", "One.\n%\nTwo\nlines.\n"),
    "terms": ("./usr/share/dictd/foldoc.dict.dz", "Bit\n\n   a digit\n\n   of two\n\nByte\n\n   8"),
    "manuals": ("./usr/share/man/de/man8/mount.8.gz", ".SH NAME\n\\fBmount\\fP \\- h\u00e4ngt"),
    "handbook": ("Django-5.2/docs/intro/index.txt", "Read this."),
    "functions": (
        "Django-5.2/a.py", "x = 1\n\ndef f():\n    def g(): pass\n\nclass C:\n    def h(self): 2\n",
    ),
}  # fmt: skip
TEXTS = {
    "glosses": ["a ship; of | oak"],
    "sayings": ["One.", "Two\nlines.\n"],
    "terms": ["Bit\n\n   a digit\n\n   of two", "Byte\n\n   8"],
    "handbook": ["Read this."],
    "functions": ["def f():\n    def g(): pass", "    def h(self): 2"],
}


def archive_of(name, text):
    """An archive with this file and one that no source reads."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for member, content in ((name, text), ("./usr/share/doc/copyright", "nobody")):
            content = content.encode()
            if member.endswith((".gz", ".dz")):
                content = gzip.compress(content)
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return tarfile.open(fileobj=io.BytesIO(whole.getvalue()))


@pytest.mark.parametrize("name", unseen.SOURCES)
def test_texts_of_a_source(name):
    read = unseen.SOURCES[name].read
    kind = read.__name__
    texts = list(read(archive_of(*FILES[kind])))
    if kind == "manuals":
        assert texts[0].split() == ["NAME", "mount", "h\u00e4ngt"]
    else:
        assert texts == TEXTS[kind]


@pytest.mark.parametrize(
    ("pattern", "words"), [(unseen.LETTERS, ["i", "o"]), (unseen.SIGNS, ["!", "("])]
)
def test_letters_and_signs_are_counted(pattern, words):
    counts, found = unseen.count(["(Io_ 2!!"] * 5, None, pattern)
    assert sorted(found) == words
    assert sorted(counts[0].data) == ([1, 1] if pattern == unseen.LETTERS else [1, 2])


def test_a_corpus_is_written_as_it_was_counted(tmp_path):
    texts = ["The two_ships, of OAK; oak9oak"] * 5 + ["rare"] * 4
    unseen._write(tmp_path, "few", *unseen.count(texts, "english"))
    path = tmp_path / "docword.few.txt.gz"
    corpus = load_corpus(path, "auto", cache=False, drop_empty=True)
    assert list(corpus.vocabulary) == ["oak", "ships"]
    assert np.array_equal(corpus.offsets, [0, 2, 4, 6, 8, 10])
    assert list(corpus.value[:2]) == [3, 1]
    first = path.read_bytes()
    unseen._write(tmp_path, "few", *unseen.count(texts, "english"))
    assert path.read_bytes() == first
