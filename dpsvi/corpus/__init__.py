"""Bags of words in compressed rows: one container, and the ways into it.

``load_corpus`` reads files, ``as_corpus`` takes whatever is in memory already; both give a
`Corpus`, the only form in which the rest of the toolkit sees data.
"""

from dpsvi.corpus.coerce import as_corpus
from dpsvi.corpus.container import Corpus
from dpsvi.corpus.load import load_corpus

__all__ = ["Corpus", "as_corpus", "load_corpus"]
