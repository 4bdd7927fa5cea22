"""A fitted DPSVILDA as a gensim LdaModel, and topic coherence by gensim."""

from __future__ import annotations

import numpy as np

from dpsvi.errors import check_choice, check_number


def _import():
    try:
        import gensim
    except ImportError as error:
        raise ImportError(
            "gensim is not installed (it has no wheel for this Python version?): pip install gensim"
        ) from error
    return gensim


def make_dictionary(words):
    """A gensim Dictionary with the given words in order."""
    _import()
    from gensim.corpora import Dictionary

    dictionary = Dictionary()
    dictionary.token2id = {str(word): i for i, word in enumerate(words)}
    dictionary.id2token = {i: str(word) for i, word in enumerate(words)}
    return dictionary


def to_gensim(estimator):
    """Return a ``gensim.models.LdaModel`` with the same topics and priors.

    Parameters
    ----------
    estimator : DPSVILDA

    Returns
    -------
    gensim.models.LdaModel
        Its ``expElogbeta``, ``inference`` and ``print_topics`` agree with `estimator`.
    """
    _import()
    from gensim.models import LdaModel

    words = estimator.vocabulary_ or range(estimator.n_features_in_)
    dictionary = make_dictionary(words)
    model = LdaModel(
        corpus=None, id2word=dictionary.id2token, num_topics=len(estimator.components_),
        alpha=estimator.doc_topic_prior_.tolist(), eta=estimator.topic_word_prior_,
        dtype=np.float32, random_state=0,
    )  # fmt: skip
    eta = np.asarray(estimator.topic_word_prior_, np.float32)
    model.state.eta = eta if eta.ndim else np.full(estimator.n_features_in_, eta)
    model.state.sstats = np.ascontiguousarray(estimator.components_ - eta)
    model.state.numdocs = 0
    model.sync_state()
    return model


def coherence(estimator, corpus, *, measure="u_mass", n_words=10) -> np.ndarray:
    """Coherence of each topic, (n_components,), by gensim's CoherenceModel.

    Parameters
    ----------
    estimator : DPSVILDA
    corpus : Corpus
        Documents that co-occurrences are counted in.
    measure : {"u_mass", "c_v", "c_uci", "c_npmi"}
        The last three count within documents, in any order: word order is not kept in a corpus.
    n_words : int, >= 2
        Top words of each topic.

    Raises
    ------
    ValueError
        There is no such measure, or there are no two words.
    """
    check_choice("measure", measure, ["u_mass", "c_v", "c_uci", "c_npmi"])
    check_number("n_words", n_words, low=2, integer=True)
    if estimator.n_features_in_ < 2:
        raise ValueError("coherence is of two words at least, the model has one")
    _import()
    from gensim.models import CoherenceModel

    words = [str(w) for w in estimator.vocabulary_ or range(estimator.n_features_in_)]
    top = [[str(word) for word in topic] for topic in estimator.top_words(n_words)]
    offsets, index, value = corpus.offsets, corpus.index, corpus.value
    bags = [
        list(zip(index[a:b].tolist(), value[a:b].astype(int).tolist(), strict=True))
        for a, b in zip(offsets[:-1], offsets[1:], strict=True)
    ]
    data = {"corpus": bags}
    if measure != "u_mass":
        longest = max(1, max(sum(c for _, c in bag) for bag in bags))
        texts = [[words[w] for w, c in bag for _ in range(c)] for bag in bags]
        data = {"texts": texts, "window_size": longest}
    model = CoherenceModel(
        topics=top, dictionary=make_dictionary(words), coherence=measure, topn=n_words, **data,
        processes=1,
    )  # fmt: skip
    return np.array(model.get_coherence_per_topic())
