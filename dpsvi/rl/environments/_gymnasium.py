"""Environments of gymnasium, by the name ``"gymnasium:CartPole-v1"``; they are not compiled.

What follows the first colon is what ``gymnasium.make`` takes: an id, or ``module:id``, which
imports the module that registers it.  Actions must be discrete; observations that are no arrays
are flattened as ``gymnasium.spaces.flatten`` does it, a choice of n to n numbers.  Where a wrapper
or the environment itself cuts an episode (``truncated``), it is cut here.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from dpsvi.rl.environments._interpreted import Interpreted


class Gymnasium(Interpreted):
    """Environments of gymnasium of one name.

    Parameters
    ----------
    name : str
        What ``gymnasium.make`` takes.

    Raises
    ------
    ImportError
        gymnasium is not installed.
    ValueError
        There is no such environment, or its actions or observations are none that can be learned.
    """

    def __init__(self, name: str):
        self._name = name
        self.__name__ = f"gymnasium:{name}"
        environment = self._make()
        actions, seen = environment.action_space, environment.observation_space
        environment.close()
        if type(actions).__name__ != "Discrete":
            raise ValueError(
                f"the action_space of environment {self.__name__} must be Discrete, got {actions}"
            )
        self.SHAPE, self.N_ACTIONS = tuple(seen.shape), int(actions.n)
        self.first_action = int(actions.start)

    def start(self, learns: bool) -> _Game:
        """A new game, the same to learn from it and to see how good a policy is."""
        return _Game(self, self._make())

    def _make(self):
        """A new environment of gymnasium, whose observations are arrays."""
        try:
            import gymnasium
        except ImportError as error:
            raise ImportError(
                f"environment {self.__name__} needs gymnasium: pip install 'dpsvi[gymnasium]'"
            ) from error
        try:
            environment = gymnasium.make(self._name)
        except (gymnasium.error.Error, ImportError) as error:
            raise ValueError(f"environment {self.__name__} cannot be made: {error}") from error
        seen = environment.observation_space
        if isinstance(seen, gymnasium.spaces.Box) and seen.shape:
            return environment
        if not seen.is_np_flattenable:
            raise ValueError(
                f"the observation_space of environment {self.__name__} must be of a fixed size, "
                f"got {seen}"
            )
        return gymnasium.wrappers.FlattenObservation(environment)


class _Game:
    def __init__(self, kind: Gymnasium, environment):
        self._kind, self._environment = kind, environment
        self.close = environment.close

    def reset(self, seed: int) -> np.ndarray:
        return self._as_array(self._environment.reset(seed=seed)[0])

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        seen, reward, ended, cut, _ = self._environment.step(self._kind.first_action + action)
        return self._as_array(seen), float(reward), bool(ended), bool(cut)

    def _as_array(self, seen) -> np.ndarray:
        """All numbers of an observation; raises ValueError if its shape is another one."""
        found = np.asarray(seen, np.float32)
        if found.shape != self._kind.SHAPE:
            raise ValueError(
                f"environment {self._kind.__name__} gave an observation of shape {found.shape}, "
                f"its observation_space says {self._kind.SHAPE}"
            )
        return found.ravel()


@cache
def known(name: str) -> Gymnasium:
    """The environment that ``gymnasium.make`` makes of `name`; it is asked once."""
    return Gymnasium(name)
