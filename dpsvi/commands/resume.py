"""``dpsvi resume DIR``: go on with a fit or an agent that was ended, from its newest checkpoint."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from pathlib import Path

from dpsvi import engines, models
from dpsvi.cluster.ranks.world import in_turn
from dpsvi.commands import play
from dpsvi.commands.arguments import collective, passes
from dpsvi.commands.fit import add_model_arguments, check_used, engine_of
from dpsvi.commands.fit import run as run_fit
from dpsvi.commands.fit_options import add_cluster_arguments
from dpsvi.commands.inputs import reading_input
from dpsvi.errors import DataFormatError, ModelFormatError, UsageError
from dpsvi.files.launcher import launched_rank


def add_arguments(parser) -> None:
    """Arguments of the command: all else is as it was."""
    parser.add_argument("out", metavar="DIR", help="run folder of `dpsvi fit` or `dpsvi play`")
    parser.add_argument("--config", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, metavar="P", help="another number of threads")
    parser.add_argument("--passes", type=passes, metavar="N", help="another number of passes")
    parser.add_argument("--engine", choices=engines.names(), help="another engine")
    parser.add_argument(
        "--local-steps", type=int, metavar="B",
        help="another number of steps of each thread between two exchanges",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_cluster_arguments(parser)


def _read_settings(args, path: Path) -> dict:
    """The settings that a run folder was made with.

    Raises
    ------
    DataFormatError, ModelFormatError
        It cannot be resumed, or they are damaged.
    """
    from dpsvi.commands.run_folder import RunFolder  # loads numpy

    if launched_rank() == 0:
        RunFolder(args.out, resume=True)  # brings back what a run had set aside that was killed
    try:
        with reading_input(path):
            settings = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataFormatError):
            raise
        raise ModelFormatError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(settings, dict):
        raise ModelFormatError(f"{path}: must be an object of settings, got {settings!r:.40}")
    if settings.get("command") != "play" and settings.get("name") not in models.names():
        raise ModelFormatError(
            f"{path}: 'name' must be one of {models.names()}, got {settings.get('name')!r}"
        )
    return settings


def _merged(args, path: Path, settings: dict) -> argparse.Namespace:
    """The settings of a fit, with those given now instead.

    Raises
    ------
    ModelFormatError, UsageError
        It cannot be resumed so.
    """
    given = {k: v for k, v in vars(args).items() if v is not None}
    sharding = settings.get("sharding") or "whole"
    if given.get("sharding", sharding) != sharding:
        raise UsageError(
            f"--sharding was {sharding} when the fit began, and stays so; got {given['sharding']}"
        )
    if "engine" not in given and not _simulated(settings.get("engine")):
        settings["engine"] = None  # whatever this launch calls for
    if given.get("strategy", settings.get("strategy")) != settings.get("strategy"):
        settings["strategy_options"] = None  # they are those of the other one
    parser = argparse.ArgumentParser(add_help=False)
    add_model_arguments(parser, settings["name"])
    usual = {action.dest: action.default for action in parser._actions}
    for action in parser._actions:
        if action.required and not isinstance(settings.get(action.dest), str):
            raise ModelFormatError(f"{path}: has no entry {action.dest!r} that is a text")
    for name in ("set", "strategy_options"):
        if not _are_pairs(settings.get(name, usual[name])):
            raise ModelFormatError(
                f"{path}: {name!r} must be a list of names and values, got {settings[name]!r}"
            )
    then = {name: value for name, value in settings.items() if value is not None}
    merged = argparse.Namespace(**{**usual, **then, **given})
    check_used(given, engine_of(merged))
    return merged


def _are_pairs(value) -> bool:
    """Whether a setting is a list of names and values, as ``--set`` makes it; None is one, too."""
    return value is None or (
        isinstance(value, list)
        and all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
                for pair in value)
    )  # fmt: skip


def _options(args) -> dict:
    """The arguments that replace settings of the run."""
    others = {"command", "run", "out", "config", "json", "debug", "quiet", "log_all_ranks"}
    return {name: value for name, value in vars(args).items() if name not in others}


def _simulated(name) -> bool:
    return name in engines.names() and engines.get(name).simulated


def run(args) -> int:
    """Take the settings of the run folder, and those given now instead."""
    path = Path(args.out) / "config.json"
    with in_turn() if collective(args) else nullcontext():  # rank 0 first: it alone refuses
        settings = _read_settings(args, path)
        agent = settings.get("command") == "play"
        merged = None if agent else _merged(args, path, settings)
    try:
        return play.resume(args, path, settings) if agent else run_fit(merged, resume=True)
    except UsageError as error:
        if any(value not in (None, False) for value in _options(args).values()):
            raise  # it may be of one of these
        raise ModelFormatError(f"{path}: {error}") from error
