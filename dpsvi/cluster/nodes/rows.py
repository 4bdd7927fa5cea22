"""What a worker gets to read: rows of the parameters, in a message or where they lie."""

from __future__ import annotations

import numpy as np

from dpsvi.base import Reading, Star
from dpsvi.cluster.nodes import kernels
from dpsvi.cluster.nodes.parameters import MasterParameters
from dpsvi.cluster.transports import messages
from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.cluster.transports.window import Window
from dpsvi.training.job import Job


class RowSender:
    """Makes the messages by which workers read rows.

    Parameters
    ----------
    job : Job
    strategy : dpsvi.base.Star
        It says whose parameters a worker reads.
    parameters : MasterParameters
    pool : Pool
        For the messages.
    window : Window or None
        Where some workers can read the rows of the job's state.
    """

    def __init__(
        self, job: Job, strategy: Star, parameters: MasterParameters, pool: Pool,
        window: Window | None,
    ):  # fmt: skip
        self._job, self._strategy, self._parameters = job, strategy, parameters
        self._pool, self._window = pool, window
        self._kept: tuple | None = None  # folds so far, rows that the only worker has since

    def send(
        self, worker: int, touched: np.ndarray, header: dict, alone: bool
    ) -> tuple[Message, int, Reading]:
        """Let `worker` read the rows `touched`.

        Parameters
        ----------
        worker : int
        touched : int32 array, (n,)
        header : dict
            What else the message says.
        alone : bool
            Nobody else changes the rows: those that it has it need not get again.

        Returns
        -------
        Message
        int
            Bytes that the worker reads.
        Reading
        """
        parameters = self._strategy.reads(self._parameters, worker)
        state = parameters.state
        model, sent, arrays = state.model, touched, {}
        header = {**header, "scale": parameters.scale, "unit": parameters.unit, "alone": alone}
        if alone:
            sent = arrays["sent"] = self._missing(touched)
        n_bytes = len(sent) * model.sent_columns * model.real.itemsize
        own = parameters is not self._parameters  # the window shows the master's
        seen = self._window is not None and worker in self._window and not own
        # With prefetch it would read only after steps, for which all others would have to wait.
        seen = seen and n_bytes >= messages.SHARED_FROM and not self._job.cluster.prefetch
        header["window"] = self._window.begin(worker) if seen else None
        if not seen:
            arrays["base"] = (len(sent), model.sent_columns), model.real
        message = self._pool.message(header, totals=parameters.totals, hyper=model.hyper, **arrays)
        reading = parameters.read(touched)._replace(version=self._parameters.version)
        if seen:
            return message, message.n_bytes + n_bytes, reading
        kernels.gather(state.shared.rows, sent, message.arrays["base"])
        return message, message.n_bytes, reading

    def _missing(self, touched) -> np.ndarray:
        """Those of the rows that the only worker does not have as they are; it will have them."""
        n_folds = self._parameters.n_folds
        if self._kept is None or self._kept[0] != n_folds:
            self._kept = n_folds, np.zeros(self._job.state.model.shape[0], bool)
        kept = self._kept[1]
        missing = touched[~kept[touched]]
        kept[touched] = True
        return missing
