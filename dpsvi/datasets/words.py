"""How the texts of a data set become a corpus."""

from __future__ import annotations

from dpsvi.corpus import Corpus, as_corpus


def count_words(texts: list[str], n_min: int) -> Corpus:
    """Count words: runs of three or more letters, in lower case, but for English stop words.

    Those found in fewer than `n_min` texts, or in over a quarter of them, are left out.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(
        strip_accents="unicode", stop_words="english", token_pattern=r"\b[a-z]{3,}\b",
        min_df=n_min, max_df=0.25,
    )  # fmt: skip
    counts = vectorizer.fit_transform(texts)
    return as_corpus(counts, vocabulary=vectorizer.get_feature_names_out())
