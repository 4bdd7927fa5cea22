"""Lengths and symbols: what is taken and what is refused."""

import numpy as np
import pytest
from tools.hmm_cases import (
    chains,
)

from dpsvi import DPSVIHMM
from dpsvi.models.hmm.sequences import offsets_of


@pytest.mark.parametrize(
    "lengths",
    [[3, 4], [10, 0], [11, -1], [5.0, 5.0], [[5, 5]], [], 10, [4, 6, 1], [2**63 - 1] * 2 + [12]],
    ids=str,
)
def test_bad_lengths_are_refused(rng, lengths):
    with pytest.raises(ValueError, match="lengths must be integers >= 1 that sum to the 10 rows"):
        DPSVIHMM().fit(rng.normal(size=(10, 2)), lengths=lengths)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64])
def test_lengths_of_any_integers(kind):
    offsets = offsets_of(np.array([100, 100, 100], kind), 300)
    assert offsets.tolist() == [0, 100, 200, 300] and offsets.dtype == np.int64


def test_lengths_in_the_place_of_y_are_noticed(rng):
    """As hmmlearn's users would write it; ignoring them would fit another model."""
    X, lengths, _ = chains(rng, [10, 20])
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="give the lengths of sequences by name"):
            getattr(DPSVIHMM(), method)(X, lengths)
    with pytest.raises(ValueError, match="give the lengths of sequences by name"):
        DPSVIHMM().fit(X).score(X, lengths)


@pytest.mark.parametrize("lengths", [(10, 20), (10, 10)])
@pytest.mark.parametrize("as_tuple", [False, True])
def test_a_list_of_sequences_is_noticed(rng, lengths, as_tuple):
    sequences = [rng.normal(size=(n, 2)) for n in lengths]
    if as_tuple:
        sequences = tuple(sequences)
    says = r"or of sequences: pass np.concatenate\(X\) and lengths=\[len\(x\) for x in X\]"
    with pytest.raises(ValueError, match=says):
        DPSVIHMM(2).fit(sequences)
    hmm = DPSVIHMM(2).fit(np.concatenate(sequences), lengths=[len(x) for x in sequences])
    for method in (hmm.predict, hmm.score):
        with pytest.raises(ValueError, match=says):
            method(sequences)
    for ragged in ([[0, 1, 1], [1, 0]], [[[1, 2], [3]], [[1, 2]]], [[1.0, 2.0], 3.0]):
        with pytest.raises(ValueError, match="rows of several lengths"):
            DPSVIHMM(2, emission="categorical").fit(ragged)
    assert hmm.predict([[0.0, 1.0], [2.0, 0.5]]).shape == (2,), "a list of rows is fine"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0], [1.5]], "integers >= 0 and < 3, got 1.5"),
        ([[0], [-1]], "got -1"),
        ([[3]], "got 3; n_features says how many"),
        ([[0, 1]], "2 features"),
    ],
)
def test_bad_symbols_are_refused(X, message):
    hmm = DPSVIHMM(2, emission="categorical", random_state=0).fit([[0], [1], [2], [1]])
    with pytest.raises(ValueError, match=message):
        hmm.predict(X)


def test_symbols_that_are_no_numbers_from_0_on(rng):
    X = rng.integers(3, size=(20, 1)) + 10**13
    with pytest.raises(MemoryError, match="10,000,000,000,00. symbols in 2 states; symbols are"):
        DPSVIHMM(2, emission="categorical").fit(X)
