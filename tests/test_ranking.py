"""Ranking metrics, beside scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import ndcg_score

from dpsvi.ranking import ndcg, recall


@pytest.mark.parametrize("n", [1, 3, 20])
def test_ndcg_is_that_of_scikit_learn(rng, n):
    gains = rng.integers(0, 4, (50, 20)).astype(float)
    gains[0] = [5.0] + [0.0] * 19
    scores = rng.normal(size=gains.shape)
    lists = np.argsort(-scores, axis=1)[:, :n]
    wanted = ndcg_score(gains, scores, k=n)
    assert ndcg(lists, gains) == pytest.approx(wanted, rel=1e-12)
    assert ndcg(lists, scipy.sparse.csr_array(gains)) == pytest.approx(wanted, rel=1e-12)


def test_by_hand():
    gains = np.array([[1.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]])
    lists = np.array([[0, 1], [0, 1], [3, -1]])
    first = 1 / (3 + 1 / np.log2(3))
    last = 1 / (1 + 1 / np.log2(3))
    assert ndcg(lists, gains) == pytest.approx((first + last) / 2)  # the second user has none
    assert recall(lists, gains) == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_perfect_lists():
    gains = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    lists = np.array([[0, 1], [2, 0]])
    assert ndcg(lists, gains) == recall(lists, gains) == 1.0


@pytest.mark.parametrize(
    ("lists", "gains", "message"),
    [
        ([[0]], np.ones((2, 3)), "a row for each of the 2 users"),
        ([[3]], np.ones((1, 3)), r"in -1\.\.2, got 3\.\.3"),
        ([[0]], -np.ones((1, 3)), "gains must be >= 0, got -1"),
        ([[0]], np.zeros((1, 3)), "none of the 1 users"),
    ],
)
def test_refused(lists, gains, message):
    with pytest.raises(ValueError, match=message):
        ndcg(lists, gains)
