"""What must happen for each kind of bad, odd or hostile input file: one table."""

import gzip
import io
import re
import tracemalloc
import warnings
import zipfile
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from tools.corpus_writers import SUFFIX, TEXT_FORMATS, example, write

from dpsvi.corpus import load_corpus
from dpsvi.errors import CorpusFormatError, CorpusWarning

MM = "%%MatrixMarket matrix coordinate real general\n"


class Case(NamedTuple):
    """One file and the answer it must get.

    An answer is either the end of an error message, which must start with the file and, where
    given, the line; or the dense matrix that is read, with or without a warning.
    """

    name: str
    fmt: str
    text: str
    error: str | None = None
    line: int | None = None
    matrix: tuple | None = None
    warning: str | None = None
    options: dict = {}


def one_entry(fmt, row=1, word=1, count=1):
    """A file of one entry, ids as a 1-based file would write them; and the entry's line."""
    if fmt == "ldac":
        return f"1 {int(word) - 1}:{count}\n", 1
    header = f"{MM}1 3 1\n" if fmt == "mm" else "1\n3\n1\n"
    return f"{header}{row} {word} {count}\n", header.count("\n") + 1


def count_cases():
    reasons = {
        "-1": "negative count",
        "-0.5": "negative count",
        "1.5": "count is not whole",
        "1e-3": "count is not whole",
        "nan": "NaN or infinite",
        "NaN": "NaN or infinite",
        "inf": "NaN or infinite",
        "-Infinity": "NaN or infinite",
        "2147483648": "above 2147483647",
        "99999999999999999999999999": "above 2147483647",
        "1e300": "above 2147483647",
        "abc": "expected",
        "1x": "expected",
        "1,5": "expected",
        "1e": "expected",
        "--1": "expected",
        "": "expected",
    }
    for fmt in TEXT_FORMATS:
        for count, reason in reasons.items():
            text, line = one_entry(fmt, count=count)
            yield Case(f"count {count!r}", fmt, text, reason, line)
        values = {
            "2147483647": 2.0**31,
            "2.0": 2,
            "2e1": 20,
            "2e0001": 20,
            "+3": 3,
            "0" * 30 + "7": 7,
            "7." + "0" * 30: 7,
            "700" + "0" * 30 + "e-32": 7,
            "." + "0" * 30 + "7e31": 7,
        }
        for count, value in values.items():
            text, _ = one_entry(fmt, count=count)
            yield Case(f"count {count!r}", fmt, text, matrix=value)
        text, _ = one_entry(fmt, count="2.25")
        yield Case("fraction", fmt, text, matrix=2.25, options={"allow_fractional": True})


def id_cases():
    for fmt in ("uci", "mm"):
        for row, word in ((0, 1), (2, 1), (1, 0), (1, 4), (1, 2**31), (1, 2**63), (1, 2**64 + 1)):
            text, line = one_entry(fmt, row, word)
            what = "document number outside 1..1" if row != 1 else "word id outside 1..3"
            yield Case(f"row {row} word {word}", fmt, text, what, line)
        for row, word in (("-1", "1"), ("1", "-1"), ("1.0", "1"), ("x", "1")):
            text, line = one_entry(fmt, row, word)
            yield Case(f"row {row} word {word}", fmt, text, "expected", line)
        text, line = one_entry(fmt, 1, 3)
        yield Case("last id, base 0", fmt, text, "outside 0..0", line, options={"index_base": 0})
        text, _ = one_entry(fmt, 0, 0)
        yield Case("first id, base 0", fmt, text, matrix=1, options={"index_base": 0})
    yield Case("word 0, base 1", "ldac", "1 0:1\n", "outside 1..", 1, options={"index_base": 1})
    yield Case("word W", "ldac", "1 0:1\n1 3:1\n", "outside 0..2", 2, options={"n_features": 3})
    yield Case("negative word", "ldac", "1 -1:1\n", "expected", 1)
    yield Case("word 2**31", "ldac", f"1 {2**31}:1\n", "word id outside", 1)
    yield Case("unlikely word", "ldac", "1 2000000:1\n", "2000001 words, allowed 1..1048576")


def length_cases():
    header = {"uci": "2\n3\n3\n", "mm": MM + "% a comment\n2 3 3\n"}
    for fmt, head in header.items():
        n = head.count("\n")
        body = "1 1 2\n1 3 1\n2 2 4\n"
        full = ((2, 0, 1), (0, 4, 0))
        yield Case("whole", fmt, head + body, matrix=full)
        yield Case("no newline at the end", fmt, (head + body)[:-1], matrix=full)
        yield Case("blank lines", fmt, head + body.replace("\n", "\n\n"), matrix=full)
        yield Case("CRLF", fmt, (head + body).replace("\n", "\r\n"), matrix=full)
        yield Case("tabs", fmt, head + body.replace(" ", "\t "), matrix=full)
        yield Case("one line more", fmt, head + body + "2 3 1\n", "more entries than the 3", n + 4)
        short = "ends after 2 of 3 entries"
        yield Case("one line less", fmt, head + "1 1 2\n1 3 1\n", short, n + 2)
        yield Case("last line cut", fmt, (head + body)[:-3], "expected", n + 3)
        yield Case("two numbers", fmt, head + "1 1\n1 3 1\n2 2 4\n", "expected", n + 1)
        yield Case("no gap", fmt, head + "1 1+1\n1 3 1\n2 2 4\n", "expected", n + 1)
        yield Case("no gap", fmt, head + "1 1.0\n1 3 1\n2 2 4\n", "expected", n + 1)
        yield Case("four numbers", fmt, head + "1 1 2 3\n1 3 1\n2 2 4\n", "expected", n + 1)
    yield Case("term missing", "ldac", "2 0:1 1:1\n2 0:1\n", "number of terms", 2)
    yield Case("term too many", "ldac", "1 0:1 1:1\n", "number of terms", 1)
    yield Case("no count", "ldac", "1 0:\n", "expected", 1)
    yield Case("no colon", "ldac", "1 0 1\n", "expected", 1)
    yield Case("blank line inside", "ldac", "1 0:1\n\n1 0:1\n", "blank", 3)
    yield Case("blank line last", "ldac", "1 0:1\n2 0:1 1:1\n\n", matrix=((1, 0), (1, 1)))
    yield Case("no newline at the end", "ldac", "1 0:1\n1 1:12", matrix=((1, 0), (0, 12)))


def order_cases():
    same = ((5, 0, 1), (0, 4, 0))
    for fmt, head in (("uci", "2\n3\n{}\n"), ("mm", MM + "2 3 {}\n")):
        lines = {
            "documents unsorted": ("2 2 4", "1 1 5", "1 3 1"),
            "words unsorted": ("1 3 1", "1 1 5", "2 2 4"),
            "repeated entry": ("1 1 2", "1 1 3", "1 3 1", "2 2 4"),
            "repeated far apart": ("1 1 2", "2 2 4", "1 3 1", "1 1 3"),
        }
        for name, entries in lines.items():
            text = head.format(len(entries)) + "".join(f"{entry}\n" for entry in entries)
            summed = len(entries) - 3
            warning = None if name == "words unsorted" else f"out of order.* {summed} summed"
            yield Case(name, fmt, text, matrix=same, warning=warning)
        zero = head.format(4) + "1 1 5\n1 2 0\n1 3 1\n2 2 4\n"
        yield Case("explicit zero", fmt, zero, matrix=same)
        most = head.format(2) + "1 1 2147483000\n1 1 2147483000\n"
        yield Case("sum too large", fmt, most, "sum to over 2")
    text = "2 2:1 0:5\n1 1:4\n"
    yield Case("words unsorted", "ldac", text, matrix=same)
    text = "3 0:2 2:1 0:3\n1 1:4\n"
    yield Case("repeated entry", "ldac", text, matrix=same, warning="out of order.* 1 summed")


def header_cases():
    big = 10**12
    for D, W, NNZ, line, what in (
        (big, 3, 1, 1, "header D = 1000000000000"),
        (2, big, 1, 2, "header W: 1000000000000 words"),
        (2, 3, big, 3, "header NNZ = 1000000000000"),
        (2, 3, 10**30, 3, "header NNZ = 1"),
        (2, 3, "9" * 5000, 3, "header NNZ = 9"),
        (0, 3, 1, 1, "header D = 0"),
        (2, 0, 1, 2, "header W: 0 words"),
        (2, 3, 0, 3, "header NNZ = 0"),
    ):
        yield Case(f"D {D} W {W} NNZ {NNZ}"[:40], "uci", f"{D}\n{W}\n{NNZ}\n1 1 1\n", what, line)
        yield Case(f"D {D} W {W} NNZ {NNZ}"[:40], "mm", f"{MM}{D} {W} {NNZ}\n1 1 1\n", what, 2)
    for text in ("", "\n", "2\n", "2\n3\n", "2 3 1\n", "-2\n3\n1\n", "a\nb\nc\n", "2\n3.0\n1\n"):
        yield Case(f"header {text!r}", "uci", text, "expected the header")
    for banner in (
        "",
        "1 2 3",
        MM.replace("real", "complex"),
        MM.replace("real", "pattern"),
        MM.replace("general", "symmetric"),
        MM.replace("coordinate", "array"),
    ):
        yield Case(f"banner {banner!r}", "mm", banner, "expected '%%MatrixMarket", 1)
    for text in ("", "\n", "0\n", "0\n0\n", "1 0:0\n"):
        yield Case(f"empty {text!r}", "ldac", text, "empty corpus")
    yield Case("only zeros", "uci", "1\n1\n1\n1 1 0\n", "empty corpus")


def vocabulary_cases():
    text, _ = one_entry("uci")
    for words, reason in (
        (["a", "b"], ":2: header W: 3 words, but the vocabulary"),
        (["a", "b", "c", "d"], ":2: header W: 3 words, but the vocabulary"),
    ):
        yield Case(f"{len(words)} words", "uci", text, reason, options={"vocabulary": words})
    yield Case("2 words", "ldac", "1 2:1\n", "outside 0..1", 1, options={"vocabulary": ["a", "b"]})


def empty_cases():
    matrix = ((0, 0), (3, 0), (0, 0))
    warning = "2 of 3 documents are empty"
    yield Case("empty documents", "uci", "3\n2\n1\n2 1 3\n", matrix=matrix, warning=warning)
    yield Case("empty documents", "mm", MM + "3 2 1\n2 1 3\n", matrix=matrix, warning=warning)
    options = {"n_features": 2}
    yield Case(
        "empty documents", "ldac", "0\n1 0:3\n0\n", matrix=matrix, warning=warning, options=options
    )
    dropped = {"drop_empty": True}
    yield Case("dropped", "uci", "3\n2\n1\n2 1 3\n", matrix=((3, 0),), options=dropped)


CASES = [
    *count_cases(), *id_cases(), *length_cases(), *order_cases(), *header_cases(),
    *vocabulary_cases(), *empty_cases(),
]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def compiled(tmp_path_factory):
    """Import and compile everything first, so that only the data count as memory."""
    for fmt in SUFFIX:
        path = write(tmp_path_factory.mktemp(fmt), example(), fmt)
        load_corpus(path, cache=False, drop_empty=True)


@pytest.fixture(autouse=True)
def cache_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSVI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("gz", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.fmt}: {case.name}")
def test_every_input_gets_its_answer(case, gz, tmp_path, cache_dir):
    path = tmp_path / f"corpus{SUFFIX[case.fmt]}"
    path.write_bytes(gzip.compress(case.text.encode()) if gz else case.text.encode())
    if case.error is not None:
        refused(path, case.error, case.line, **case.options)
        assert not cache_dir.exists(), "a refused file left something in the cache"
        return
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        corpus = load_corpus(path, **case.options)
    dense = corpus.to_csr().toarray()
    if np.ndim(case.matrix) == 0:
        np.testing.assert_array_equal(dense[dense != 0], [case.matrix])
    else:
        np.testing.assert_array_equal(dense, case.matrix)
    messages = [str(warning.message) for warning in seen if warning.category is CorpusWarning]
    if case.warning is not None:
        assert len(messages) == 1
        assert re.search(case.warning, messages[0])
        assert [warning.filename for warning in seen] == [__file__]
    elif np.ndim(case.matrix) == 2:
        assert messages == []


def refused(path, reason, line=None, **options):
    """Check that a file is refused for the right reason and with little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(CorpusFormatError) as caught:
            load_corpus(path, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: " if line else str(path))
    assert reason in message
    # Four blocks of text, and the entries that one of them can hold.
    assert peak < 32 << 20, f"refused, but only after allocating {peak} bytes"


def test_entries_beyond_the_size_of_a_plain_file(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("2\n3\n5\n" + "1 1 1\n" * 2)  # 18 bytes hold 3 entries at most
    refused(path, "header NNZ = 5, a file of this size allows 1..3", 3)


@pytest.mark.parametrize("fmt", TEXT_FORMATS)
@pytest.mark.parametrize("cut", [1, 4, 8, 9, 40], ids="{} bytes".format)
def test_cut_gzip(fmt, cut, tmp_path):
    path = tmp_path / f"corpus{SUFFIX[fmt]}.gz"
    path.write_bytes(gzip.compress(one_entry(fmt)[0].encode())[:-cut])
    with pytest.raises(CorpusFormatError, match="the file is cut|expected|empty"):
        load_corpus(path)


def test_damaged_gzip(tmp_path):
    data = bytearray(gzip.compress(one_entry("uci")[0].encode()))
    data[-6] ^= 1  # the checksum
    path = tmp_path / "corpus.txt.gz"
    path.write_bytes(data)
    refused(path, "damaged gzip data", 1)


def test_several_gzip_members_and_padding_are_one_file(tmp_path):
    text = one_entry("uci")[0].encode()
    path = tmp_path / "corpus.txt.gz"
    path.write_bytes(gzip.compress(text[:5]) + gzip.compress(text[5:]) + bytes(512))
    assert load_corpus(path).nnz == 1
    path.write_bytes(gzip.compress(text) + b"rest")
    refused(path, "damaged gzip data", 5)


def test_gzip_bomb_needs_max_bytes(tmp_path):
    # A file that is right in everything but its size: 300 times that of the archive.
    text = b"1\n1\n1\n1 1 1" + b" " * (8 << 20) + b"\n"
    path = tmp_path / "corpus.txt.gz"
    path.write_bytes(gzip.compress(text))
    assert len(text) > 300 * path.stat().st_size
    refused(path, "expand to more than", 1)
    refused(path, "expand to more than", max_bytes=len(text) - 1)
    assert load_corpus(path, max_bytes=len(text)).nnz == 1


def test_endless_line(tmp_path, monkeypatch):
    monkeypatch.setattr("dpsvi.corpus.stream.MAX_LINE", 1 << 20)
    path = tmp_path / "corpus.dat"
    path.write_bytes(b"1 " + b"0" * (9 << 20))
    refused(path, "a line of more than", 1)


NPZ_PARTS = {
    "format": np.array(b"csr"),
    "shape": np.array([2, 3]),
    "data": np.array([2.0, 1, 4]),
    "indices": np.array([0, 2, 1], np.int32),
    "indptr": np.array([0, 2, 3], np.int32),
}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"data": np.array([2, -1, 4])}, "row 0, column 2: count -1 is not"),
        ({"data": np.array([2, np.nan, 4])}, "row 0, column 2: count nan is not"),
        ({"data": np.array([2, 1, np.inf])}, "row 1, column 1: count inf is not"),
        ({"data": np.array([2, 1, 0.5])}, "row 1, column 1: count 0.5 is not"),
        ({"data": np.array([2, 1, 2**31])}, "row 1, column 1: count 2147483648 is not"),
        ({"data": np.array([2, 1, 1j])}, "dtype complex128"),
        ({"data": np.array([2, 1, None])}, "dtype object"),
        ({"data": np.zeros(3)}, "empty corpus"),
        ({"data": np.ones(2)}, ""),
        ({"indices": np.array([0, 3, 1])}, "column 3 is outside 0..2"),
        ({"indices": np.array([0, -1, 1])}, "column -1 is outside 0..2"),
        ({"indices": np.array([0, 2**31, 1])}, ""),
        ({"indices": np.array([0.0, 1, 1])}, "dtype float64"),
        ({"indptr": np.array([0, 3, 2])}, ""),
        ({"indptr": np.array([0, 4, 3])}, ""),
        ({"indptr": np.array([1, 2, 3])}, ""),
        ({"indptr": np.array([0, 3])}, ""),
        ({"indptr": np.array([0, 2, 9])}, ""),
        ({"shape": np.array([2, 10**12])}, "words, allowed"),
        ({"shape": np.array([2, 0])}, ""),
        ({"shape": np.array([-2, 3])}, ""),
        ({"shape": np.array([2, 3, 4])}, ""),
        ({"format": np.array(b"csc")}, "stored as b'csc', expected 'csr'"),
        ({"format": None}, "format"),
        ({"indptr": None}, "indptr"),
    ],
    ids=str,
)
def test_npz(changed, reason, tmp_path):
    parts = {name: part for name, part in (NPZ_PARTS | changed).items() if part is not None}
    path = tmp_path / "corpus.npz"
    np.savez(path, **parts)
    refused(path, reason)


def test_npz_of_something_else(tmp_path):
    path = tmp_path / "corpus.npz"
    np.savez(path, counts=np.ones((2, 3)))
    refused(path, "not what scipy.sparse.save_npz writes: it holds no array 'format'")


def test_an_array_is_no_corpus(tmp_path):
    path = tmp_path / "corpus.npy"
    np.save(path, np.ones((2, 3)))
    refused(path, "is an array; save counts by scipy.sparse.save_npz")


def test_npz_bomb(tmp_path):
    path = tmp_path / "corpus.npz"
    matrix = scipy.sparse.csr_array(np.ones((1, 1 << 20), np.float32))
    matrix.indices[:] = 0
    scipy.sparse.save_npz(path, matrix)
    refused(path, "are above the limit")


def test_npz_that_announces_more_than_it_holds(tmp_path):
    path = tmp_path / "corpus.npz"
    np.savez(path, **{name: part for name, part in NPZ_PARTS.items() if name != "data"})
    lie = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**8,)}
    np.lib.format.write_array_header_1_0(lie, header)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("data.npy", lie.getvalue() + bytes(24))
    refused(path, "data: the header says 800000128 bytes, the archive 152")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"a\nb\na\n", 3, "'a' repeats"),
        (b"a\n\nc\n", 2, "empty word"),
        (b"a\n \t\nc\n", 2, "empty word"),
        (b"a\nb\nc\n\n", 4, "empty word"),
        (b"", 1, "empty word"),
        (b"a\nb\n\xff\n", 3, "not utf-8"),
        (b"a\ncaf\xe9\nc\n", 2, "not utf-8"),
    ],
    ids=str,
)
def test_vocabulary_file(content, line, reason, tmp_path):
    corpus, words = tmp_path / "corpus.txt", tmp_path / "words.txt"
    corpus.write_text(one_entry("uci")[0])
    words.write_bytes(content)
    with pytest.raises(CorpusFormatError) as caught:
        load_corpus(corpus, words)
    assert str(caught.value).startswith(f"{words}:{line}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("a\ncafé\nc d\n".encode(), "utf-8"),
        ("a\r\ncafé\r\nc d".encode("utf-8-sig"), "utf-8"),
        ("a\ncafé\nc d\n".encode("latin-1"), "latin-1"),
        (gzip.compress("a\ncafé\nc d\n".encode()), "utf-8"),
    ],
    ids=["plain", "mark and CRLF", "latin-1", "gzip"],
)
def test_vocabulary_encodings(content, encoding, tmp_path):
    corpus, words = tmp_path / "corpus.txt", tmp_path / "words.txt"
    corpus.write_text(one_entry("uci")[0])
    words.write_bytes(content)
    assert load_corpus(corpus, words, encoding=encoding).vocabulary == ("a", "café", "c d")


def test_options_outside_their_range(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(one_entry("uci")[0])
    with pytest.raises(ValueError, match="index_base must be None, 0 or 1, got 2"):
        load_corpus(path, index_base=2)
    with pytest.raises(ValueError, match="format must be"):
        load_corpus(path, format="svmlight")
    with pytest.raises(CorpusFormatError, match="3 words, n_features is 4"):
        load_corpus(path, ["a", "b", "c"], n_features=4)
    with pytest.raises(FileNotFoundError):
        load_corpus(tmp_path / "none.txt")
