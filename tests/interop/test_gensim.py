"""A DPSVILDA seen by gensim, against gensim's own inference and coherence."""

import numpy as np
import pytest

from dpsvi import DPSVILDA

gensim = pytest.importorskip("gensim")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(50, 0.05), 3)
    counts = rng.poisson(60 * rng.dirichlet(np.full(3, 0.2), 80) @ topics)
    counts[:, 0] += 1  # no empty document
    counts = counts[:, counts.any(axis=0)]
    model = DPSVILDA(3, local_step="mean_field", max_iter=20, batch_size=20, random_state=0)
    return model.fit(counts), counts


def bags(counts):
    return [[(int(w), int(row[w])) for w in np.flatnonzero(row)] for row in counts]


def test_gensim_infers_the_same_proportions(fitted):
    model, counts = fitted
    lda = model.to_gensim()
    lda.iterations, lda.gamma_threshold = 500, 1e-5
    gamma, _ = lda.inference(bags(counts))
    expected = gamma / gamma.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.transform(counts), expected, atol=2e-2)


def test_gensim_sees_the_same_topics(fitted):
    model, _ = fitted
    lda = model.to_gensim()
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(lda.get_topics(), topics, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(lda.expElogbeta, model.exp_dirichlet_component_, rtol=1e-3)


def test_gensim_corpora_fit_like_matrices(fitted):
    _, counts = fitted
    settings = dict(n_components=3, max_iter=2, batch_size=20, random_state=0)
    from_matrix = DPSVILDA(**settings).fit(counts)
    from_bags = DPSVILDA(**settings).fit(iter(bags(counts)))
    np.testing.assert_array_equal(from_matrix.components_, from_bags.components_)


@pytest.mark.parametrize("measure", ["u_mass", "c_npmi"])
def test_coherence_tells_topics_from_noise(fitted, measure):
    model, counts = fitted
    noise = DPSVILDA(3, max_iter=0, random_state=3).fit(counts)
    good = model.coherence(counts, measure=measure, n_words=5)
    assert np.isfinite(good) and good > noise.coherence(counts, measure=measure, n_words=5)
    each = model.coherence(counts, measure=measure, n_words=5, average=False)
    assert each.shape == (3,) and each.mean() == pytest.approx(good)


def test_coherence_says_what_it_cannot_measure(fitted):
    model, counts = fitted
    with pytest.raises(ValueError, match="measure must be one of .*'u_mass'.*, got 'x'"):
        model.coherence(counts, measure="x")
    with pytest.raises(ValueError, match="n_words must be an integer >= 2, got 1"):
        model.coherence(counts, n_words=1)
    with pytest.raises(ValueError, match="of two words at least, the model has one"):
        DPSVILDA(1, max_iter=1).fit(np.ones((20, 1))).coherence(np.ones((5, 1)))
