"""The container: what it guarantees, what it shares, and which rows it selects."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, csr_matrix
from tools.corpus_writers import example

from dpsvi.corpus import Corpus
from dpsvi.errors import CorpusFormatError, DpsviError

OFFSETS = np.array([0, 2, 2, 4])
INDEX = np.array([0, 2, 1, 2], np.int32)
VALUE = np.array([2, 1, 4, 300], np.float32)


def test_sizes_and_words():
    corpus = Corpus(OFFSETS, INDEX, VALUE, 4, ("a", "b", "c", "d"))
    assert (corpus.n_items, corpus.nnz, corpus.n_tokens) == (3, 4, 307)
    assert corpus.vocabulary[3] == "d"
    assert repr(corpus) == "Corpus(n_items=3, n_features=4, nnz=4)"


def test_memory_is_shared_and_read_only():
    corpus = Corpus(OFFSETS, INDEX, VALUE, 4)
    csr = corpus.to_csr()
    for array in (corpus.index, csr.indices, corpus.select(slice(1, 3)).index):
        assert np.shares_memory(array, INDEX)
        assert not array.flags.writeable
    assert np.shares_memory(csr.data, VALUE)
    assert INDEX.flags.writeable, "the caller's own array must stay as it was"
    assert_array_equal(csr.toarray(), example().toarray())


def test_mapped_arrays_stay_mapped(tmp_path):
    np.save(tmp_path / "index.npy", INDEX)
    mapped = np.load(tmp_path / "index.npy", mmap_mode="r")
    corpus = Corpus(OFFSETS, mapped, VALUE, 4)
    assert type(corpus.index) is np.ndarray  # compiled code meets one array type only
    assert np.shares_memory(corpus.index, mapped)


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_from_csr_copies_only_what_has_another_type(kind):
    matrix = kind(example())
    corpus = Corpus.from_csr(matrix)
    assert np.shares_memory(corpus.value, matrix.data)
    assert np.shares_memory(corpus.index, matrix.indices)
    wide = kind(matrix.astype(np.float64))
    wide.indices = wide.indices.astype(np.int64)
    assert_array_equal(Corpus.from_csr(wide).index, matrix.indices)


def test_from_csr_leaves_out_what_lies_behind_the_last_row():
    matrix = csr_array(np.eye(2, dtype=np.float32))
    matrix.data, matrix.indices = np.ones(5, np.float32), np.zeros(5, np.int32)
    assert Corpus.from_csr(matrix).nnz == 2


@pytest.mark.parametrize(
    "ids",
    [
        slice(None), slice(1, None), slice(0, 0), slice(2, 1), slice(-1, None),
        slice(None, None, 2), slice(None, None, -1), [2, 0], [1], np.array([2, 2, 2]),
        np.array([True, False, True]), np.array([-1]), [],
    ],
    ids=str,
)  # fmt: skip
def test_select_is_numpy_indexing_of_rows(ids):
    corpus = Corpus(OFFSETS, INDEX, VALUE, 4, ("a", "b", "c", "d"))
    expected = example().toarray()[np.array(ids, int) if isinstance(ids, list) else ids]
    chosen = corpus.select(ids)
    assert chosen.vocabulary == corpus.vocabulary
    assert_array_equal(chosen.to_csr().toarray(), expected)


def test_select_refuses_missing_rows():
    with pytest.raises(IndexError):
        Corpus(OFFSETS, INDEX, VALUE, 4).select([3])
    with pytest.raises(IndexError, match="have whole numbers, got .*1.5"):
        Corpus(OFFSETS, INDEX, VALUE, 4)[[1.5]]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"offsets": OFFSETS.astype(np.int32)}, TypeError, "offsets must be .* int64"),
        ({"index": INDEX.astype(np.int64)}, TypeError, "index must be .* int32"),
        ({"value": VALUE.astype(np.float64)}, TypeError, "value must be .* float32"),
        ({"value": np.repeat(VALUE, 2)[::2]}, TypeError, "value must be a contiguous"),
        ({"value": VALUE.reshape(2, 2)}, TypeError, "got shape .2, 2."),
        ({"offsets": OFFSETS[:0]}, CorpusFormatError, "must start at 0"),
        ({"offsets": np.array([1, 4])}, CorpusFormatError, "must start at 0"),
        ({"offsets": np.array([0, 3, 2, 4])}, CorpusFormatError, "never fall"),
        ({"offsets": np.array([0, 3])}, CorpusFormatError, "offsets end at 3"),
        ({"value": VALUE[:3]}, CorpusFormatError, "and 3 values"),
        ({"n_features": 2}, CorpusFormatError, "row 0: column 2 is outside 0..1"),
        ({"index": -INDEX}, CorpusFormatError, "row 0: column -2 is outside 0..3"),
        ({"n_features": 0}, CorpusFormatError, "1 to 2.* got 0"),
        ({"n_features": 2**31}, CorpusFormatError, "got 2147483648"),
        ({"vocabulary": ("a",)}, CorpusFormatError, "has 1 words, the corpus 4 columns"),
    ],
    ids=str,
)
def test_what_is_no_corpus(changed, error, message):
    parts = {"offsets": OFFSETS, "index": INDEX, "value": VALUE, "n_features": 4}
    with pytest.raises(error, match=message):
        Corpus(**(parts | changed))


def test_format_errors_are_value_errors():
    assert issubclass(CorpusFormatError, ValueError)
    assert issubclass(CorpusFormatError, DpsviError)
    assert str(CorpusFormatError.at("a.txt", 7, "no")) == "a.txt:7: no"
