"""Options of ``dpsvi fit`` that all models share: how a fit runs."""

from __future__ import annotations

from functools import partial

from dpsvi import engines, strategies
from dpsvi.commands.arguments import passes, seed, setting


def add_run_arguments(parser) -> None:
    """Options of the engine and the steps; None: the estimator's default."""
    run = parser.add_argument_group(
        "optimisation", "Without an option the default of the estimator counts."
    )
    run.add_argument(
        "--set", type=setting, action="append", default=[], metavar="NAME=VALUE",
        help="a parameter of the estimator that has no option of its own, as listed below; the "
        "value as JSON, null for None; may be given several times",
    )  # fmt: skip
    run.add_argument(
        "--engine", choices=engines.names(),
        help="what carries out the steps [mpi under mpiexec or srun, else threads]",
    )  # fmt: skip
    run.add_argument(
        "--threads", type=int, default=1, metavar="P",
        help="threads of this process, or of each worker; -1: one a core [%(default)s]",
    )  # fmt: skip
    run.add_argument(
        "--local-steps", type=int, metavar="B",
        help="steps of each thread between two exchanges with the master; threads alone: between "
        "two barriers [follows from the rates]",
    )  # fmt: skip
    run.add_argument(
        "--passes", type=passes, metavar="N",
        help="how often all of the data are visited; auto: until more passes pay no more [topic "
        "models 10, others 30]",
    )  # fmt: skip
    run.add_argument(
        "--batch-size", type=int, metavar="S", help="documents, rows or groups in a step"
    )
    run.add_argument(
        "--learning-decay", type=float, metavar="KAPPA",
        help="the rate of step t is (t + TAU0) ** -KAPPA; in (0, 1], above 0.5 "
        "for convergence",
    )  # fmt: skip
    run.add_argument(
        "--learning-offset", type=float, metavar="TAU0",
        help="above 0: the larger it is, the smaller are the first rates",
    )  # fmt: skip
    run.add_argument(
        "--learning-rate", type=float, metavar="RHO",
        help="the same rate in all steps, above 0 and at most 1, in the place of KAPPA and TAU0",
    )  # fmt: skip
    run.add_argument(
        "--lr-rule", choices=["per_T", "per_sample", "constant"],
        help="how the rate is carried over to threads and local steps, rule (13) of the paper "
        "[constant]",
    )  # fmt: skip
    run.add_argument(
        "--seed", type=seed, default=0, metavar="S",
        help="of everything that is random; one thread repeats a fit to the bit [%(default)s]",
    )  # fmt: skip


def add_evaluation_arguments(parser) -> None:
    """Options of what is held out to follow a fit; None: the estimator's default."""
    held = parser.add_argument_group("evaluation")
    held.add_argument(
        "--held-out", type=int, metavar="N",
        help="documents, points, groups, sequences or users that are scored, not fitted "
        "[of documents 5 %%, at most 2000; of others 0]",
    )  # fmt: skip
    held.add_argument(
        "--evaluate-every", type=float, metavar="PASSES",
        help="passes between two evaluations: a whole number, or below 1 [1]",
    )  # fmt: skip
    held.add_argument(
        "--early-stopping", action="store_true", default=None,
        help="end when the held-out score does not improve any more",
    )  # fmt: skip


def _add_strategy_arguments(add) -> None:
    add(
        "--strategy", choices=strategies.names(), metavar="NAME",
        help="how the workers' parameters become one, which the documentation compares: "
        f"{', '.join(strategies.names())} [decay]",
    )  # fmt: skip
    add(
        "--strategy-options", type=setting, action="append", metavar="NAME=VALUE",
        help="a parameter of the strategy, the value as JSON; may be given several times",
    )  # fmt: skip
    add(
        "--master-batch", type=int, metavar="M",
        help="updates of workers that the master merges at a time [1]",
    )  # fmt: skip
    add(
        "--global-rate", type=float, metavar="GAMMA",
        help="weight of an update at the master: 1 sums those of a batch, 1/M takes their mean [1]",
    )  # fmt: skip
    add(
        "--strict", action="store_true",
        help="end with an error, not with a smaller GAMMA, where the rate is unstable",
    )  # fmt: skip


def add_cluster_arguments(parser) -> None:
    """Options of a fit on several processes, and checkpoints; None: the default."""
    group = parser.add_argument_group("several processes (mpiexec -n 5 dpsvi fit ...)")
    add = partial(group.add_argument, default=None)
    _add_strategy_arguments(add)
    add(
        "--sharding", choices=["whole", "shard"],
        help="whether a worker draws from all data or from a part of its own [whole]",
    )  # fmt: skip
    add(
        "--statistics", choices=["float32", "bfloat16"],
        help="numbers in messages to the master: bfloat16 halves their bytes [float32]",
    )  # fmt: skip
    add(
        "--prefetch", action="store_true",
        help="workers ask for the next parameters before they need them, which are then older",
    )  # fmt: skip
    add(
        "--waiting", type=float, metavar="SHARE",
        help="choose B such that workers wait for this share of their time, above 0, at most 0.9",
    )  # fmt: skip
    add("--workers", type=int, metavar="N", help="workers of --engine simulated [1]")
    add(
        "--master-works", action="store_true",
        help="rank 0 makes steps, too, between its merges",
    )  # fmt: skip
    add(
        "--grace-seconds", type=float, metavar="S",
        help="begin after S seconds without ranks that are not ready; they join later [wait for "
        "all]",
    )  # fmt: skip
    add(
        "--silent-seconds", type=float, metavar="S",
        help="a rank that sends nothing for so long is lost [20]",
    )  # fmt: skip
    add(
        "--on-lost", choices=["drop", "abort"],
        help="continue without a lost rank, whose steps others make, or end the fit [drop]",
    )  # fmt: skip
    group.add_argument(
        "--log-all-ranks", action="store_true",
        help="write run.rank-1.log and so on beside run.log, the log of rank 0",
    )  # fmt: skip
    group = parser.add_argument_group("checkpoints (dpsvi resume DIR)")
    group.add_argument(
        "--checkpoint-seconds", type=float, metavar="SEC",
        help="seconds between two checkpoints, 0 for none [60]",
    )  # fmt: skip
