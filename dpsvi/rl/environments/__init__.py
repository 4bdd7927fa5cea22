"""Environments, compiled: classic control and the MinAtar games, one file each.

An environment is a module, or any object, with

``SHAPE``
    tuple of int, the shape of an observation.
``N_ACTIONS``
    int; actions are 0 .. N_ACTIONS - 1.
``N_STATE``
    int; so many float64 numbers hold the whole state.
``LIMIT``
    int; the caller cuts an episode after so many moves, 0: never.
``reset(state, random)``
    write the start of an episode into `state`, a float64 array of shape (N_STATE,).
``step(state, action, random)``
    make one move in place; return (reward: float64, ended: bool), where ended means that the
    episode is over by the rules, not that it is cut.  After an end only `reset` may follow.
``observe(state, observation)``
    write all numbers of `observation`, a float32 array of prod(SHAPE) numbers in C order.
``draw(state)``
    Python, not compiled: a list of shapes for a picture, in a unit square whose y goes down:
    ("rect", x, y, width, height, colour), ("line", x1, y1, x2, y2, width, colour) and
    ("circle", x, y, radius, colour).

`reset`, `step` and `observe` are compiled by `dpsvi.kernels.jit.inline_kernel` (or `kernel`), since
others that are compiled call them; they allocate nothing.  `random` is a stream of
:mod:`dpsvi.rl.generator`, the only place that chance comes from: the state and the stream make
an episode.

It may have `HIDDEN` and `CONVOLUTION`, the network of an agent that was told nothing else, as the
parameters of :class:`dpsvi.rl.ActorCritic` have them.

An environment is found by its name.  Installed packages may offer more
(:mod:`dpsvi.files.plugins`); ``"gymnasium:ID"`` is any of gymnasium's and ``"atari:NAME"`` any of
ale-py's (:mod:`dpsvi.rl.environments._gymnasium`, `._atari`).
"""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType

from dpsvi.files import plugins

_NEEDED = ("SHAPE", "N_ACTIONS", "N_STATE", "LIMIT", "reset", "step", "observe")


def names() -> list[str]:
    """Names of the environments, in alphabetical order."""
    return plugins.names(__name__)


def get(name: str):
    """The module of environment `name`; raises ValueError naming the known ones."""
    family, _, entry = name.partition(":")
    if family == "gymnasium":
        from dpsvi.rl.environments import _gymnasium

        return _gymnasium.known(entry)
    if family == "atari":
        from dpsvi.rl.environments import _atari

        return _atari.known(entry)
    try:
        return plugins.load(__name__, name, *_NEEDED)
    except ValueError as error:
        raise ValueError(f"{error}; or 'gymnasium:ID', or 'atari:NAME'") from None


def opened(environment, learns: bool = False):
    """A context whose value plays `environment`: itself, or games that are closed at its end.

    `learns`: to learn from them, not to see how good a policy is.
    """
    if hasattr(environment, "opened"):
        return environment.opened(learns)
    return nullcontext(environment)


def is_compiled(playing) -> bool:
    """Whether numba compiles the moves of what plays; others run in the interpreter."""
    return hasattr(playing.step, "py_func")


def name_of(environment) -> str:
    """What an environment is called in messages."""
    name = getattr(environment, "__name__", type(environment).__name__)
    return name.rpartition(".")[2] if isinstance(environment, ModuleType) else name
