"""How the parameters that a fit has come to reach all ranks: one sends them, the others adopt."""

from __future__ import annotations

from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.training.state import State


def state_message(pool: Pool, header: dict, state: State, **arrays) -> Message:
    """A message with `header`, `arrays` and all of `state`, whose scale must be 1."""
    model = state.model
    header = {**header, "step": state.step, "items": state.items}
    return pool.message(
        header, rows=state.shared.rows, hyper=model.hyper, prior=model.prior, **arrays
    )


def adopt(state: State, message: Message) -> None:
    """Make `state` what a message of :func:`state_message` holds."""
    header, arrays = message.header, message.arrays
    state.shared.rows[...] = arrays["rows"]
    state.scale, state.step, state.items = 1.0, header["step"], header["items"]
    state.model.hyper[:] = arrays["hyper"]
    state.model.prior[...] = arrays["prior"]
    state.recount()
