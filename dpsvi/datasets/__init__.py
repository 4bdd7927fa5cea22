"""Real corpora by name; and ``python -m dpsvi.datasets`` to fetch one, or to convert a file."""

from dpsvi.corpus import as_corpus, load_corpus
from dpsvi.datasets.docstrings import load_docstrings, load_docstrings_texts
from dpsvi.datasets.lee import load_lee, load_lee_texts
from dpsvi.datasets.nytimes import fetch_nytimes

BY_NAME = {"docstrings": load_docstrings, "lee": load_lee, "nytimes": fetch_nytimes}

__all__ = [
    "BY_NAME", "as_corpus", "fetch_nytimes", "load_corpus", "load_docstrings",
    "load_docstrings_texts", "load_lee", "load_lee_texts",
]  # fmt: skip
