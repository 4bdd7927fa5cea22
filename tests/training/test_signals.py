"""Signals that wait for the end of a merge."""

import pytest


def test_signals_wait_for_the_end_of_a_merge():
    import signal

    from dpsvi.training.signals import Deferred

    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append("handled"))
    try:
        with Deferred() as signals:
            signal.raise_signal(signal.SIGUSR1)
            assert not seen
            signals.deliver()
            assert seen == ["handled"]
            signal.raise_signal(signal.SIGUSR1)
            assert len(seen) == 2, "the second is not kept"
        assert len(seen) == 2, "and handled once"
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_no_signal_breaks_into_a_merge_and_the_second_is_heard_at_once():
    """One that ends the process does; what another one raises waits like the first."""
    import signal

    from dpsvi.training.signals import Deferred

    seen = []

    def handler(number, frame):
        seen.append(number)
        raise KeyboardInterrupt(len(seen))

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with Deferred() as signals:
            signal.raise_signal(signal.SIGUSR1)
            assert not seen
            signal.raise_signal(signal.SIGUSR1)
            assert len(seen) == 2, "both handlers were called, and nothing was raised"
            with pytest.raises(KeyboardInterrupt, match="2"):
                signals.deliver()
            signal.raise_signal(signal.SIGUSR1)
            assert len(seen) == 3, "after the first one they do not wait"
            with pytest.raises(KeyboardInterrupt, match="3"):
                signals.deliver()
        assert len(seen) == 3
    finally:
        signal.signal(signal.SIGUSR1, before)
