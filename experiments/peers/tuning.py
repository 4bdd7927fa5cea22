"""Eta for each competitor: the one that it does best with on the validation documents.

Eta moves a perplexity by more than the choice of algorithm does, and variational, collapsed and
sampling algorithms each want another one (Asuncion et al. 2009): one value for all would decide
the comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

GRID = (0.003, 0.01, 0.03, 0.1)


def best_etas(records: Sequence[dict]) -> dict[str, dict]:
    """Choose eta for each competitor from its tuning runs.

    Parameters
    ----------
    records : sequence of dict
        Records of :func:`experiments.peers.run_one.run` with different ``eta``.

    Returns
    -------
    dict
        competitor -> ``eta`` (lowest last perplexity), ``perplexity`` (eta as text -> last
        perplexity), ``at_edge`` (whether no larger or no smaller eta was tried).
    """
    tried: dict[str, dict[float, float]] = {}
    for record in records:
        last = record["points"][-1]["perplexity"]
        tried.setdefault(record["competitor"], {})[record["eta"]] = last
    chosen = {}
    for competitor, perplexity in tried.items():
        eta = min(perplexity, key=perplexity.get)
        chosen[competitor] = {
            "eta": eta,
            "perplexity": {f"{e:g}": p for e, p in sorted(perplexity.items())},
            "at_edge": eta in (min(perplexity), max(perplexity)),
        }
    return chosen
