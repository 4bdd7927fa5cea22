"""What an agent has played and not learned from yet: a queue of steps, as in GA3C.

There all agents share one network.  Predictors choose their moves by the parameters as they are at
each move; what was played waits in a queue, from which trainers learn by the parameters as they are
then.  So parameters that learn are newer than those that played, the policy lag, and nothing
corrects for it.  Here an agent plays, puts what it played into a queue of its own, of fixed length,
and learns from what has waited longest.

References
----------
M. Babaeizadeh, I. Frosio, S. Tyree, J. Clemons, J. Kautz, Reinforcement learning through
asynchronous advantage actor-critic on a GPU, ICLR 2017, arXiv:1611.06256.
"""

from __future__ import annotations

from dpsvi.kernels.jit import inline_kernel, kernel


def numbers(n_inputs: int, n_games: int, n_moves: int) -> int:
    """How many numbers one step is: observations, actions, rewards, ends; where the games stand."""
    return n_games * (n_moves * (n_inputs + 3) + n_inputs)


@kernel
def exchange(place, x, actions, rewards, ends, stand):
    """Put a step into its place in the queue, and get the one that was there.

    Parameters
    ----------
    place : float64 array
        As long as :func:`numbers` says.
    x, actions, rewards, ends, stand : float32 arrays
        The step; `stand` are the observations where the games stand after it.
    """
    at = _swap(place, 0, x)
    at = _swap(place, at, actions)
    at = _swap(place, at, rewards)
    at = _swap(place, at, ends)
    _swap(place, at, stand)


@inline_kernel
def _swap(place, at, array):
    """Exchange an array with what is at a place; returns what comes after it."""
    for k in range(array.shape[0]):
        there = place[at + k]
        place[at + k] = array[k]
        array[k] = there
    return at + array.shape[0]
