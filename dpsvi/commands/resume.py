"""``dpsvi resume DIR``: go on with a fit that was ended, from its newest checkpoint."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from pathlib import Path

from dpsvi import engines
from dpsvi.cluster.ranks.world import in_turn
from dpsvi.commands.common import collective, passes, reading_input
from dpsvi.commands.fit import check_used, engine_of
from dpsvi.commands.fit import run as run_fit
from dpsvi.commands.fit_options import add_cluster_arguments
from dpsvi.errors import DataFormatError, ModelFormatError, UsageError
from dpsvi.files.launcher import launched_rank


def add_arguments(parser) -> None:
    """Arguments of the command: all else is as it was."""
    parser.add_argument("out", metavar="DIR", help="run folder of `dpsvi fit`")
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


def _settings(args, path) -> argparse.Namespace:
    """The settings of a run folder, with those given now instead.

    Raises
    ------
    DataFormatError, ModelFormatError, UsageError
        It cannot be resumed, or not so.
    """
    from dpsvi.commands.run_folder import RunFolder  # loads numpy

    out = args.out
    if launched_rank() == 0:
        RunFolder(out, resume=True)  # brings back what a run had set aside that was killed
    try:
        with reading_input(path):
            settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        if isinstance(error, DataFormatError):
            raise
        raise ModelFormatError(f"{path}: not valid JSON: {error}") from error
    if settings.get("command") == "play":
        raise UsageError(
            f"{out}: is a run of `dpsvi play`; `dpsvi play {settings['environment']} --out {out} "
            "--resume` goes on with it"
        )
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
    # Settings that older versions wrote lack some.
    usual = {"set": [], "texts": False, "text_column": None}
    merged = argparse.Namespace(**{**usual, **settings, **given})
    check_used(given, engine_of(merged))
    return merged


def _simulated(name) -> bool:
    return name in engines.names() and engines.get(name).simulated


def run(args) -> int:
    """Take the settings of the run folder, and those given now instead."""
    path = Path(args.out) / "config.json"
    with in_turn() if collective(args) else nullcontext():  # rank 0 first: it alone refuses
        merged = _settings(args, path)
    return run_fit(merged, resume=True)
