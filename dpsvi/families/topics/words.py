"""Topics by their words: the likeliest ones, and how well these go together."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpsvi.corpus import Corpus
from dpsvi.corpus.texts import peek, texts_of
from dpsvi.corpus.vocabulary import as_vocabulary
from dpsvi.errors import check_flag, check_number


class TopicWords:
    """The part of a topic model's estimator that shows its topics to people."""

    def top_words(self, n_words: int = 10, words: Any = None) -> list[list[Any]]:
        """The likeliest words of every topic; word numbers where no vocabulary is known.

        Parameters
        ----------
        n_words : int, >= 1
            How many; all, if there are no more.
        words : sequence of str, path, mapping or None
            The words in order of their numbers, for a model that was fitted to a matrix: behind a
            vectorizer in a pipeline, its ``get_feature_names_out()``.  None: those of the fit.

        Returns
        -------
        list of n_components lists
            Likeliest first.

        Raises
        ------
        ValueError
            There are more or fewer `words` than the model has.

        Examples
        --------
        >>> import pandas as pd
        >>> from dpsvi import DPSVILDA
        >>> X = pd.DataFrame({"sun": [5, 0, 4], "rain": [0, 6, 0]})
        >>> DPSVILDA(n_components=1, random_state=0).fit(X).top_words(2)
        [['sun', 'rain']]

        Behind a vectorizer the model sees numbers alone, and the vectorizer knows the words:

        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> texts = ["sun sun sun rain rain wind", "rain sun sun"]
        >>> pipeline = make_pipeline(CountVectorizer(), DPSVILDA(n_components=1)).fit(texts)
        >>> pipeline[-1].top_words(2, words=pipeline[0].get_feature_names_out())
        [['sun', 'rain']]
        """
        check_is_fitted(self, "_state")
        check_number("n_words", n_words, low=1, integer=True)
        names = self._names(words)
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n_words]
        return [[int(w) if names is None else names[w] for w in row] for row in order]

    def _names(self, words):
        """The given `words`, else those of the fit; None where none are known."""
        names = self.vocabulary_ if words is None else as_vocabulary(words)
        if names is not None and len(names) != self.n_features_in_:
            raise ValueError(f"there are {len(names)} words, the model has {self.n_features_in_}")
        return names

    def report(self, path: str | PathLike[str], X: Any = None, *, words: Any = None) -> Path:
        """Write a page, one HTML file, that shows the topics in a browser.

        It has the date, the corpus, the settings and the course of the fit; a map of the topics;
        the words of each topic, which the reader can rank by their relevance; a search; and with X
        the documents that are most about each topic.

        Parameters
        ----------
        path : path
            The file, such as ``"topics.html"``.
        X : corpus or None
            Documents to choose examples from, as in `fit`: those of the fit, or others.  Texts are
            quoted; of counts the most frequent words are shown.
        words : sequence of str, path, mapping or None
            As in :meth:`top_words`.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        ValueError
            X or `words` do not fit the model.
        OSError
            The file cannot be written; one that was there is kept.

        Examples
        --------
        >>> from dpsvi import DPSVILDA
        >>> texts = ["a cat and a dog", "one two three", "cat, dog, cat", "two three two"] * 5
        >>> lda = DPSVILDA(n_components=2, random_state=0).fit(texts)
        >>> lda.report("topics.html", texts).name
        'topics.html'
        """
        check_is_fitted(self, "_state")
        from dpsvi.families.topics.page import names_of, run_of
        from dpsvi.report.page import write_page

        names = self._names(words) or names_of(self)
        texts = corpus = None
        if X is not None:
            X = peek(X) if isinstance(X, Iterator) else X
            texts = None if isinstance(X, Corpus) else texts_of(X)
            corpus = Corpus(*self._read(X, reset=False), self.n_features_in_)
        return write_page(run_of(self, Path(path).stem, corpus, texts, names), path)

    def to_gensim(self) -> Any:
        """The same model as a ``gensim.models.LdaModel``; see `dpsvi.interop.gensim`.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVILDA
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two subjects
        >>> lda = DPSVILDA(n_components=2, random_state=0).fit(X)
        >>> lda.to_gensim().num_topics
        2
        """
        check_is_fitted(self, "_state")
        from dpsvi.interop.gensim import to_gensim

        return to_gensim(self)

    def coherence(
        self, X: Any, measure: str = "u_mass", n_words: int = 10, *, average: bool = True
    ) -> float | np.ndarray:
        """Topic coherence in the documents X, by gensim's CoherenceModel; higher is better.

        Parameters
        ----------
        X : corpus
        measure : {"u_mass", "c_v", "c_uci", "c_npmi"}
        n_words : int, >= 2
            Top words of each topic.
        average : bool, default=True
            False: one number for each topic, which shows those that mix subjects.

        Returns
        -------
        float or ndarray of shape (n_components,)

        Raises
        ------
        ValueError
            There is no such measure, or there are no two words.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVILDA
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two subjects
        >>> lda = DPSVILDA(n_components=2, random_state=0).fit(X)
        >>> lda.coherence(X, n_words=3, average=False).shape
        (2,)
        """
        check_flag("average", average)
        check_is_fitted(self, "_state")
        from dpsvi.interop.gensim import coherence

        topics = coherence(self, self._read(X, reset=False), measure=measure, n_words=n_words)
        return float(np.mean(topics)) if average else topics
