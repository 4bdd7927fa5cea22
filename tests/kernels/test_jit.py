"""How kernels are compiled."""

import gc

import numba
import pytest
from numba.core import event
from numba.core.errors import TypingError

from dpsvi.kernels import jit  # noqa: F401  its import registers what is tested


class Seen(event.Listener):
    """Whether garbage is collected at each event."""

    def __init__(self):
        self.enabled = []

    def on_start(self, event):
        self.enabled.append(gc.isenabled())

    on_end = on_start


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_numba_compiles(enabled):
    """Not in functions that are called either; afterwards all is as it was, errors or not."""

    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) + 1

    @numba.njit
    def wrong(x):
        return x.nothing

    (gc.enable if enabled else gc.disable)()
    try:
        with event.install_listener("numba:compile", Seen()) as seen:
            assert outer(1.0) == 3.0
        assert seen.enabled[:3] == [False, False, False]
        assert gc.isenabled() == enabled
        with pytest.raises(TypingError):
            wrong(1.0)
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
