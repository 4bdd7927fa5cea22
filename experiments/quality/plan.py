"""All runs of the experiment: one seed after the other, small corpora and K = 50 first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from experiments.panel import cells, libraries
from experiments.panel.settings import OURS, Settings
from experiments.quality.documents import SPLIT

TOPICS = (10, 20, 30, 40, 50)  # BERTopic's, three runs each
TOPICS_OF_SPLIT = 50  # TopMost's
STABLE_TOPICS = 50  # fitted with five seeds
SEEDS, STABLE_SEEDS = (0, 1, 2), (0, 1, 2, 3, 4)
USUAL = ("defaults", "fixed-pair", "sklearn", "gensim", "tomotopy", "tomotopy-fixed-pair")


class Wanted(NamedTuple):
    """What was asked for on the command line."""

    entrants: Mapping[str, tuple[str, dict]]  # name -> library, options
    threads: int
    seconds: float


def runs(wanted: Wanted, corpora: Mapping[str, dict]) -> list[Settings]:
    """Return each run once, so that every entrant has as many seeds when time is up.

    Parameters
    ----------
    wanted : Wanted
    corpora : mapping from name to description
        As :func:`experiments.quality.documents.prepare` makes it, with the ``bytes`` of the file.
    """
    planned = []
    for seed in STABLE_SEEDS:
        for name in sorted(corpora, key=lambda name: corpora[name]["tokens"]):
            for topics in _topics(name, seed):
                for entrant, (library, options) in wanted.entrants.items():
                    planned.append(
                        Settings(
                            name, corpora[name]["bytes"], corpora[name]["documents"], topics,
                            entrant, library, options, passes(library), wanted.threads,
                            wanted.seconds, seed,
                        )
                    )  # fmt: skip
    return planned


def passes(library: str) -> int:
    """Ours as in the panel's table; a peer that can be watched has until its time is up."""
    if library == OURS:
        return cells.READ_AT
    if libraries.is_watched(library):
        return cells.PEER_PASSES
    return libraries.get(library).PASSES[-1]


def _topics(name, seed):
    if name.endswith(SPLIT):
        return [TOPICS_OF_SPLIT] if seed in SEEDS else []
    others = [topics for topics in TOPICS if topics != STABLE_TOPICS] if seed in SEEDS else []
    return [STABLE_TOPICS, *others]
