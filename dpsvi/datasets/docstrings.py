"""The docstrings of dpsvi itself: short texts that every installation holds, for first tries."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from dpsvi.corpus import Corpus
from dpsvi.datasets.words import count_words

_PACKAGE = Path(__file__).parents[1]
_EXAMPLE = re.compile(r"^ *(>>>|\.\.\.).*$", re.MULTILINE)
_LEAST = 20  # words of a text


def load_docstrings_texts() -> list[str]:
    """Load the docstrings of dpsvi's modules, classes and functions, one text each.

    Those of fewer than 20 words are left out, and so are lines of code.  They change from version
    to version: a corpus to try things with, not to compare them.

    Examples
    --------
    >>> texts = load_docstrings_texts()
    >>> len(texts) > 300
    True
    """
    found = []
    for path in sorted(_PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = _EXAMPLE.sub("", ast.get_docstring(node) or "").strip()
                if len(text.split()) >= _LEAST:
                    found.append(text)
    return found


def load_docstrings(n_min: int = 5) -> Corpus:
    """Count the words of the texts of :func:`load_docstrings_texts`.

    Words are runs of three or more letters, in lower case, that are not in scikit-learn's list
    of English stop words.

    Parameters
    ----------
    n_min : int, at least 1
        Leave out words found in fewer texts; those found in over a quarter of them are always
        left out.

    Examples
    --------
    >>> corpus = load_docstrings()
    >>> "topics" in corpus.vocabulary
    True
    """
    return count_words(load_docstrings_texts(), n_min)
