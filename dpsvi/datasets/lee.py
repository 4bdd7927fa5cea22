"""300 short news texts that come with gensim.

References
----------
.. [1] M. D. Lee, B. Pincombe and M. Welsh, "An empirical evaluation of models of text document
   similarity", Proceedings of the Cognitive Science Society 27, 2005.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from dpsvi.corpus import Corpus
from dpsvi.datasets.words import count_words


def load_lee_texts() -> list[str]:
    """Load 300 short Australian news texts [1]_, as shipped with gensim's tests.

    Raises
    ------
    ImportError
        gensim, which holds the texts, is not installed.

    Examples
    --------
    >>> len(load_lee_texts())
    300
    """
    gensim = find_spec("gensim")  # found, not imported: only a text file is wanted
    if gensim is None:
        raise ImportError(
            "load_lee() reads a text file that comes with gensim: pip install gensim, or take "
            "load_docstrings() (dataset:docstrings), which needs nothing"
        )
    package = Path(gensim.submodule_search_locations[0])
    text = (package / "test" / "test_data" / "lee_background.cor").read_text("utf-8")
    return text.splitlines()


def load_lee(n_min: int = 2) -> Corpus:
    """Count the words of the 300 texts of :func:`load_lee_texts`.

    Words are runs of three or more letters, in lower case, that are not in scikit-learn's list
    of English stop words.

    Parameters
    ----------
    n_min : int, at least 1
        Leave out words found in fewer documents; those found in over a quarter of them
        ("said", "australian") are always left out, since they would head every topic.

    Raises
    ------
    ImportError
        gensim, which holds the texts, is not installed.

    Examples
    --------
    >>> corpus = load_lee()
    >>> corpus.n_items
    300
    """
    return count_words(load_lee_texts(), n_min)
