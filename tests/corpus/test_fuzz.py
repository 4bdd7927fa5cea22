"""Random corpora survive every format; damaged files are refused, never read short.

The judge is a second reader, `slow_read`, made of regular expressions.
"""

import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tools.corpus_writers import SUFFIX, TEXT_FORMATS, write, write_text

from dpsvi.corpus import as_corpus, load_corpus, stream
from dpsvi.errors import CorpusFormatError

pytestmark = pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

NUMBER = re.compile(r"\+?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-(?:0+\.?0*|\.0+)(?:[eE][+-]?\d+)?")


@st.composite
def matrices(draw, whole=True):
    """CSR matrices with at least one entry; any row or column may be empty."""
    n_rows, n_columns = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    floats = st.floats(2**-20, 2**20, width=32)
    value = st.integers(1, 10**7) if whole else st.one_of(st.integers(1, 9), floats)
    cell = st.tuples(st.integers(0, n_rows - 1), st.integers(0, n_columns - 1))
    cells = draw(st.dictionaries(cell, value, min_size=1))
    matrix = np.zeros((n_rows, n_columns), np.float32)
    for place, count in cells.items():
        matrix[place] = count
    return csr_array(matrix)


def load(path, fmt, **options):
    return load_corpus(path, format=fmt, cache=False, **options)


def same(corpus, matrix):
    assert (corpus.n_items, corpus.n_features) == matrix.shape
    np.testing.assert_array_equal(corpus.to_csr().toarray(), matrix.toarray())


@pytest.mark.parametrize("fmt", SUFFIX)
@pytest.mark.parametrize("gz", [False, True], ids=["plain", "gzip"])
@quick
@given(data=st.data())
def test_round_trip(fmt, gz, data):
    whole = data.draw(st.booleans())
    matrix = data.draw(matrices(whole))
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), matrix, fmt, gz and fmt != "npz")
        options = {"allow_fractional": not whole, "n_features": matrix.shape[1]}
        same(load(path, fmt, **options), matrix)


@pytest.mark.parametrize("fmt", TEXT_FORMATS)
@quick
@given(matrix=matrices(), block=st.integers(1, 40), gz=st.booleans())
def test_blocks_may_end_anywhere(fmt, matrix, block, gz):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK", block)
        path = write(Path(folder), matrix, fmt, gz)
        same(load(path, fmt, n_features=matrix.shape[1]), matrix)


@st.composite
def damaged(draw, text: bytes):
    """Text after one to three edits: a byte changed, removed or put in, a run cut or doubled."""
    letters = st.sampled_from([*b"0123456789 \n:.-+eEnaif%\t\r\0\xff"])
    text = bytearray(text)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(text) - 1, 0)))
        kind = draw(st.sampled_from(["change", "insert", "delete", "cut", "double"]))
        if kind == "change":
            text[place : place + 1] = bytes([draw(letters)])
        elif kind == "insert":
            text[place:place] = bytes([draw(letters)])
        elif kind == "cut":
            del text[place:]
        else:
            run = slice(place, place + draw(st.integers(1, 8)))
            text[run] = b"" if kind == "delete" else text[run] * 2
    return bytes(text)


def slow_read(text, fmt, n_features):
    """Return the dense matrix that a text states, or None where a reader must refuse it."""
    lines = [line.strip(" \t\r") for line in text.decode("latin-1").split("\n")]
    triples = []
    if fmt == "ldac":
        while lines and not lines[-1]:
            lines.pop()
        shape = (len(lines), n_features)
        for row, line in enumerate(lines):
            declared, *terms = re.split(r"[ \t\r]+", line)
            if not re.fullmatch(r"[0-9]+", declared) or int(declared) != len(terms):
                return None
            pairs = [re.fullmatch("([0-9]+):(.*)", term) for term in terms]
            if None in pairs:
                return None
            triples += [(row, *pair.groups()) for pair in pairs]
        base = 0
    else:
        if fmt == "mm":
            if lines[0].lower().split() != "%%matrixmarket matrix coordinate real general".split():
                return None
            lines = lines[1:]
            while lines and text and lines[0].startswith("%"):
                lines = lines[1:]
            header, lines = (lines[0] if lines else "").split(), lines[1:]
        else:
            header, lines = lines[:3], lines[3:]
        if len(header) != 3 or not all(re.fullmatch("[0-9]+", size) for size in header):
            return None
        *shape, nnz = map(int, header)
        triples = [re.split(r"[ \t\r]+", line) for line in lines if line]
        if len(triples) != nnz or {len(triple) for triple in triples} - {3}:
            return None
        triples = [(int(row) - 1 if row.isascii() and row.isdigit() else -1,
                    word, count) for row, word, count in triples]  # fmt: skip
        base = 1
    if not 0 < shape[0] < 2**20 or shape[1] != n_features:
        return None
    matrix = np.zeros(shape)
    for row, word, count in triples:
        if not re.fullmatch("[0-9]+", word) or not NUMBER.fullmatch(count):
            return None
        column, count = int(word) - base, float(count)
        if not (0 <= row < shape[0] and 0 <= column < shape[1]):
            return None
        if not (count.is_integer() and count < 2**31):
            return None
        matrix[row, column] += count
    return matrix if matrix.any() and matrix.max() < 2**31 else None


@pytest.mark.parametrize("fmt", TEXT_FORMATS)
@settings(quick, max_examples=250)
@given(matrix=matrices(), data=st.data())
def test_damaged_text_is_refused_or_read_in_full(fmt, matrix, data):
    text = data.draw(damaged(write_text(matrix, fmt)))
    expected = slow_read(text, fmt, matrix.shape[1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus"
        path.write_bytes(text)
        try:
            corpus = load(path, fmt, n_features=matrix.shape[1])
        except CorpusFormatError as error:
            assert str(error).startswith(str(path))
            assert expected is None, f"{text!r} is a corpus, but: {error}"
        else:
            assert expected is not None, f"{text!r} is no corpus, but was read as one"
            same(corpus, csr_array(expected.astype(np.float32)))


@pytest.mark.parametrize("fmt", SUFFIX)
@settings(quick, max_examples=120)
@given(matrix=matrices(), data=st.data())
def test_damaged_archives_are_refused_or_whole(fmt, matrix, data):
    """gzip and zip carry checksums: nothing but the right answer may come out."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), matrix, fmt, gz=fmt != "npz")
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[place] ^= data.draw(st.integers(1, 255))
        else:
            del content[place:]
        path.write_bytes(content)
        try:
            corpus = load(path, fmt, n_features=matrix.shape[1])
        except (CorpusFormatError, OSError):
            return
        same(corpus, matrix)


@quick
@given(matrix=matrices(), data=st.data())
def test_order_and_repeats_do_not_matter(matrix, data):
    """Entries shuffled and split in two are the same corpus, from file and from memory."""
    coo = matrix.tocoo()
    triples = [(r, c, v) for r, c, v in zip(coo.row, coo.col, coo.data, strict=True)]
    halves = [(r, c, h) for r, c, v in triples for h in (v // 2, v - v // 2) if h]
    halves = data.draw(st.permutations(halves))
    header = f"{matrix.shape[0]}\n{matrix.shape[1]}\n{len(halves)}\n"
    text = header + "".join(f"{r + 1} {c + 1} {int(v)}\n" for r, c, v in halves)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "docword.txt"
        path.write_text(text)
        same(load(path, "uci"), matrix)
    documents = [[(c, v) for r, c, v in halves if r == row] for row in range(matrix.shape[0])]
    same(as_corpus(documents, n_features=matrix.shape[1]), matrix)


@quick
@given(whole=st.integers(0, 10**9), digits=st.text("0123456789", max_size=25),
       power=st.integers(-30, 8))  # fmt: skip
def test_decimals_are_read_as_python_reads_them(whole, digits, power):
    text = f"{whole}.{digits}e{power}"
    expected = np.float32(float(text))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        path = Path(folder) / "corpus.dat"
        path.write_text(f"2 0:1 1:{text}\n")
        if float(text) > 2**31 - 1:
            with pytest.raises(CorpusFormatError, match="above"):
                load(path, "ldac", allow_fractional=True, n_features=2)
            return
        corpus = load(path, "ldac", allow_fractional=True, n_features=2)
    found = corpus.to_csr().toarray()[0, 1]
    assert abs(found - expected) <= np.spacing(expected)
