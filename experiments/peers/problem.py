"""What a run is given: settings, and a corpus split into training and held-out documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpsvi.corpus import Corpus

MOST_HELD_OUT = 2000  # documents in each held-out part; a tenth of a small corpus
_ARRAYS = ("offsets", "index", "value")


@dataclass(frozen=True)
class Settings:
    """One run of one competitor."""

    competitor: str  # name in the results
    library: str  # module in experiments.peers.libraries
    options: dict  # what this library alone understands
    topics: int
    alpha: float
    eta: float
    threads: int
    seconds: float  # of training
    seed: int
    held_out: str  # part that judges: "validation" or "test"


def split(corpus: Corpus, documents: int | None, seed: int) -> dict[str, Corpus]:
    """Divide the documents at random into ``train``, ``validation`` and ``test``.

    Eta is tuned on the validation documents, so that the test documents have no part in any
    choice.  The same `seed` gives the same held-out documents, however many are trained on.

    Parameters
    ----------
    corpus : Corpus
    documents : int or None
        Training documents to use; None for all that are not held out.
    seed : int

    Raises
    ------
    ValueError
        Fewer than 3 documents, or `documents` outside 1 .. the number not held out.
    """
    if corpus.n_items < 3:
        raise ValueError(f"a split needs at least 3 documents, the corpus has {corpus.n_items}")
    order = np.random.default_rng(seed).permutation(corpus.n_items)
    n = min(MOST_HELD_OUT, max(1, corpus.n_items // 10))
    test, validation, rest = order[:n], order[n : 2 * n], order[2 * n :]
    if documents is not None and not 1 <= documents <= len(rest):
        raise ValueError(f"documents must be in 1..{len(rest)}, got {documents}")
    return {
        "train": corpus.select(rest[:documents]),
        "validation": corpus.select(validation),
        "test": corpus.select(test),
    }


def save(parts: dict[str, Corpus], folder: Path) -> None:
    """Write the parts as plain arrays, so that runs need not parse text again."""
    for part, corpus in parts.items():
        for name in _ARRAYS:
            np.save(folder / f"{part}.{name}.npy", getattr(corpus, name))
        np.save(folder / f"{part}.n_features.npy", corpus.n_features)


def load(folder: Path, part: str) -> Corpus:
    """Read one part written by :func:`save`; the words are left behind, no library needs them."""
    arrays = [np.load(folder / f"{part}.{name}.npy") for name in _ARRAYS]
    return Corpus(*arrays, n_features=int(np.load(folder / f"{part}.n_features.npy")))
