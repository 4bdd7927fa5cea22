"""Compiled functions in which an environment plays.

A template calls `reset`, `step`, `observe` and `cuts` of this module; :func:`of` makes a function
of it in which these are an environment's.  So numba compiles the whole loop, game and network, as
one, and keeps it on disk.  Where the environment is not compiled the loop is not, either: it runs
in the interpreter, and what it calls of the network is compiled.
"""

from __future__ import annotations

import hashlib
import inspect
import types
import uuid
from functools import cache

import numba

from dpsvi.kernels.jit import FLAGS, inline_kernel
from dpsvi.rl.environments import is_compiled


def reset(state, random):
    """Stands for an environment's."""
    raise NotImplementedError


step = observe = reset


@inline_kernel
def cuts(state):
    """Whether an environment cuts an episode itself; one that is compiled leaves it to LIMIT."""
    return False


def of(template, environment):
    """A template with the functions of an environment.

    The name of the result tells numba's cache on disk apart what was compiled for other
    environments, or for other versions of this one.
    """
    functions = environment.reset, environment.step, environment.observe
    if is_compiled(environment):
        return _made(template, *functions)
    own = dict(zip(("reset", "step", "observe"), functions, strict=True), cuts=environment.cuts)
    return types.FunctionType(template.__code__, {**template.__globals__, **own})


def as_fast(template, environment):
    """The same, compiled for whatever it is called with, if the environment is."""
    made = of(template, environment)
    return _jitted(made) if is_compiled(environment) else made


_jitted = cache(numba.njit(**FLAGS))


@cache
def _made(template, reset, step, observe):
    own = {"reset": reset, "step": step, "observe": observe}
    sources = [_source(f.py_func) for f in own.values()]
    names = [f.py_func.__qualname__ for f in own.values()]
    version = hashlib.sha256("".join(sources + names).encode()).hexdigest()[:16]
    made = types.FunctionType(template.__code__, {**template.__globals__, **own})
    made.__name__ = template.__name__
    made.__qualname__ = f"{template.__name__}_{version}"
    made.__module__ = template.__module__
    return made


def _source(function) -> str:
    """What tells apart what is compiled: the text of the module that a function is in.

    What else it is compiled from is not seen: modules that it imports, and values that are set
    while the program runs.
    """
    if function.__closure__:  # as many functions as there are values in it
        return uuid.uuid4().hex
    try:
        return inspect.getsource(inspect.getmodule(function))
    except (OSError, TypeError):  # typed in: it may be another one next time
        return uuid.uuid4().hex
