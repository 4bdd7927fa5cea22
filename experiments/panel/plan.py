"""All runs of a panel, the most important first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from experiments.panel import cells, libraries
from experiments.panel.settings import OURS, Settings

GRID_SECONDS = 300.0  # a fit of the grid may take at least
GRID_PASSES = 100
GRID_MEAN_FIELD_PASSES = (10, 100)


class Wanted(NamedTuple):
    """What was asked for on the command line."""

    topics: Sequence[int]
    entrants: Mapping[str, tuple[str, dict]]  # name -> library, options
    passes: Sequence[int]
    documents: int
    threads: int
    seconds: float
    seeds: Sequence[int] = (0,)  # of our fits; a peer has one


def runs(wanted: Wanted, corpora: Mapping[str, dict]) -> list[Settings]:
    """Return each run once, in the order in which they are to be done.

    First come the fits of :data:`cells.MUST_REACH` with all their seeds, then what each corpus is
    drawn with, then all other cells, small numbers of topics and small corpora first.

    Parameters
    ----------
    wanted : Wanted
    corpora : mapping from name to description
        As :func:`experiments.panel.corpora.prepare` makes it, with the ``bytes`` of the file.
    """
    planned = [*_must_reach(wanted, corpora)]
    by_size = sorted(corpora, key=lambda name: corpora[name]["tokens"])
    main = [(name, cells.main_topics(corpora[name])) for name in by_size]
    rest = [(name, topics) for topics in sorted(wanted.topics) for name in by_size]
    for name, topics in [*main, *rest]:
        if topics in wanted.topics:
            planned += _cell(wanted, name, corpora[name], topics)
    once = {}
    for settings in planned:
        once.setdefault(settings.key(), settings)  # the first has the most time
    return list(once.values())


def grid(wanted: Wanted, corpora: Mapping[str, dict]) -> list[Settings]:
    """Return the fits that show how far the defaults are from the best of fixed settings.

    Every corpus at the number of topics at which it is drawn, after as many of `GRID_PASSES` and
    `GRID_MEAN_FIELD_PASSES` as are wanted.
    """
    seconds = max(wanted.seconds, GRID_SECONDS)
    planned = []
    for name in sorted(corpora, key=lambda name: corpora[name]["tokens"]):
        topics = cells.main_topics(corpora[name])
        for entrant, options in grid_entrants().items():
            mean_field = options.get("local_step") == "mean_field"
            for passes in GRID_MEAN_FIELD_PASSES if mean_field else (GRID_PASSES,):
                if passes not in wanted.passes:
                    continue
                planned.append(
                    Settings(
                        name, corpora[name]["bytes"], wanted.documents, topics, entrant, OURS,
                        options, passes, wanted.threads, seconds, seed=0,
                    )
                )  # fmt: skip
    return planned


def grid_entrants() -> dict[str, dict]:
    """The default of each local step, and the grid around it; see `libraries.with_dpsvi`."""
    ours = libraries.get(OURS)
    return {name: ours.ENTRANTS[name] for name in ("defaults", "mean-field")} | ours.grid()


def _must_reach(wanted, corpora) -> Iterable[Settings]:
    for name, topics in cells.MUST_REACH:
        if name not in corpora or topics not in wanted.topics:
            continue
        for seed in cells.SEEDS:
            for entrant in cells.MUST_REACH_ENTRANTS:
                if entrant in wanted.entrants and cells.READ_AT in wanted.passes:
                    yield _one(
                        wanted._replace(seconds=max(wanted.seconds, cells.MUST_REACH_SECONDS)),
                        name, corpora[name], topics, entrant, cells.READ_AT, seed,
                    )  # fmt: skip


def _cell(wanted, name, corpus, topics) -> Iterable[Settings]:
    for entrant, (library, _) in wanted.entrants.items():
        for seed in wanted.seeds if library == OURS else (0,):
            for passes in _passes(wanted, library):
                yield _one(wanted, name, corpus, topics, entrant, passes, seed)


def _passes(wanted, library) -> Sequence[int]:
    if library == OURS:
        return sorted(wanted.passes)
    if libraries.is_watched(library):
        return [cells.PEER_PASSES]
    return libraries.get(library).PASSES


def _one(wanted, name, corpus, topics, entrant, passes, seed):
    library, options = wanted.entrants[entrant]
    return Settings(
        name, corpus["bytes"], wanted.documents, topics, entrant, library, options, passes,
        wanted.threads, wanted.seconds, seed,
    )  # fmt: skip
