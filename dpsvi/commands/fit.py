"""``dpsvi fit NAME``: data in; a run folder with model, metrics and settings out.

What is particular to topic models is in :mod:`dpsvi.commands.fit_topics`, to all others in
:mod:`dpsvi.commands.fit_arrays`.
"""

from __future__ import annotations

import inspect
import logging
import re
from contextlib import nullcontext
from dataclasses import fields
from functools import partial

from dpsvi import engines, models
from dpsvi.cluster import Cluster
from dpsvi.commands import fit_arrays, fit_topics
from dpsvi.commands.arguments import add_output_arguments, collective
from dpsvi.commands.fit_options import (
    add_cluster_arguments,
    add_evaluation_arguments,
    add_run_arguments,
)
from dpsvi.commands.inputs import refused_as
from dpsvi.commands.outputs import emit, way_to_go_on
from dpsvi.commands.parser import CommandParser
from dpsvi.commands.wording import CALLED, NOT_JSON, option_of
from dpsvi.errors import DataFormatError, UsageError
from dpsvi.files.launcher import launched_rank, launched_size, launched_with_ulfm

log = logging.getLogger(__name__)


def _side(name: str):
    """What is particular to this model's kind of data."""
    return fit_topics if models.declared(name)["FITTED_TO"] == "corpus" else fit_arrays


class _ModelParser(CommandParser):
    """The parser of one model, whose help lists the parameters of its estimator.

    They are looked up when the help is shown: to import an estimator takes seconds.
    """

    def format_help(self) -> str:
        name, known = self.get_default("name"), {action.dest for action in self._actions}
        parameters = inspect.signature(models.get(name)).parameters.values()
        options = {p.name: option_of(p.name, known) for p in parameters}
        renamed = [f"{option} is {p}" for p, option in options.items() if option and p in CALLED]
        others = [
            f"{p.name}={p.default!r}" for p in parameters
            if not options[p.name] and p.name not in NOT_JSON
        ]  # fmt: skip
        self.epilog = (
            f"The model is {models.declared(name)['ESTIMATOR']} of Python, whose documentation "
            "explains its parameters. Options give some of them, by the same name, as "
            f"--batch-size, or by another: {', '.join(renamed)}. --set NAME=VALUE gives the "
            f"others, here with their defaults: {', '.join(others)}. It can also give one that has "
            "an option, which then does not count: a vector, say, where the option is a number."
        )
        return super().format_help()


def add_arguments(parser) -> None:
    """Arguments of the command, a parser for each model."""
    kinds = parser.add_subparsers(
        dest="name", required=True, metavar="MODEL", parser_class=_ModelParser
    )
    for name in models.names():
        summary = models.declared(name)["SUMMARY"]
        leaf = kinds.add_parser(name, help=summary, description=f"{summary}.", allow_abbrev=False)
        leaf.set_defaults(name=name)
        add_model_arguments(leaf, name)


def add_model_arguments(leaf, name: str) -> None:
    """Arguments of the command for one model; ``dpsvi resume`` takes their defaults."""
    add_output_arguments(leaf)
    leaf.add_argument(
        "--config", metavar="FILE",
        help="TOML file of these options; an option on the command line wins over the file",
    )  # fmt: skip
    leaf.add_argument(
        "--out", default="dpsvi-run", metavar="DIR",
        help="run folder to be written: model, settings, metrics, log [%(default)s]",
    )  # fmt: skip
    leaf.add_argument("--overwrite", action="store_true", help="replace the run that is in --out")
    leaf.add_argument("--quiet", action="store_true", help="show no progress")
    _side(name).add_arguments(leaf, name)
    add_run_arguments(leaf)
    add_evaluation_arguments(leaf)
    add_cluster_arguments(leaf)


_GIVEN = (
    "n_jobs", "local_steps", "max_iter", "batch_size", "learning_decay", "learning_offset",
    "learning_rate", "lr_rule", "random_state", "evaluate_every", "early_stopping",
)  # fmt: skip


def engine_of(args) -> str:
    """The engine that was asked for, or that this launch calls for."""
    asked = dict(args.set).get("engine", args.engine)
    return asked or engines.called_for(launched_size())


def check_used(given: dict, engine: str) -> None:
    """Refuse options that the `engine` would ignore.

    Where no engine is named and there is one process, that is only said: the same command may be
    meant for several.

    Raises
    ------
    UsageError
    """
    fields_of = {name: _fields(engines.get(name).options) for name in engines.names()}
    for field in sorted(set.union(*fields_of.values()) - fields_of[engine]):
        if given.get(CALLED.get(field, field)) in (None, False):
            continue
        users = sorted(other for other, known in fields_of.items() if field in known)
        option = option_of(field, given)
        # What another launch of the same command would use is only said to be of no effect.
        if given.get("engine") is not None or engines.called_for(2) not in users:
            raise UsageError(f"{option} is for --engine {' or '.join(users)}, got {engine}")
        log.warning("%s is of no effect in one process", option)


def _fields(options) -> set[str]:
    """Those of the options of an engine for which the command line has an option."""
    offered = {field.name for field in fields(Cluster)} | {"n_workers"}
    return {field.name for field in fields(options)} & offered if options else set()


def cluster_of(args) -> Cluster | None:
    """The options that were given, for the engine that is to be used; None if it has none."""
    options = engines.get(engine_of(args)).options
    if options is None:
        return None
    given = {name: getattr(args, CALLED.get(name, name), None) for name in _fields(options)}
    if pairs := given.get("strategy_options"):
        given["strategy_options"] = dict(pairs)
    return options(**{name: value for name, value in given.items() if value is not None})


def make_estimator(args, data: dict):
    """The estimator that the arguments describe."""
    estimator = models.get(args.name)
    given = {name: getattr(args, CALLED.get(name, name)) for name in _GIVEN}
    params = {name: value for name, value in given.items() if value is not None}
    params |= _side(args.name).parameters(args, data)
    seconds = 60.0 if args.checkpoint_seconds is None else args.checkpoint_seconds
    params |= {
        "engine": engine_of(args), "cluster": cluster_of(args), "verbose": not args.quiet,
        "checkpoint_dir": args.out if seconds else None, "checkpoint_seconds": seconds,
    }  # fmt: skip
    known = inspect.signature(estimator).parameters
    for name, value in args.set:
        if name not in known:
            raise UsageError(f"--set {name}: {args.name} has the parameters {sorted(known)}")
        params[name] = value
    for name, usual, reason in (
        ("n_init", 1, "a checkpoint holds one fit"),
        ("max_batch_size", None, "a checkpoint is of batches of one size"),
    ):
        if params.get(name, usual) != usual:
            if args.checkpoint_seconds:
                raise UsageError(f"--checkpoint-seconds and --set {name}: {reason}")
            params["checkpoint_dir"] = None
            log.warning("%s=%s: no checkpoints, as %s", name, params[name], reason)
    return estimator(**params)


def _refusal(estimator, source, message):
    """The error for what the estimator refuses: wrong usage of an option, or bad data.

    What it says of a parameter begins with the parameter's name.
    """
    if re.match(r"\w*", message)[0] not in estimator.get_params():
        return DataFormatError(f"{source}: {message}")
    return UsageError(message)


def run(args, resume: bool = False) -> int:
    """Fit, then write everything; an interrupted fit is written too and exits 128 + signal.

    Under ``mpiexec`` every rank fits; rank 0 alone writes and prints.
    """
    from dpsvi.commands.run_folder import RunFolder
    from dpsvi.report import write_report

    if not resume:  # a fit may go on with another engine
        check_used(vars(args), engine_of(args))
    side = _side(args.name)
    first = launched_rank() == 0
    if collective(args):
        from dpsvi.cluster.ranks.world import world

        world()  # from here on a rank that fails can end the others
    folder = RunFolder(args.out, args.overwrite, resume) if first else None
    with refused_as(UsageError):
        data = side.read(args)
        estimator = make_estimator(args, data)
    refusal = partial(_refusal, estimator, getattr(args, side.SOURCE))
    with refused_as(refusal):
        estimator.check_params()
    with folder if first else nullcontext(), _rank_log(args, resume):
        if first:
            settings = {k: v for k, v in vars(args).items() if k not in ("run", "command")}
            folder.write_settings(
                settings, estimator._items, args.seed, args.threads, launched_size()
            )
            log.info("%s: %s", args.name, side.described(data))
            if collective(args) and estimator.checkpoint_dir and not launched_with_ulfm():
                # Afterwards nobody could say so: this MPI ends all others at once.
                log.info(
                    "if a rank dies, all end; then `dpsvi resume %s` goes on from the last "
                    "checkpoint, one each %g s", args.out, estimator.checkpoint_seconds,
                )  # fmt: skip
            estimator.callbacks = [_recorder(folder, estimator, side, data)]
        with refused_as(refusal):
            try:
                arrays = fit_arrays.arguments_of(estimator.fit, data)
                (estimator.resume if resume else estimator.fit)(**arrays)
            except KeyboardInterrupt as interrupt:
                if not getattr(estimator, "interrupted_", 0):
                    raise  # there is no model yet
                if first:
                    log.warning("%s", "; ".join(filter(None, [
                        interrupt.__notes__[-1], way_to_go_on(args.out)
                    ])))  # fmt: skip
        if first:
            side.write(folder, estimator, data)
            if estimator.exchanges_.get("exchanges"):
                folder.write_exchanges(estimator.exchanges_, estimator.history_)
            estimator.save(folder.path)
            write_report(folder.path)  # which reads all other files
            if not estimator.interrupted_:
                folder.drop_checkpoints()
    if first:
        _tell(args, side, estimator, data, folder)
    return estimator.interrupted_


def _tell(args, side, estimator, data, folder) -> None:
    """Print what came of the fit and where it lies."""
    result = side.summary(estimator, data)
    clock = (
        "training (SIMULATED: the clock of a virtual cluster)" if result["simulated"]
        else "training, without compiling and scoring"
    )  # fmt: skip
    lines = [
        *side.describe(result, estimator),
        f"open {folder.path / 'report.html'} in a browser",
        f"{result['passes']} passes in {result['seconds']:.2f} s of {clock}",
        f"run folder {folder.path}",
    ]
    emit(args, {**result, "run_folder": str(folder.path)}, "\n".join(lines))


def _rank_log(args, resume):
    """One log a rank, if asked for."""
    if not args.log_all_ranks:
        return nullcontext()
    from dpsvi.commands.run_folder import log_to

    return log_to(args.out, f"run.rank-{launched_rank()}.log", "a" if resume else "w")


def _recorder(folder, estimator, side, data):
    """A callback that writes the newest entry of the history to metrics.jsonl."""
    last = {"items": 0, "seconds": 0.0}

    def record(event) -> None:
        entry = estimator.history_[-1]
        at = entry["step"], entry["items"], entry["seconds"]
        seconds = max(1e-9, entry["seconds"] - last["seconds"])
        rate = (entry["items"] - last["items"]) / seconds
        for metric, value, split in side.metrics(entry, data, rate):
            folder.metric(*at, metric, value, split)
        last.update(items=entry["items"], seconds=entry["seconds"])

    return record
