"""A number of local steps B that follows from how long workers wait (future work of the paper).

An exchange costs by the rows of the steps in between, and B steps touch fewer than B times the rows
of one: a larger B makes exchanges cheaper, and parameters staler.  So B is to be as small as the
waiting allows.
"""

from __future__ import annotations

import numpy as np

_FIRST, _MOST = 8, 1024
_FASTEST = 2.0  # times larger or smaller from one exchange to the next


class Steering:
    """Steers B of every worker towards a share of its time that it waits.

    Parameters
    ----------
    share : float, in (0, 1)
        Of waiting in waiting and computing.
    """

    def __init__(self, share: float):
        self._wanted = share / (1 - share)  # seconds of waiting for each of computing
        self._steps: dict[int, float] = {}

    def steps(self, worker: int) -> int:
        """B for the next work of `worker`."""
        return round(self._steps.get(worker, _FIRST))

    def learn(self, worker: int, waited: float, seconds: float) -> None:
        """Take an exchange into account: seconds waited for it and computed after it."""
        if seconds <= 0:
            return
        # The root: what is being measured lies one or two changes of B back.
        factor = np.sqrt((waited / seconds) / self._wanted)
        steps = self._steps.get(worker, _FIRST) * np.clip(factor, 1 / _FASTEST, _FASTEST)
        self._steps[worker] = float(np.clip(steps, 1, _MOST))
