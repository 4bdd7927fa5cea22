"""Advantage actor-critic on the engines: HSA2C of the paper (Alg. 8 and 9) and its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from dpsvi import engines
from dpsvi.cluster.options import Cluster
from dpsvi.errors import as_random_state, check_flag, check_number
from dpsvi.estimators.scikit_learn import BaseEstimator
from dpsvi.files import io
from dpsvi.rl import problem
from dpsvi.rl.episodes import play_episodes
from dpsvi.rl.network import Network
from dpsvi.rl.objectives import exploration
from dpsvi.rl.training import Training
from dpsvi.training.checkpoint import check_params, read_newest

RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None


class ActorCritic(Training, BaseEstimator):
    """Advantage actor-critic: a policy and a value, learned by asynchronous agents.

    Every agent, a thread, plays some moves of its games with the parameters as it reads them, makes
    n-step returns of them, and adds a step of its optimiser to the parameters that all threads of a
    worker share without locks.  Workers send what they changed after `local_steps` of these.

    Parameters
    ----------
    environment : str or object, default="cartpole"
        A module of :mod:`dpsvi.rl.environments`, by name, or anything with what such a module has.
        ``"gymnasium:ID"``, for instance ``"gymnasium:CartPole-v1"``, is what ``gymnasium.make``
        makes of the ID, ``"atari:NAME"``, for instance ``"atari:pong"``, a game of ale-py, both
        played in the interpreter.
    algorithm : {"hsa2c", "pa3c", "ga3c", "da3c", "paac", "gala"}, default="hsa2c"
        What is chosen where the parameters below are None.  ``"hsa2c"``: the paper's, 16 games an
        agent, B = 16, a master with momentum that takes the mean of its workers.  ``"pa3c"``: one
        game an agent, threads of one process (Hogwild A3C, Mnih et al. 2016).  ``"ga3c"``: 8 games
        an agent of one process; the newest parameters choose each move, and what was played waits
        for four steps before those of then learn from it (Babaeizadeh et al. 2017, whose queues
        are of all agents and of any length).  ``"da3c"``: one game a worker, whose every step, by
        an optimiser of its own, goes to the master (after Agarwal and Duchi 2011).  ``"paac"``: 32
        games, which all workers share, and these in step (Clemente et al. 2017).  ``"gala"``:
        workers without a master that mix their parameters on a ring (Assran et al. 2019).
    objective : {"actor_critic", "q"}, default="actor_critic"
        ``"q"`` is n-step Q-learning (Mnih et al. 2016): values of actions are learned, and games
        choose the best one, or with a probability of 0.1, 0.01 or 0.5, each game its own, any.
        `entropy` is not used, and there is no target network.
    hidden : tuple of int or None, default=None
        Rectified units of the dense layers; ``()`` is a linear model without convolutions.  None
        is what the environment names, (256,) for Atari, else (64, 64).
    convolution : tuple of int, tuple of these, or None, default=None
        (filters, size) or (filters, size, stride) of a first layer that is a convolution, or of
        several; (16, 3) is that of MinAtar.  None is what the environment names, for Atari the
        paper's, ((16, 8, 4), (32, 4, 2)), else none, as is ``()``.
    learning_rate : float, in (0, 1], default=0.005
        Of the first step.  Where every worker has parameters of its own (``"paac"``, ``"gala"``),
        n of them each step with ``sqrt(n) learning_rate``, with ``"sgd"`` and ``"sgd_momentum"``
        ``n learning_rate``: their mean moves by 1/n of a step.
    anneal : bool, default=True
        Whether the rate falls along a line, to a thousandth.
    gamma : float, in [0, 1], default=0.99
        Discount of a reward by a move.
    trace : float, in [0, 1], default=1.0
        lambda of generalised advantages (Schulman et al. 2016); 1: n-step returns, the paper's.
    entropy : float, >= 0, default=0.01
        Weight of the policy's entropy.
    value : float, >= 0, default=0.5
        Weight of the squared error of the value.
    clip : float, >= 0, default=0.5
        Most that the norm of a gradient may be; 0: any.
    optimizer : {"adam", "rmsprop", "sgd", "sgd_momentum"}, default="adam"
        Its moments belong to a worker, and its threads share them.  ``"sgd_momentum"`` is SGD with
        a momentum of 0.9, so that a step goes on to ten times its length.
    n_games : int or None, default=None
        Games that an agent plays at once.
    n_moves : int, >= 1, default=8
        Moves of each game in a step, t_max.
    sticky : float, in [0, 1), default=0.0
        Probability with which the environment repeats the last action instead (Machado et al.
        2018); 0.1 is that of MinAtar.
    target : float or None, default=None
        The fit ends when the mean return of an evaluation reaches it.
    n_episodes : int, >= 1, default=20
        Greedy episodes of an evaluation.
    n_evaluations : int, >= 1, default=20
        Evaluations in a fit.
    engine : str, default="threads"
        ``"serial"``, ``"threads"``, ``"mpi"`` or ``"simulated"``, as for all estimators.
    n_jobs : int or None, default=None
        Threads p of each worker; None is 1, -1 all cores, -2 all but one.
    local_steps : int or None, default=None
        B, steps of each thread before a worker sends what it changed.
    cluster : dpsvi.Cluster or None, default=None
        Options of ``"mpi"`` and ``"simulated"``.  With the default strategy, ``"decay"``, the
        strategy and its rate are the algorithm's.
    checkpoint_dir : path or None, default=None
        Folder whose ``checkpoints/`` :meth:`fit` writes to and :meth:`resume` reads from.
    checkpoint_seconds : float, >= 0, default=60.0
        Between two checkpoints.
    random_state : int, RandomState, Generator or None, default=None
        Of the first parameters and of all games.  One thread is reproducible.
    verbose : int, default=0
        1 logs each evaluation.
    callbacks : list of callables or None, default=None
        Each gets an entry of `history_` and `self` after each evaluation; a true answer ends the
        fit.

    Attributes
    ----------
    parameters_ : float32 array
        Of the network, at the end.
    history_ : list of dict
        One for each evaluation, over MPI on rank 0 only: ``moves``, ``updates``, ``seconds``
        (without compilation and evaluations), ``rate``, ``score`` (mean return of greedy episodes).
    exchanges_ : dict
        What an engine with workers measured of its exchanges.
    n_moves_ : int
        Moves that all agents made.

    References
    ----------
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.
    Mnih et al. (2016), arXiv:1602.01783.

    Examples
    --------
    >>> from dpsvi.rl import ActorCritic
    >>> agent = ActorCritic("cartpole", random_state=0).fit(20_000)
    >>> agent.evaluate(10).shape
    (10,)
    """

    def __init__(
        self, environment: Any = "cartpole", *,
        algorithm: Literal["hsa2c", "pa3c", "ga3c", "da3c", "paac", "gala"] = "hsa2c",
        objective: Literal["actor_critic", "q"] = "actor_critic",
        hidden: Sequence[int] | None = None,
        convolution: Sequence[int] | Sequence[Sequence[int]] | None = None,
        learning_rate: float = 0.005, anneal: bool = True, gamma: float = 0.99, trace: float = 1.0,
        entropy: float = 0.01, value: float = 0.5, clip: float = 0.5,
        optimizer: Literal["adam", "rmsprop", "sgd", "sgd_momentum"] = "adam",
        n_games: int | None = None, n_moves: int = 8, sticky: float = 0.0,
        target: float | None = None, n_episodes: int = 20, n_evaluations: int = 20,
        engine: str = engines.DEFAULT, n_jobs: int | None = None,
        local_steps: int | None = None, cluster: Cluster | None = None,
        checkpoint_dir: str | PathLike[str] | None = None, checkpoint_seconds: float = 60.0,
        random_state: RandomState = None, verbose: int = 0,
        callbacks: Sequence[Callable[[dict[str, Any], ActorCritic], object]] | None = None,
    ) -> None:  # fmt: skip
        self.environment = environment
        self.algorithm = algorithm
        self.objective = objective
        self.hidden = hidden
        self.convolution = convolution
        self.learning_rate = learning_rate
        self.anneal = anneal
        self.gamma = gamma
        self.trace = trace
        self.entropy = entropy
        self.value = value
        self.clip = clip
        self.optimizer = optimizer
        self.n_games = n_games
        self.n_moves = n_moves
        self.sticky = sticky
        self.target = target
        self.n_episodes = n_episodes
        self.n_evaluations = n_evaluations
        self.engine = engine
        self.n_jobs = n_jobs
        self.local_steps = local_steps
        self.cluster = cluster
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_seconds = checkpoint_seconds
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(self, n_moves: int) -> ActorCritic:
        """Learn from scratch by so many moves of all agents together, or a few more.

        Parameters
        ----------
        n_moves : int, >= 1

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            A parameter is not allowed, or the environment is none; the agent is as it was.
        DivergedError
            A parameter became NaN or infinite, for instance by a reward that is.
        LostRankError
            Over MPI: the fit cannot go on without a rank that was lost.
        KeyboardInterrupt
            By Ctrl-C; what was learned so far is kept.

        Examples
        --------
        >>> from dpsvi.rl import ActorCritic
        >>> agent = ActorCritic("cartpole", random_state=0).fit(2_000)
        >>> agent.n_moves_ >= 2_000
        True
        """
        return self._fit(n_moves, None)

    def resume(self, n_moves: int) -> ActorCritic:
        """Go on with a fit of so many moves from the newest checkpoint in `checkpoint_dir`.

        With one thread in one process the end is the one it would have had, bit for bit; games of
        gymnasium and Atari begin anew, since they are not kept.

        Parameters
        ----------
        n_moves : int
            What `fit` was given.

        Raises
        ------
        ValueError
            `checkpoint_dir` is None.
        FileNotFoundError
            There is no checkpoint.
        ModelFormatError
            It is damaged, or of other parameters.

        Examples
        --------
        >>> from dpsvi.rl import ActorCritic
        >>> kept = dict(random_state=0, checkpoint_dir="run", checkpoint_seconds=0)
        >>> agent = ActorCritic("cartpole", **kept).fit(2_000)
        >>> ActorCritic("cartpole", **kept).resume(2_000).n_moves_ >= 2_000
        True
        """
        if self.checkpoint_dir is None:
            raise ValueError("resume needs the checkpoint_dir of the fit that goes on, got None")
        checkpoint = read_newest(self.checkpoint_dir)
        check_params(checkpoint, self._comparable())
        return self._fit(n_moves, checkpoint)

    def evaluate(
        self, n_episodes: int = 100, *, greedy: bool = True, random_state: RandomState = 0,
    ) -> np.ndarray:  # fmt: skip
        """Sums of rewards of new episodes with the learned policy.

        Parameters
        ----------
        n_episodes : int, >= 1
        greedy : bool
            Take the likeliest or best action instead of drawing one.
        random_state : int, RandomState, Generator or None

        Returns
        -------
        returns : float64 array of shape (n_episodes,)

        Examples
        --------
        >>> from dpsvi.rl import ActorCritic
        >>> agent = ActorCritic("cartpole", random_state=0).fit(2_000)
        >>> agent.evaluate(5).shape  # the returns of five episodes
        (5,)
        """
        check_number("n_episodes", n_episodes, low=1, integer=True)
        return self._play(n_episodes, greedy, random_state)[0]

    def watch(self, *, greedy: bool = True, random_state: RandomState = 0) -> np.ndarray:
        """The states of one episode, (moves, N_STATE), for the environment's ``draw``.

        Raises
        ------
        ValueError
            The environment is one of gymnasium or Atari, whose states cannot be seen.

        Examples
        --------
        >>> from dpsvi.rl import ActorCritic
        >>> agent = ActorCritic("cartpole", random_state=0).fit(2_000)
        >>> agent.watch().shape[1]  # CartPole has four numbers
        4
        """
        if hasattr(self._environment(), "opened"):
            raise ValueError(
                f"watch needs an environment whose states can be seen, got {self.environment!r}: "
                "play it with `act`"
            )
        return self._play(1, greedy, random_state, record=True)[1]

    def act(
        self, observation: ArrayLike, *, greedy: bool = True, random_state: RandomState = None,
    ) -> int:  # fmt: skip
        """An action for an observation of the environment's shape, as the environment takes it.

        Examples
        --------
        >>> from dpsvi.rl import ActorCritic
        >>> agent = ActorCritic("cartpole", random_state=0).fit(2_000)
        >>> agent.act([0.0, 0.0, 0.0, 0.0]) in (0, 1)
        True
        """
        network = self._fitted_network()
        check_flag("greedy", greedy)
        seen = np.asarray(observation, np.float32)
        if seen.shape != tuple(self._environment().SHAPE):
            raise ValueError(
                f"observation must have shape {self._environment().SHAPE}, got {seen.shape}"
            )
        if not np.isfinite(seen).all():
            raise ValueError("observation must be finite, got NaN or infinity")
        logits = network.apply(self.parameters_, seen)[:-1]
        first = getattr(self._environment(), "first_action", 0)
        return first + self._choose(logits, greedy, random_state)

    def _choose(self, logits, greedy, random_state) -> int:
        if greedy:
            return int(logits.argmax())
        if self.objective == "q":
            rng = as_random_state(random_state)
            explores = rng.random_sample() < exploration(0)
            return int(rng.randint(len(logits)) if explores else logits.argmax())
        p = np.exp(logits - logits.max())
        return int(as_random_state(random_state).choice(len(p), p=p / p.sum()))

    def save(self, path: str | PathLike[str]) -> None:
        """Write ``model.safetensors`` and ``model.json`` into the folder `path`.

        Raises
        ------
        NotFittedError
        ValueError
            The environment is no module that can be found by its name, or parameters were set
            since the fit that :meth:`load` would refuse.
        OSError
            It cannot be written; a model that was there is kept.

        Examples
        --------
        >>> from dpsvi.rl import ActorCritic
        >>> agent = ActorCritic("cartpole", random_state=0).fit(2_000)
        >>> agent.save("agent")
        >>> ActorCritic.load("agent").environment
        'cartpole'
        """
        self._fitted_network()
        if not isinstance(self.environment, str):
            raise ValueError(
                f"environment must be a name, so that load finds it again, got {self.environment!r}"
            )
        params = io.plain_params(self)
        type(self)(**params)._check()  # as `load` does
        io.save_model(
            path, kind="actor_critic", arrays={"parameters": self.parameters_},
            meta={"params": params, "n_moves": self.n_moves_, "history": self.history_},
        )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ActorCritic:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FileNotFoundError
            The folder holds no model.
        ModelFormatError
            It is damaged, of another kind, or written by a newer version.

        Examples
        --------
        >>> from dpsvi.rl import ActorCritic
        >>> agent = ActorCritic("cartpole", random_state=0).fit(2_000)
        >>> agent.save("agent")
        >>> ActorCritic.load("agent").act([0.0, 0.0, 0.0, 0.0]) in (0, 1)
        True
        """
        arrays, meta = io.load_model(path, kind="actor_critic")
        with io.reading(path):
            self = cls(**{k: as_tuple(v) for k, v in meta["params"].items()})
            self._check()
            io.check_counts(meta, "n_moves")
            self.parameters_, self.n_moves_ = arrays["parameters"], meta["n_moves"]
            self.history_, self.exchanges_ = meta["history"], {}
            self._network_of_fit = network = self._network()
            if self.parameters_.shape != (network.n_parameters,):
                raise ValueError(f"parameters of shape {self.parameters_.shape}")
        return self

    def _fitted_network(self) -> Network:
        """The network that was fitted; raises ValueError if parameters now ask for another one."""
        check_is_fitted(self, "parameters_")
        now, fitted = self._network(), self._network_of_fit
        if now != fitted:
            raise ValueError(
                f"parameters_ are those of {fitted}; environment, hidden and convolution now "
                f"make {now}"
            )
        return fitted

    def _play(self, n_episodes, greedy, random_state, record=False):
        network = self._fitted_network()
        check_flag("greedy", greedy)
        seed = as_random_state(random_state).randint(np.iinfo(np.int32).max)
        environment = self._environment()
        hyper = problem.hyper(environment, network, self._settings(), 0)
        return play_episodes(environment, self.parameters_, hyper, n_episodes, greedy, seed, record)


def as_tuple(value):
    """A value of JSON as a parameter has it: no lists."""
    return tuple(map(as_tuple, value)) if isinstance(value, list) else value
