"""Texts in, words out: what topic models take besides counts."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpsvi import DPSVIHDP, DPSVILDA
from dpsvi.corpus import as_corpus
from dpsvi.errors import CorpusFormatError, CorpusWarning

ANIMALS = "cat dog horse cow sheep".split()
NUMBERS = "one two three four five".split()


@pytest.fixture(scope="module")
def texts():
    """Texts of animals and texts of numbers; in all of them stands "the"."""
    rng = np.random.default_rng(0)
    words = [ANIMALS, NUMBERS]
    return ["The " + " ".join(rng.choice(words[i % 2], 12)) + "." for i in range(200)]


@pytest.fixture(scope="module")
def tokens(texts):
    return [text.lower().rstrip(".").split() for text in texts]


def forms(texts):
    """The same texts in all forms that hold strings."""
    import pandas as pd

    yield texts
    yield tuple(texts)
    yield np.array(texts)
    yield np.array(texts, object)
    yield pd.Series(texts)
    yield pd.Series(texts, dtype="string")
    yield pd.DataFrame({"text": texts})["text"]
    yield pd.DataFrame({"text": texts})
    yield iter(texts)


@pytest.mark.parametrize("model", [DPSVILDA, DPSVIHDP])
def test_texts_in_words_out(texts, model, tmp_path):
    fitted = model(n_components=2, max_iter=20, random_state=0).fit(texts)
    top = [{word for word, *_ in topic} if isinstance(topic[0], tuple) else {*topic}
           for topic in fitted.top_words(5)]  # fmt: skip
    assert {*ANIMALS} in top and {*NUMBERS} in top
    assert "the" not in fitted.vocabulary_, "a word of all texts heads every topic"
    with pytest.warns(CorpusWarning, match="1 of 3 documents are empty or have no word of the voc"):
        theta = fitted.transform(["A dog and a cat", "five, four", "nothing known"])
    assert theta[0].argmax() != theta[1].argmax()
    assert np.allclose(theta.sum(axis=1), 1)
    assert np.isfinite(fitted.perplexity(texts))

    fitted.save(tmp_path / "model")
    again = model.load(tmp_path / "model")
    assert again.top_words(5) == fitted.top_words(5)
    np.testing.assert_array_equal(again.transform(texts[:9]), fitted.transform(texts[:9]))


def test_all_forms_of_texts_are_the_same_corpus(texts):
    expected = as_corpus(texts)
    for X in forms(texts):
        found = as_corpus(X)
        assert found.vocabulary == expected.vocabulary
        assert (found.to_csr() != expected.to_csr()).nnz == 0
    lda = DPSVILDA(n_components=2, max_iter=2, random_state=0)
    components = [clone(lda).fit(X).components_ for X in forms(texts)]
    for found in components:
        np.testing.assert_array_equal(found, components[0])


def test_polars_columns(texts):
    pl = pytest.importorskip("polars")
    assert as_corpus(pl.Series(texts)).vocabulary == as_corpus(texts).vocabulary
    assert as_corpus(pl.DataFrame({"text": texts})).vocabulary == as_corpus(texts).vocabulary
    words = [text.split() for text in texts]
    assert as_corpus(pl.DataFrame({"words": words})).vocabulary == as_corpus(words).vocabulary


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_text_is_named_also_where_it_is_the_first(texts, library):
    library = pytest.importorskip(library)
    column = [None, *texts[:3]]
    for X in (library.Series(column), library.DataFrame({"text": column})):
        with pytest.raises(CorpusFormatError, match="document 0: .* leave it out"):
            DPSVILDA().fit(X)


def test_values_of_a_dictionary_of_texts(texts):
    found = as_corpus(dict(enumerate(texts)).values())
    assert (found.to_csr() != as_corpus(texts).to_csr()).nnz == 0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_of_several_columns_that_of_texts_is_named(texts, library):
    frame = pytest.importorskip(library).DataFrame
    table = frame({"id": range(3), "text": texts[:3]})
    for fit in (as_corpus, DPSVILDA().fit):
        with pytest.raises(CorpusFormatError, match=r"2 columns, .* alone, as X\['text'\]"):
            fit(table)


def test_lists_of_words_are_counted_as_they_are(tokens):
    corpus = as_corpus(tokens)
    assert set(corpus.vocabulary) == {"the", *ANIMALS, *NUMBERS}
    assert corpus.n_tokens == sum(map(len, tokens))
    assert (as_corpus(iter(tokens)).to_csr() != corpus.to_csr()).nnz == 0
    later = as_corpus(iter([[], *tokens]))
    assert later.n_items == 1 + corpus.n_items and later.vocabulary == corpus.vocabulary
    lda = DPSVILDA(n_components=2, max_iter=2, random_state=0).fit(tokens)
    assert lda.vocabulary_ == corpus.vocabulary
    assert lda.transform([["cat", "unknown"], []]).shape == (2, 2)


def test_counts_are_those_of_scikit_learn(texts):
    few = texts[:50]
    counter = CountVectorizer()
    expected = csr_array(counter.fit_transform(few))
    corpus = as_corpus(few)
    assert corpus.vocabulary == tuple(counter.get_feature_names_out())
    assert (corpus.to_csr() != expected).nnz == 0, "of few texts no word is left out"
    counter = CountVectorizer(min_df=2, max_df=0.5)
    assert (as_corpus(texts).to_csr() != csr_array(counter.fit_transform(texts))).nnz == 0
    given = as_corpus(texts, ["horse", "one", "zebra"])
    assert given.vocabulary == ("horse", "one", "zebra")
    assert given.n_tokens == sum(t.count("horse") + t.count("one") for t in texts)


def test_a_vectorizer_of_the_user(texts, tmp_path):
    own = TfidfVectorizer(ngram_range=(1, 2), max_df=0.9)
    lda = DPSVILDA(n_components=2, max_iter=2, random_state=0, vectorizer=own).fit(texts)
    assert not hasattr(own, "vocabulary_"), "the user's is not fitted"
    assert any(" " in word for word in lda.vocabulary_)
    counts = lda.vectorizer_.transform(texts)
    np.testing.assert_allclose(lda.transform(texts), lda.transform(counts), rtol=1e-5)
    lda.save(tmp_path / "model")
    again = DPSVILDA.load(tmp_path / "model")
    np.testing.assert_allclose(again.transform(counts), lda.transform(counts), rtol=1e-5)
    with pytest.raises(ValueError, match="pass vectorizer.transform"):
        again.transform(texts)
    for wrong in ("english", TfidfVectorizer, HashingVectorizer()):  # the second is a class
        with pytest.raises(TypeError, match="must be one that names the words .* CountVectorizer"):
            DPSVILDA(vectorizer=wrong).fit(texts)


def test_a_fitted_vectorizer_knows_no_new_words(texts):
    lda = DPSVILDA(grow_vocabulary=True, vectorizer=CountVectorizer())
    with pytest.raises(ValueError, match="grow_vocabulary=True needs vectorizer=None"):
        lda.fit(texts)


def test_documents_without_words(texts):
    lda = DPSVILDA(n_components=2, max_iter=2, random_state=0).fit(texts)
    none = [], pd.Series([], dtype=object), as_corpus(texts)[:0]
    for call in (lda.transform, lda.fit, lda.partial_fit, lda.coherence):
        for X in none:
            with pytest.raises(ValueError, match="X must hold at least one document, got none"):
                call(X)
    with pytest.warns(CorpusWarning, match="2 of 2 documents are empty"):
        assert lda.transform(["", ""]).shape == (2, 2)


@pytest.mark.parametrize("vectorizer", [None, CountVectorizer()])
@pytest.mark.parametrize("column", ["text", ["text"]])
def test_columns_of_texts_and_numbers_have_names(texts, vectorizer, column):
    both = pd.DataFrame({"text": texts, "length": [len(text) for text in texts]})
    lda = DPSVILDA(n_components=2, max_iter=1, vectorizer=vectorizer)
    columns = ColumnTransformer([("topics", lda, column), ("rest", StandardScaler(), ["length"])])
    found = columns.set_output(transform="pandas").fit_transform(both)
    assert list(found) == ["topics__dpsvilda0", "topics__dpsvilda1", "rest__length"]


def test_streams_of_texts(texts):
    lda = DPSVILDA(n_components=2, random_state=0)
    lda.partial_fit(texts[:100]).partial_fit(texts[100:])
    assert set(lda.vocabulary_) == {*ANIMALS, *NUMBERS}
    n_words = lda.n_features_in_
    assert lda.partial_fit(["cat zebra"]).n_features_in_ == n_words, "unknown words are left out"
    lda.set_params(grow_vocabulary=True).partial_fit(["cat zebra zebra", "aardvark cat"])
    assert lda.vocabulary_[n_words:] == ("aardvark", "zebra")
    assert lda.transform(["zebra"]).shape == (1, 2)


@pytest.mark.parametrize("model", [DPSVILDA, DPSVIHDP])
def test_a_part_of_a_stream_has_no_known_word(model, texts):
    topics = model(n_components=2, random_state=0).partial_fit(texts)
    before = topics.components_
    with pytest.warns(CorpusWarning, match="2 of 2 documents are empty"):
        topics.partial_fit(["aardvark zebra", "zebra"])
    assert topics.vocabulary_ == tuple(sorted({*ANIMALS, *NUMBERS}))
    learned = topics.partial_fit(texts).components_
    assert np.all(np.isfinite(learned)) and not np.array_equal(learned, before)


def test_scikit_learn_splits_texts_and_corpora(texts):
    lda = DPSVILDA(n_components=2, max_iter=2, random_state=0)
    for X in (texts, as_corpus(texts)):
        train, test = train_test_split(X, random_state=0)
        assert len(train) == 150 and len(test) == 50
        assert np.isfinite(clone(lda).fit(train).score(test))
    found = GridSearchCV(lda, {"n_components": [2, 3]}, cv=2).fit(texts)
    assert np.all(np.isfinite(found.cv_results_["mean_test_score"]))
    pipeline = make_pipeline(CountVectorizer(), lda).fit(texts)
    assert pipeline.transform(texts[:3]).shape == (3, 2)


def test_a_corpus_is_indexed_by_its_rows(texts):
    corpus = as_corpus(texts)
    dense = corpus.to_csr().toarray()
    assert corpus.shape == dense.shape and len(corpus) == 200
    for rows in (slice(3, 9), slice(None, None, 7), [5, 2, 2], np.arange(200) % 3 == 0):
        np.testing.assert_array_equal(corpus[rows].to_csr().toarray(), dense[rows])
    np.testing.assert_array_equal(corpus[-1].to_csr().toarray(), dense[-1:])
    assert corpus[2:4].vocabulary == corpus.vocabulary
    for wrong in (200, -201, (1, 2)):
        with pytest.raises(IndexError):
            corpus[wrong]


@pytest.mark.parametrize(
    ("X", "reason"),
    [
        (["a text", None, "more"], "document 1: .* got None"),
        (["a text", float("nan")], "document 1: .* got nan"),
        (["a text", ["a", "list"]], "document 1: strings and lists of words are mixed"),
        (["a text", 3], "document 1: .* got 3"),
        ([None, "a text"], "document 0: .* got None"),
        ([float("nan"), "a text"], "document 0: .* got nan"),
        ([["a", "list"], ["of", 1]], "document 1: 1 is no word"),
        (["!", "?"], "no words in 2 texts"),
    ],
)
def test_what_is_no_text_is_named(X, reason):
    for fit in (as_corpus, DPSVILDA().fit):
        with pytest.raises(CorpusFormatError, match=reason):
            fit(X)


def test_texts_for_a_model_of_numbers(texts):
    counts = as_corpus(texts).to_csr()
    lda = DPSVILDA(n_components=2, max_iter=1).fit(counts)
    with pytest.raises(ValueError, match="fitted to numbers"):
        lda.transform(texts)


def test_mappings_and_the_words_beside_a_file(tmp_path):
    documents = [{"ids": [0, 2], "counts": [1, 3]}, {"ids": [1], "counts": [2]}]
    assert DPSVILDA(n_components=2, max_iter=1).fit(documents).n_features_in_ == 3
    (tmp_path / "docword.x.txt").write_text("2\n3\n3\n1 1 1\n1 3 3\n2 2 2\n")
    (tmp_path / "vocab.x.txt").write_text("cat\ndog\ncow\n")
    lda = DPSVILDA(n_components=2, max_iter=1).fit(tmp_path / "docword.x.txt")
    assert lda.vocabulary_ == ("cat", "dog", "cow")


# --- words and their order -------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus(texts):
    return as_corpus(texts)


def in_other_order(corpus, order):
    """The same documents, with words in another order."""
    words = tuple(corpus.vocabulary[i] for i in order)
    return as_corpus(corpus.to_csr()[:, order], words)


def test_words_are_known_by_their_names(corpus):
    lda = DPSVILDA(n_components=2, max_iter=3, random_state=0).fit(corpus)
    other = in_other_order(corpus, np.random.default_rng(0).permutation(corpus.n_features))
    np.testing.assert_allclose(lda.transform(other), lda.transform(corpus), rtol=1e-4)
    some = in_other_order(corpus, [3, 1])
    with pytest.warns(CorpusWarning, match="empty"):
        few = as_corpus(some.to_csr() @ np.eye(corpus.n_features)[[3, 1]], corpus.vocabulary)
    np.testing.assert_allclose(lda.transform(some), lda.transform(few), rtol=1e-4)
    with pytest.raises(ValueError, match="the word 'zebra', which DPSVILDA was not fitted with"):
        lda.transform(as_corpus([[1, 2]], ["cat", "zebra"]))


def test_known_words_of_a_frame_in_another_order(texts, corpus):
    import pandas as pd

    lda = DPSVILDA(n_components=2, max_iter=3, random_state=0).fit(texts)
    frame = pd.DataFrame(corpus.to_csr().toarray(), columns=corpus.vocabulary)
    np.testing.assert_allclose(
        lda.transform(frame[frame.columns[::-1]]), lda.transform(frame), rtol=1e-4
    )


def test_new_words_may_come_in_any_place(corpus):
    settings = dict(n_components=2, random_state=0, grow_vocabulary=True)
    first = in_other_order(corpus, range(5))
    lda = DPSVILDA(**settings).partial_fit(first)
    again = DPSVILDA(**settings).partial_fit(first).partial_fit(corpus)
    lda.partial_fit(in_other_order(corpus, range(corpus.n_features)[::-1]))
    assert lda.vocabulary_[:5] == corpus.vocabulary[:5]
    assert {*lda.vocabulary_} == {*corpus.vocabulary}
    order = [lda.vocabulary_.index(word) for word in corpus.vocabulary]
    np.testing.assert_allclose(lda.components_[:, order], again.components_, rtol=0.05, atol=0.5)


def test_words_behind_a_vectorizer(texts):
    pipeline = make_pipeline(CountVectorizer(max_df=0.5), DPSVILDA(2, random_state=0)).fit(texts)
    lda, words = pipeline[-1], pipeline[0].get_feature_names_out()
    numbers = lda.top_words(5)
    assert lda.top_words(5, words=words) == [[words[i] for i in topic] for topic in numbers]
    assert lda.top_words(5, words=pipeline[0].vocabulary_) == lda.top_words(5, words=words)
    with pytest.raises(ValueError, match="there are 2 words, the model has 10"):
        lda.top_words(5, words=["cat", "dog"])


def test_a_vectorizer_of_strings_cannot_read_lists_of_words():
    texts = ["stars and planets", "goals and teams"] * 5
    lda = DPSVILDA(n_components=2, max_iter=1, vectorizer=CountVectorizer()).fit(texts)
    for refused in (lda.transform, lda.score, DPSVILDA(vectorizer=CountVectorizer()).fit):
        with pytest.raises(TypeError, match=r"vectorizer cannot read texts such as \['stars'"):
            refused([["stars", "and", "teams"]])
