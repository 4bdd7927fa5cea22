"""One split of a corpus for the experiments that need no validation documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpsvi.corpus import Corpus, load_corpus


def load_parts(path, documents: int | None, sizes: tuple[int, ...]) -> tuple[Corpus, ...]:
    """Training documents, at most `documents`, and sets held out: of these sizes or a tenth.

    The split is seeded with 0, and what is held out does not depend on `documents`.  `path` may
    be a name that `dpsvi.datasets` knows, too.
    """
    corpus = _corpus(path)
    order = np.random.default_rng(0).permutation(corpus.n_items)
    ends = np.cumsum([min(size, corpus.n_items // 10) for size in sizes])
    *held_out, train = np.split(order, ends)
    return tuple(corpus.select(np.sort(part)) for part in (train[:documents], *held_out))


def load_split(path, documents: int | None) -> tuple[Corpus, Corpus]:
    """Training documents and 1,000 test documents; see :func:`load_parts`."""
    return load_parts(path, documents, (1000,))


def _corpus(path) -> Corpus:
    if not Path(path).exists():
        # Here, since experiments run with the dpsvi of revisions that do not have it yet.
        from dpsvi.datasets import BY_NAME

        if named := BY_NAME.get(Path(path).name):
            return named()
    return load_corpus(path)
