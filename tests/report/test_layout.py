"""The map of topics: distances, places, what it refuses."""

import re

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon, pdist, squareform
from sklearn.decomposition import KernelPCA
from tools.run_folders import distributions

from dpsvi.report import topic_map
from dpsvi.report.layout import js_distances


def test_distances_equal_scipy():
    _, components = distributions()
    reference = [[jensenshannon(p, q, base=2) for q in components] for p in components]
    np.testing.assert_allclose(js_distances(components * 7), reference, atol=1e-7)


def test_distances_do_not_depend_on_blocks(monkeypatch):
    _, components = distributions()
    expected = js_distances(components)
    monkeypatch.setattr("dpsvi.report.layout.BLOCK_ENTRIES", 60)
    np.testing.assert_allclose(js_distances(components), expected, atol=1e-12)


@pytest.mark.parametrize("weights", [None, [1, 1, 1], [5, 1, 2]])
def test_three_topics_keep_their_distances(weights):
    # Three points always fit in a plane, so the map is exact whatever the weights.
    components = np.random.default_rng(3).dirichlet(np.ones(30), size=3)
    positions = topic_map(components, weights)
    np.testing.assert_allclose(squareform(pdist(positions)), js_distances(components), atol=1e-7)
    mass = np.ones(3) if weights is None else np.asarray(weights)
    np.testing.assert_allclose(mass @ positions, 0, atol=1e-12)


def test_weights_move_the_origin_only():
    components = np.random.default_rng(4).dirichlet(np.ones(30), size=6)
    plain, weighted = topic_map(components), topic_map(components, [0, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(pdist(weighted), pdist(plain))
    np.testing.assert_allclose(weighted[2], 0, atol=1e-12)


def test_map_equals_scikit_learn():
    _, components = distributions()
    positions = topic_map(components)
    centred = -0.5 * js_distances(components) ** 2
    reference = KernelPCA(2, kernel="precomputed", eigen_solver="dense").fit_transform(centred)
    np.testing.assert_allclose(np.abs(positions), np.abs(reference), atol=1e-6)


def test_disjoint_topics_form_an_equilateral_triangle():
    np.testing.assert_allclose(pdist(topic_map(np.eye(3))), 1)


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        ([[1, 2, 3]], [[0, 0]]),
        (np.eye(2), [[0.5, 0], [-0.5, 0]]),
        (np.ones((4, 5)), np.zeros((4, 2))),
        ([[1, 0], [1, 0], [0, 2], [0, 2]], [[0.5, 0], [0.5, 0], [-0.5, 0], [-0.5, 0]]),
    ],
    ids=["one", "two", "equal", "pairs"],
)
def test_map_of_degenerate_topics(components, expected):
    # The sign of a symmetric axis is arbitrary, so compare with both.
    positions = topic_map(components)
    np.testing.assert_allclose(np.abs(positions), np.abs(expected), atol=1e-7)
    np.testing.assert_allclose(pdist(positions), pdist(np.asarray(expected, float)), atol=1e-7)


def test_map_separates_groups_of_topics():
    rng = np.random.default_rng(0)
    bases = np.kron(np.eye(3), np.ones(20))
    components = np.repeat(bases, 5, axis=0) + rng.uniform(0, 0.1, (15, 60))
    distances = squareform(pdist(topic_map(components)))
    same = np.kron(np.eye(3, dtype=bool), np.ones((5, 5), dtype=bool))
    assert distances[same].max() < 0.2 * distances[~same].min()


@pytest.mark.parametrize(
    ("components", "weights", "message"),
    [
        ([1, 2], None, "shape (2,)"),
        (np.empty((0, 3)), None, "shape (0, 3)"),
        ([[1, -2]], None, "components[0, 1] is -2.0"),
        ([[1, 2], [np.nan, 1]], None, "components[1, 0] is nan"),
        ([[1, 2], [0, 0]], None, "components[1] sums to 0"),
        (np.eye(2), [1], "shape (2,), got (1,)"),
        (np.eye(2), [1, -1], "weights must be finite"),
        (np.eye(2), [0, 0], "weights must be finite"),
    ],
)
def test_map_refuses(components, weights, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        topic_map(components, weights)
