"""What one run is: everything that its outcome depends on, the machine and the code left aside."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

OURS = "dpsvi"


@dataclass(frozen=True)
class Settings:
    """One run of one entrant.

    Parameters
    ----------
    corpus : str
        NAME of ``docword.NAME.txt``.
    bytes : int
        Size of its file: another file of the same name is another corpus.
    documents : int
        Training documents, at most.
    topics : int
    entrant : str
        Name in the results.
    library : str
        Module in :mod:`experiments.panel.libraries`.
    options : dict
        What this library alone understands.
    passes : int
        Of our fit, whose step sizes depend on it, and of a peer that cannot be watched; of another
        peer, at most.
    threads : int
    seconds : float
        Of training, at most.
    seed : int
    """

    corpus: str
    bytes: int
    documents: int
    topics: int
    entrant: str
    library: str
    options: dict
    passes: int
    threads: int
    seconds: float
    seed: int

    def key(self) -> str:
        """Name of the run; the seconds that it may take are no part of it."""
        values = dataclasses.asdict(self)
        del values["seconds"]
        return json.dumps(values, sort_keys=True)

    def __str__(self) -> str:
        return (
            f"{self.corpus}, K = {self.topics}, {self.entrant}, {self.passes} passes, "
            f"seed {self.seed}"
        )
