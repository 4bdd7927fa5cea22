"""A worker rank's loop, with no MPI: signals between messages."""

from types import SimpleNamespace

import pytest

from dpsvi.cluster.ranks import follow


def test_a_signal_is_delivered_although_the_next_message_is_always_there():
    """With `prefetch` a worker that is busy never waits for one."""
    turns, message = [], SimpleNamespace(header={"kind": "grant"})

    def turn():
        turns.append(len(turns))
        yield 0, message

    def check():
        assert len(turns) < 100
        if len(turns) == 3:
            raise KeyboardInterrupt

    worker = SimpleNamespace(
        take=lambda rank, message: None, turn=turn, stop=lambda: None
    )
    channel = SimpleNamespace(
        send=lambda rank, message: None, receive=lambda on_wait: (0, message), look=lambda: []
    )
    with pytest.raises(KeyboardInterrupt):
        follow._serve(worker, channel, check, 1)
    assert len(turns) == 3
