"""Topics by their words: the likeliest ones, and how well these go together."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpsvi.errors import check_flag, check_number


class TopicWords:
    """The part of a topic model's estimator that shows its topics to people."""

    def top_words(self, n_words: int = 10) -> list[list[Any]]:
        """The likeliest words of every topic; word numbers where no vocabulary is known.

        Parameters
        ----------
        n_words : int, >= 1
            How many; all, if there are no more.

        Returns
        -------
        list of n_components lists
            Likeliest first.

        Examples
        --------
        >>> import pandas as pd
        >>> from dpsvi import DPSVILDA
        >>> X = pd.DataFrame({"sun": [5, 0, 4], "rain": [0, 6, 0]})
        >>> DPSVILDA(n_components=1, random_state=0).fit(X).top_words(2)
        [['sun', 'rain']]
        """
        check_is_fitted(self, "_state")
        check_number("n_words", n_words, low=1, integer=True)
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n_words]
        words = self.vocabulary_
        return [[int(w) if words is None else words[w] for w in row] for row in order]

    def to_gensim(self) -> Any:
        """The same model as a ``gensim.models.LdaModel``; see `dpsvi.interop.gensim`."""
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
        n_words : int, >= 1
            Top words of each topic.
        average : bool, default=True
            False: one number for each topic, which shows those that mix subjects.

        Returns
        -------
        float or ndarray of shape (n_components,)
        """
        check_flag("average", average)
        check_is_fitted(self, "_state")
        from dpsvi.interop.gensim import coherence

        topics = coherence(self, self._read(X, reset=False), measure=measure, n_words=n_words)
        return float(np.mean(topics)) if average else topics
