"""Games of Atari through ale-py, by the name ``"atari:pong"``; they are not compiled.

A move is four frames with one action.  What it shows is the brighter of its last two frames at each
point, since some things blink, in grey between 0 and 1, as means over the areas of 84 x 84 points
and less the mean of the picture, so that a bright background, which all pictures share, does not
outweigh what moves; behind those of the three moves before.  An episode begins with up to 30 frames
without an action, the only chance in it (`sticky` adds more), and is cut after half an hour,
108,000 frames.

To learn from a game, rewards are cut to -1, 0 or 1, and a lost life ends an episode; the next one
goes on where it stands.  Scores are those of whole games, with rewards as they are.

References
----------
M. C. Machado et al., Revisiting the Arcade Learning Environment, JAIR 61, 2018, whose settings are
others in part.  V. Mnih et al., Human-level control through deep reinforcement learning, Nature
518, 2015, for the frames.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from dpsvi.kernels.jit import kernel
from dpsvi.rl.environments._interpreted import Interpreted

SIDE, STACK = 84, 4
SKIP = 4  # frames of a move
MOST_IDLE = 30  # frames before the first move
MOST_FRAMES = 108_000  # of an episode


class Atari(Interpreted):
    """Games of one cartridge.

    Parameters
    ----------
    name : str
        As ale-py has it, for instance ``"space_invaders"``.

    Raises
    ------
    ImportError
        ale-py is not installed.
    ValueError
        It has no such game.
    """

    SHAPE = (SIDE, SIDE, STACK)
    # The network of the paper, and of Mnih et al. (2016).
    CONVOLUTION = ((16, 8, 4), (32, 4, 2))
    HIDDEN = (256,)

    def __init__(self, name: str):
        self.__name__ = f"atari:{name}"
        try:
            from ale_py import ALEInterface, LoggerMode, roms
        except ImportError as error:
            raise ImportError(
                f"environment {self.__name__} needs ale-py: pip install 'dpsvi[atari]'"
            ) from error
        names = sorted(roms.get_all_rom_ids())
        if name not in names:
            raise ValueError(f"environment atari:NAME: NAME must be one of {names}, got {name!r}")
        ALEInterface.setLoggerMode(LoggerMode.Error)  # without it, each game prints a banner
        self._interface, self._path = ALEInterface, roms.get_rom_path(name)
        self.N_ACTIONS = len(self.emulator().getMinimalActionSet())

    def emulator(self):
        """A new emulator with the cartridge."""
        ale = self._interface()
        ale.setInt("random_seed", 0)  # nothing is drawn from it
        ale.setFloat("repeat_action_probability", 0.0)
        ale.setInt("max_num_frames_per_episode", MOST_FRAMES)
        ale.loadROM(self._path)
        return ale

    def start(self, learns: bool) -> _Game:
        """A new game."""
        return _Game(self.emulator(), learns)


class _Game:
    def __init__(self, ale, learns: bool):
        self._ale, self._learns = ale, learns
        self._actions = ale.getMinimalActionSet()
        self._lives = 0
        self._frame = np.zeros((2, *ale.getScreenDims()), np.uint8)  # the last two
        self._line = np.zeros(self._frame.shape[2], np.float32)
        self._seen = np.zeros((SIDE, SIDE, STACK), np.float32)

    def reset(self, seed: int) -> np.ndarray:
        """Begin a game, or go on with one in which a life was lost."""
        if self._lives and not self._ale.game_over():
            return self._seen.reshape(-1)
        self._ale.reset_game()
        for _ in range(seed % (MOST_IDLE + 1)):
            self._ale.act(self._actions[0])
            if self._ale.game_over():
                self._ale.reset_game()
        self._lives = self._ale.lives() if self._learns else 0
        for _ in range(2):
            self._look()
        for _ in range(STACK):
            see(self._frame, self._line, self._seen)
        return self._seen.reshape(-1)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        ale, reward = self._ale, 0
        for frame in range(SKIP):
            reward += ale.act(self._actions[action])
            over = ale.game_over()
            if over or frame >= SKIP - 2:
                self._look()
            if over:
                break
        see(self._frame, self._line, self._seen)
        cut = ale.game_truncated()
        ended = over and not cut
        if self._learns:
            left = ale.lives()
            ended = ended or 0 < left < self._lives  # some games go on for a moment with 0
            self._lives = left
            reward = np.sign(reward)
        return self._seen.reshape(-1), float(reward), ended, cut

    def _look(self) -> None:
        self._frame[0] = self._frame[1]
        self._ale.getScreenGrayscale(self._frame[1])

    def close(self) -> None:
        """An emulator holds memory only."""


@kernel
def see(frame, line, seen):
    """Put the picture of two frames behind the last three of `seen`.

    Parameters
    ----------
    frame : uint8, (2, height, width)
    line : float32, (width,)
        Scratch.
    seen : float32, (SIDE, SIDE, STACK)
        Updated, in (-1, 1): the mean of a picture is 0.
    """
    height, width = frame.shape[1], frame.shape[2]
    tall, wide = height / SIDE, width / SIDE
    mean = 0.0
    for i in range(SIDE):
        top, bottom = i * tall, (i + 1) * tall
        line[:] = 0
        for r in range(int(top), min(height, math.ceil(bottom))):
            share = np.float32((min(r + 1.0, bottom) - max(float(r), top)) / (255 * tall))
            for c in range(width):
                line[c] += share * np.float32(max(frame[0, r, c], frame[1, r, c]))
        for j in range(SIDE):
            left, right, total = j * wide, (j + 1) * wide, 0.0
            for c in range(int(left), min(width, math.ceil(right))):
                total += line[c] * (min(c + 1.0, right) - max(float(c), left))
            for k in range(STACK - 1):
                seen[i, j, k] = seen[i, j, k + 1]
            seen[i, j, STACK - 1] = total / wide
            mean += total / wide
    mean /= SIDE * SIDE
    for i in range(SIDE):
        for j in range(SIDE):
            seen[i, j, STACK - 1] -= mean


@cache
def known(name: str) -> Atari:
    """The game of that name; its cartridge is looked for once."""
    return Atari(name)
