"""A sample of the matrix of faults: no strategy hangs, or loses the steps of a survivor."""

import json

import pytest

from dpsvi import strategies
from dpsvi.cluster.nodes.peer import Peer
from experiments import faults
from experiments.faults import N_ITEMS, N_NODES, N_PASSES, Fault, HangError, main, strike

ALL = N_ITEMS * N_PASSES


@pytest.mark.parametrize("strategy", strategies.names())
def test_twenty_faults_at_random_moments(strategy):
    star = strategies.get(strategy).topology == "star"
    assert strike(strategy, None) == (False, ALL, True)
    n_struck = 0
    for fault in faults.faults(seed=7, n_faults=20):
        outcome = strike(strategy, fault)
        n_struck += outcome.struck
        assert outcome.valid, fault
        if star or fault.kind in ("slow", "late") or not outcome.struck:
            assert outcome.n_items == ALL, fault
        else:  # what a peer had done, and what it had left to do, are lost with it
            assert outcome.n_items == ALL * (N_NODES - 1) // N_NODES, fault
    assert n_struck > 15


def test_peers_wait_for_one_that_reads_nothing_until_it_is_lost(monkeypatch):
    asked = []

    def ahead(peer, unread):
        asked.append(look(peer, unread))
        return asked[-1]

    look = Peer.ahead
    monkeypatch.setattr(Peer, "ahead", ahead)
    outcome = strike("gala", Fault("frozen", "before", 1, 2))
    assert outcome == (True, ALL * (N_NODES - 1) // N_NODES, True)
    assert any(asked), "somebody waits"


def test_a_fit_that_hangs_is_found_out(monkeypatch):
    monkeypatch.setattr(faults, "_MOST_TURNS", 10)
    with pytest.raises(HangError, match="no end after 11 turns"):
        strike("decay", Fault("slow", "before", 1, 0))


def test_from_end_to_end(tmp_path, capsys):
    main(["--only", "decay,gala", "--faults", "9", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "faults.json").read_text())["rows"]
    assert [len(rows) for rows in found.values()] == [9, 9]
    assert "| gala | 9 | 9 | 75 % |" in (tmp_path / "faults.md").read_text()
