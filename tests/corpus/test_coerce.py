"""`as_corpus`: every kind of container gives the same corpus, and says what it refuses."""

import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer
from tools.corpus_writers import example, write

from dpsvi.corpus import Corpus, as_corpus
from dpsvi.errors import CorpusFormatError, CorpusWarning

DENSE = example().toarray()
WORDS = ("a", "b", "c", "d")
BAGS = [[(0, 2), (2, 1)], [], [(1, 4), (2, 300)]]


def wide(matrix):
    """The same matrix with 64-bit indices."""
    for name in ("indices", "indptr", "row", "col"):
        if hasattr(matrix, name):
            setattr(matrix, name, getattr(matrix, name).astype(np.int64))
    return matrix


def columns(bags):
    return ({"ids": [i for i, _ in bag], "counts": [c for _, c in bag]} for bag in bags)


FRAME = {word: DENSE[:, k] for k, word in enumerate(WORDS)}
SPARSE_FRAME = {word: pd.arrays.SparseArray(FRAME[word], fill_value=0) for word in WORDS}
SAME = {
    "csr_array": lambda: sp.csr_array(DENSE),
    "csr_matrix": lambda: sp.csr_matrix(DENSE),
    "csr int64 values": lambda: sp.csr_array(DENSE.astype(np.int64)),
    "csr float64": lambda: sp.csr_array(DENSE.astype(np.float64)),
    "csr uint16": lambda: sp.csr_array(DENSE.astype(np.uint16)),
    "csr 64-bit indices": lambda: wide(sp.csr_array(DENSE)),
    "csr with zeros": lambda: sp.csr_array(
        ([2, 0, 1, 4, 300], [0, 1, 2, 1, 2], [0, 3, 3, 5]), (3, 4)
    ),
    "csr unsorted": lambda: sp.csr_array(([1, 2, 300, 4], [2, 0, 2, 1], [0, 2, 2, 4]), (3, 4)),
    "csc_array": lambda: sp.csc_array(DENSE),
    "csc_matrix 64-bit": lambda: wide(sp.csc_matrix(DENSE)),
    "coo_array": lambda: sp.coo_array(DENSE),
    "coo_matrix 64-bit": lambda: wide(sp.coo_matrix(DENSE)),
    "lil_array": lambda: sp.lil_array(DENSE),
    "dense float32": lambda: DENSE,
    "dense int": lambda: DENSE.astype(int),
    "dense Fortran": lambda: np.asfortranarray(DENSE),
    "dense objects": lambda: DENSE.astype(object),
    "list of lists": lambda: DENSE.tolist(),
    "list of arrays": lambda: list(DENSE),
    "pandas": lambda: pd.DataFrame(FRAME),
    "pandas sparse": lambda: pd.DataFrame(SPARSE_FRAME),
    "polars": lambda: pl.DataFrame(FRAME),
    "bags": lambda: BAGS,
    "tuple of bags": lambda: tuple(BAGS),
    "bags of numpy numbers": lambda: [[(np.int32(i), np.float32(c)) for i, c in b] for b in BAGS],
    "bags as arrays": lambda: [np.array(bag, int).reshape(-1, 2) for bag in BAGS],
    "generator of bags": lambda: (bag for bag in BAGS),
    "generator of generators": lambda: ((pair for pair in bag) for bag in BAGS),
    "mappings": lambda: columns(BAGS),
    "corpus": lambda: as_corpus(sp.csr_array(DENSE)),
}


@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
@pytest.mark.filterwarnings("ignore:.*1 of 3 documents are empty:dpsvi.errors.CorpusWarning")
def test_every_container_gives_the_same_corpus(make):
    X = make()
    corpus = as_corpus(X, n_features=4)
    assert (corpus.offsets.dtype, corpus.index.dtype, corpus.value.dtype) == (
        np.int64,
        np.int32,
        np.float32,
    )
    assert_array_equal(corpus.offsets, [0, 2, 2, 4])
    assert_array_equal(corpus.index, [0, 2, 1, 2])
    assert_array_equal(corpus.value, [2, 1, 4, 300])
    assert corpus.vocabulary == (WORDS if hasattr(X, "columns") else None)


def test_the_first_sight_of_sorted_csr_is_not_copied():
    matrix = example()
    with pytest.warns(CorpusWarning, match="X: 1 of 3 documents are empty"):
        corpus = as_corpus(matrix, WORDS)
    assert np.shares_memory(corpus.index, matrix.indices)
    assert np.shares_memory(corpus.value, matrix.data)
    assert as_corpus(corpus) is corpus
    assert np.shares_memory(as_corpus(corpus, list("efgh")).value, matrix.data)


SEARCH = """
import numpy as np
from sklearn.model_selection import GridSearchCV
from dpsvi import DPSVILDA

X = np.random.default_rng(0).poisson(0.5, size=(100, 20))
X[::10] = 0
GridSearchCV(DPSVILDA(2, max_iter=1), {"learning_decay": [0.6, 0.8]}, cv=3).fit(X)
"""


def test_a_cross_validation_says_once_that_documents_are_empty():
    done = subprocess.run([sys.executable, "-c", SEARCH], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.count("Warning") == 1, done.stderr
    assert re.match(r"<string>:8: CorpusWarning: X: \d+ of \d+ documents are empty", done.stderr)


def test_whatever_is_said_again_can_be_caught():
    """However often it was said before, of other counts, too."""
    for n in (1, 2, 2):
        empty = np.zeros((n, 3))
        with pytest.warns(CorpusWarning, match=f"X: {n} of {n} documents are empty"):
            as_corpus(empty)
        with warnings.catch_warnings():
            warnings.simplefilter("error", CorpusWarning)
            with pytest.raises(CorpusWarning):
                as_corpus(empty)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_array])
def test_input_is_left_alone(kind):
    # Unsorted, repeated, and small integers whose sum does not fit their type.
    entries = (np.array([200, 3, 100], np.uint8), ([0, 0, 0], [1, 0, 1]))
    if kind is sp.csr_array:
        entries = (entries[0], np.array([1, 0, 1]), np.array([0, 3]))
    matrix = kind(entries, (1, 2))
    before = matrix.data.copy()
    with pytest.warns(CorpusWarning, match="1 repeated entries were summed"):
        corpus = as_corpus(matrix)
    assert_array_equal(corpus.to_csr().toarray(), [[3, 300]])
    assert_array_equal(matrix.data, before)


def test_vectorizer_output_needs_no_warning():
    vectorizer = CountVectorizer(max_df=2)
    X = vectorizer.fit_transform(["zebra apple zebra", "apple pear", "pear"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corpus = as_corpus(X, vectorizer.get_feature_names_out())
    assert corpus.vocabulary == ("apple", "pear", "zebra")
    assert_array_equal(corpus.to_csr().toarray(), X.toarray())


def gensims(documents):
    """The vocabulary of these documents as gensim has it."""
    return pytest.importorskip("gensim.corpora").Dictionary(documents)


VOCABULARIES = {
    "list": lambda: list(WORDS),
    "array": lambda: np.array(WORDS),
    "objects": lambda: np.array(WORDS, object),
    "word to id": lambda: {"d": 3, "a": 0, "c": 2, "b": 1},
    "id to word": lambda: dict(enumerate(WORDS)),
    "Dictionary": lambda: gensims([[word] for word in WORDS]),
}


@pytest.mark.parametrize("make", VOCABULARIES.values(), ids=VOCABULARIES)
def test_vocabularies(make):
    vocabulary = make()
    assert as_corpus(BAGS[::2], vocabulary).vocabulary == WORDS
    assert as_corpus(pd.DataFrame(FRAME)[2:], vocabulary).vocabulary == WORDS


@pytest.mark.parametrize("named", [pd.DataFrame, lambda data: as_corpus(pd.DataFrame(data))])
def test_words_do_not_trade_places(named):
    """Of a frame or corpus that names them: test data would be read by position."""
    X = named({"a": [5, 0], "b": [0, 1]})
    for words in (["a", "b"], ["A", "b"]):
        assert as_corpus(X, words).vocabulary == tuple(words)
    for words in (["b", "a"], ["b", "c"]):
        with pytest.raises(CorpusFormatError, match=r"'[ab]' in column ., .*has it in column [01]"):
            as_corpus(X, words)


def test_vocabulary_with_gaps():
    dictionary = gensims([list(WORDS)])
    dictionary.filter_tokens(bad_ids=[1])
    dictionary.token2id = {"a": 0, "c": 2, "d": 3}
    with pytest.raises(CorpusFormatError, match="none with id 1.*compactify"):
        as_corpus(BAGS, dictionary)


@pytest.mark.parametrize("words", [["a", "a", "b", "c"], ["a", "", "b", "c"], ["a", "b", "c", 4]])
def test_bad_vocabularies(words):
    with pytest.raises(CorpusFormatError, match="vocabulary word [13]: "):
        as_corpus(BAGS, words)


def test_a_set_has_no_order():
    with pytest.raises(CorpusFormatError, match="the vocabulary must have an order, got a set"):
        as_corpus(BAGS, {"a", "b", "c", "d"})


BAD_COUNTS = [-1, np.nan, np.inf, -np.inf, 0.5, 2**31, 1e300]
HOLDERS = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "dense": np.asarray,
    "list of lists": np.ndarray.tolist,
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
    "polars": lambda X: pl.DataFrame(X),
    "bags": lambda X: [[(k, x) for k, x in enumerate(row) if x] for row in X],
    "mappings": lambda X: columns([[(k, x) for k, x in enumerate(row) if x] for row in X]),
}


@pytest.mark.parametrize("count", BAD_COUNTS)
@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_bad_counts_name_row_and_column(hold, count):
    X = np.array([[1, 0, 2], [0, 3, 0], [4, 0, count]])
    with pytest.raises(CorpusFormatError, match="X: row 2, column 2: count .* is not a whole"):
        as_corpus(hold(X))


@pytest.mark.parametrize("count", [-1, np.nan, np.inf])
def test_nor_are_they_taken_from_a_corpus_of_ones_own(count):
    value = np.array([1, 2, count], np.float32)
    corpus = Corpus(np.array([0, 2, 3]), np.array([0, 1, 2], np.int32), value, 3)
    with pytest.raises(CorpusFormatError, match="X: row 1, column 2: count .* is not a whole"):
        as_corpus(corpus)


@pytest.mark.parametrize(("count", "fraction"), [(0.5, True), (-0.5, False), (1e30, False)])
def test_only_of_fractions_is_said_that_they_can_be_taken(count, fraction):
    with pytest.raises(CorpusFormatError) as error:
        as_corpus(np.array([[1, count]]))
    assert ("as_corpus take fractions with allow_fractional=True" in str(error.value)) == fraction


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_fractions_on_request(hold):
    X = np.array([[1, 0.25, 2], [0, 3, 0]])
    corpus = as_corpus(hold(X), allow_fractional=True)
    assert_array_equal(corpus.to_csr().toarray(), X)


def test_the_largest_count_passes():
    corpus = as_corpus(sp.csr_array(np.array([[2**31 - 1]])))
    assert as_corpus(corpus.to_csr()).n_tokens == corpus.n_tokens == 2.0**31


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "two dimensions"),
        (np.ones((2, 2, 2)), "two dimensions"),
        (np.ones((0, 3)), "expected rows and columns"),
        (np.ones((3, 0)), "expected rows and columns"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.array([[1j, 1]]), "real numbers"),
        (np.array([["a", None]], object), "no table of numbers"),
        ([[1, 2], [3]], "no table of numbers"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([1.0, np.nan])}), "fill value must be 0"),
        pytest.param(
            sp.coo_array(np.ones(3)), "expected rows and columns",
            marks=pytest.mark.skipif(sp.coo_array(np.ones(3)).ndim == 2, reason="SciPy < 1.13"),
        ),
        (sp.csr_array((2, 3), dtype=complex), "real numbers"),
        ([], "expected rows and columns"),
        ([[], []], "expected rows and columns"),
        (iter([]), "expected rows and columns"),
        ([[(0, 1)], [(1,)]], "document 1: expected .word id, count. pairs"),
        ([[(0, 1)], [("a", 1)]], "document 1: expected .word id, count. pairs"),
        ([[(0, 1)], [(1.0, 1)]], "document 1: expected .word id, count. pairs"),
        ([[(0, 1)], [(0, "a")]], "document 1: expected .word id, count. pairs"),
        ([[(0, 1)], [(2**31, 1)]], "document 1: expected .word id, count. pairs"),
        ([[(0, 1)], None], "document 1: expected .word id, count. pairs"),
        ({"a": "a cat", "b": "a dog"}, r"as a list has, got a dict; pass list\(X.values\(\)\)"),
        ({"a cat", "a dog"}, "as a list has, got a set$"),
        (["", ""], "no words in 2 texts"),
        ([b"a cat"], "texts must be strings, got b'a cat'; decode"),
        (["a cat", None], "document 1: expected a string .* got None; leave it out"),
        (["a cat", float("nan")], "document 1: expected a string .* got nan; leave it out"),
        (pl.LazyFrame({"a": [1.0]}), r"X is a LazyFrame, .* pass X.collect\(\)"),
        ([{"ids": [1, 2], "counts": [1]}], "document 0: expected"),
        ([{"ids": [1, 2]}], "document 0: expected .* 'ids' and 'counts'"),
        ([[(0, 1)], [(-1, 1)]], "X: row 1: column -1 is outside"),
    ],
)
def test_what_is_no_corpus(X, message):
    with pytest.raises(CorpusFormatError, match=message):
        as_corpus(X)


def test_a_text_alone_is_taken_for_a_path_and_told_so(tmp_path):
    text = "the cat sat on the mat " * 100  # longer than the name of a file may be
    with pytest.raises(FileNotFoundError, match=r"a text goes into a list.*: 'the cat .*\.\.\.'$"):
        as_corpus(text)
    with pytest.raises(FileNotFoundError, match="absent"):
        as_corpus(str(tmp_path / "absent"))


def test_texts_without_a_word_are_texts():
    """A model that knows its words answers them with its prior."""
    with pytest.warns(CorpusWarning, match="2 of 2 documents are empty"):
        assert as_corpus(["", ""], ["cat", "dog"]).n_items == 2


@pytest.mark.parametrize("X", [5, None, object()])
def test_other_types(X):
    with pytest.raises(TypeError, match=f"made from {type(X).__name__}"):
        as_corpus(X)


def test_columns_must_agree():
    with pytest.raises(CorpusFormatError, match="X: row 0: column 2 is outside 0..1"):
        as_corpus(BAGS, ["a", "b"])
    with pytest.raises(CorpusFormatError, match="X has 4 columns, expected 3"):
        as_corpus(DENSE, ["a", "b", "c"])
    with pytest.raises(CorpusFormatError, match="X has 4 columns, expected 3"):
        as_corpus(BAGS, WORDS, n_features=3)
    assert as_corpus(BAGS[::2], n_features=9).n_features == 9


def test_rows_without_words_are_kept_even_if_that_is_all_of_them():
    with pytest.warns(CorpusWarning, match="2 of 2 documents are empty"):
        corpus = as_corpus(np.zeros((2, 3)))
    assert (corpus.n_items, corpus.nnz) == (2, 0)


@pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")
def test_paths_are_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSVI_CACHE_DIR", str(tmp_path / "cache"))
    path = write(tmp_path, example(), "uci")
    for name in (path, str(path)):
        corpus = as_corpus(name, WORDS)
        assert_array_equal(corpus.to_csr().toarray(), DENSE)
        assert corpus.vocabulary == WORDS
