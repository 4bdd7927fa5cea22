"""What the ranks of a fit ask each other."""

import pytest

from dpsvi.errors import DroppedError


def test_a_dropped_rank_asks_nobody(monkeypatch):
    """It would wait for ever; and its end must not be that of the others."""
    from dpsvi.cluster.ranks import world

    here = world.World(2, 3, left=True)
    monkeypatch.setattr(world, "world", lambda: here)
    with pytest.raises(DroppedError) as caught:
        world.agree(3)
    assert isinstance(caught.value, SystemExit) and caught.value.code == 0
