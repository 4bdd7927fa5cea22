"""Options of a fit on several processes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dpsvi import strategies
from dpsvi.errors import check_choice, check_flag, check_number


@dataclass(frozen=True)
class Cluster:
    """Options of ``engine="mpi"``; pass them as ``cluster=Cluster(...)``.

    Parameters
    ----------
    strategy : str
        How several workers fit one model, a module of :mod:`dpsvi.strategies`.  With a master:
        ``"decay"`` stays valid at any staleness, ``"displacement"`` is the paper's,
        ``"downpour"`` that of one update at a time, ``"momentum"`` a heavy ball, ``"elastic"``
        gives each worker parameters of its own on a spring (EASGD), ``"pvi"`` a factor of the
        posterior, ``"sda"`` adds up a stream; in rounds, ``"local_sgd"`` takes means, ``"fedavg"``
        those of some workers, ``"hierarchical"`` those of groups, ``"diloco"`` adds an outer
        momentum.  Without one: ``"push_sum"`` (SGP), ``"push_rows"``, ``"gossip"`` (GoSGD),
        ``"gala"``, ``"a2cid2"``; ``"gap"`` lets replicas change places, ``"ownership"`` blocks of
        rows go round (ESVI).
    strategy_options : dict
        What the strategy has of its own, for instance ``{"momentum": 0.9}`` or ``{"alpha": 0.1}``.
    master_batch : int, >= 1
        M, updates that are merged at a time (Alg. 1, line 3).
    global_rate : float, > 0
        gamma of Alg. 1: 1 adds the M updates, 1/M averages them.  At most 1 for ``"decay"``.
    strict : bool
        Refuse an unstable `global_rate` (:class:`~dpsvi.errors.UnstableError`) instead of
        reducing it with a warning.
    local_decay : {"exact", "as_read"}
        The decay in a local step of several threads: of the parameters as they are, or of those
        that the thread has read, over-written like the rest of the step (Alg. 4, line 8).  Without
        other threads both are the same.  ``"as_read"`` costs by the rows of a worker in every step.
    sharding : {"whole", "shard"}
        Each worker draws from the whole corpus, or from a part of its own.
    statistics : {"float32", "bfloat16"}
        What workers send.  bfloat16 is half as long; the rounding errors are kept and sent with
        the next update of the row.
    prefetch : bool
        Ask for the next parameters before the local steps instead of after them: nobody waits for
        the network, and everybody's parameters are one update older.
    waiting : float in (0, 0.9] or None
        Steer B, the local steps, so that workers wait for this share of their time.  None: as many
        as rates and passes allow.  Of no effect where the estimator's `local_steps` is given.
    master_works : bool
        Rank 0 computes too, in a thread.  It always does when it is alone.
    grace_seconds : float, >= 0, or None
        Ranks that are ready wait for others for so long, and then begin without them; who comes
        later joins.  None: they wait for all.  Workers of a fit whose parameters are a sum of what
        they remember (incremental passes) are always waited for.
    silent_seconds : float, > 0
        A rank that sends nothing for so long is lost.
    on_lost : {"drop", "abort"}
        Go on without a lost worker, or end the job.  The steps of a worker are then made by others;
        those of a peer, and what it had learned since its last message, are not.

    Raises
    ------
    ValueError, TypeError
        An option is out of its range.

    Examples
    --------
    >>> from dpsvi import DPSVILDA, Cluster
    >>> slow_network = Cluster(strategy="local_sgd", statistics="bfloat16")
    >>> lda = DPSVILDA(100, engine="mpi", cluster=slow_network)  # and mpiexec -n 5
    >>> Cluster(strategy="displacement", strategy_options={"no_such": 1}).make_strategy()
    Traceback (most recent call last):
    ValueError: ...
    """

    strategy: str = "decay"
    strategy_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    master_batch: int = 1
    global_rate: float = 1.0
    strict: bool = False
    local_decay: str = "exact"
    sharding: str = "whole"
    statistics: str = "float32"
    prefetch: bool = False
    waiting: float | None = None
    master_works: bool = False
    grace_seconds: float | None = None
    silent_seconds: float = 20.0
    on_lost: str = "drop"

    def __post_init__(self) -> None:
        check_choice("local_decay", self.local_decay, ["exact", "as_read"])
        check_choice("sharding", self.sharding, ["whole", "shard"])
        check_choice("statistics", self.statistics, ["float32", "bfloat16"])
        check_choice("on_lost", self.on_lost, ["drop", "abort"])
        check_number("master_batch", self.master_batch, low=1, integer=True)
        if self.grace_seconds is not None:
            check_number("grace_seconds", self.grace_seconds, low=0)
        check_number("silent_seconds", self.silent_seconds, low=0, open_low=True)
        for name in ("strict", "prefetch", "master_works"):
            check_flag(name, getattr(self, name))
        if not isinstance(self.strategy_options, Mapping):
            raise TypeError(f"strategy_options must be a dict, got {self.strategy_options!r}")
        if self.waiting is not None:
            check_number("waiting", self.waiting, low=0, high=0.9, open_low=True)
        self.make_strategy()

    def n_sharing(self, n_workers: int) -> int:
        """How many of so many workers step on parameters that a master has for all of them.

        One where a strategy has other parameters, or no use for rates.

        Examples
        --------
        >>> Cluster().n_sharing(8), Cluster(strategy="local_sgd").n_sharing(8)
        (8, 1)
        """
        kind = strategies.get(self.strategy)
        return 1 if kind.topology == "peers" or kind.replicas or kind.one_pass else n_workers

    def make_strategy(self) -> Any:
        """A new strategy for one fit.

        Raises
        ------
        ValueError, TypeError
            It does not exist, or not with these options.

        Examples
        --------
        >>> Cluster(strategy="elastic", strategy_options={"alpha": 0.2}).make_strategy().alpha
        0.2
        """
        check_choice("strategy", self.strategy, strategies.names())
        kind, own = strategies.get(self.strategy), dict(self.strategy_options)
        given = {"rate": self.global_rate, "strict": self.strict}
        known = inspect.signature(kind).parameters
        for name in own:
            if name in given or name not in known:
                allowed = sorted(known.keys() - given.keys())
                raise ValueError(
                    f"strategy_options of {self.strategy!r} may name {allowed}, got {name!r}"
                )
        strategy = kind(**{name: value for name, value in given.items() if name in known}, **own)
        for option in fields(Cluster):
            value, reason = getattr(self, option.name), strategy.refuses.get(option.name)
            if reason is not None and value != option.default:
                raise ValueError(
                    f"strategy={self.strategy!r} has no {option.name}={value!r}: {reason}"
                )
        return strategy
