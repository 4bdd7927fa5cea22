"""``dpsvi`` and ``python -m dpsvi``: argument parsing only; each command is a module."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
import traceback
import warnings

from dpsvi import __version__
from dpsvi.errors import (
    BAD_DATA,
    DIVERGED,
    FAILURE,
    LOST,
    USAGE,
    CorpusWarning,
    DataFormatError,
    DivergedError,
    DpsviError,
    DroppedError,
    LostRankError,
    ModelFormatError,
    Terminated,
    UsageError,
)
from dpsvi.files.launcher import launched_rank, launched_size
from dpsvi.training.signals import ENDING

COMMANDS = {
    "fit": "fit a model and write a run folder",
    "resume": "go on with an interrupted fit from its newest checkpoint",
    "transform": "write the topic proportions of documents, or what another model makes of rows",
    "predict": "write what a model that is fitted to arrays says of more data",
    "evaluate": "held-out perplexity of a topic model, held-out score of another model",
    "topics": "print the topics of a fitted model",
    "info": "describe a run folder, a model or a corpus",
    "export": "write a fitted model in other formats",
    "watch": "show a run in the browser while it goes on",
    "warmup": "compile the code of models once, so that no fit has to",
    "play": "train an actor-critic on a game, and write a page that shows it playing",
}


def _handle_signals() -> None:
    """First signal: stop training, write what there is, leave with 128 + number. Second: leave."""
    seen = []

    def on_signal(number, frame):
        if seen:
            os._exit(128 + number)
        seen.append(number)
        raise Terminated(number)

    for number in ENDING:
        signal.signal(number, on_signal)


def _show_on_stderr(prefix: str, args) -> None:
    """Show what dpsvi logs, and warnings of others; ranks other than 0 show warnings alone.

    What names parameters of Python is said in the options of the command.
    """
    from dpsvi.commands.wording import in_options

    class Formatter(logging.Formatter):
        def format(self, record):
            return prefix + in_options(super().format(record), args)

    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(lambda record: record.levelno >= logging.WARNING or _is_ours(record.name))
    handler.setFormatter(Formatter("%(message)s"))
    handler.setLevel(logging.INFO if launched_rank() == 0 else logging.WARNING)
    logging.basicConfig(level=logging.INFO, handlers=[handler])  # a rank's own log has all
    usual = warnings.formatwarning

    def shown(message, category, *place):
        if issubclass(category, CorpusWarning):  # is about a file, not about a line of a program
            return f"{prefix}{in_options(str(message), args)}\n"
        return usual(message, category, *place)

    warnings.formatwarning = shown


def _is_ours(logger: str) -> bool:
    return logger.partition(".")[0] == "dpsvi"


def make_parser() -> argparse.ArgumentParser:
    """Build the parser; the commands' modules load no heavy package for it."""
    from dpsvi.commands.arguments import add_output_arguments
    from dpsvi.commands.parser import CommandParser

    parser = CommandParser(
        prog="dpsvi",
        description="Fit Bayesian models to large data, on one machine or on many: topic models, "
        "mixtures, hidden Markov models, factorisations and regressions (dpsvi fit), and agents "
        "that learn games (dpsvi play).",
        epilog="exit codes: 0 good, 1 failure, 2 usage, 3 bad or missing input, 4 diverged (NaN), "
        "5 lost ranks, 130, 138 and 143 by SIGINT, SIGUSR1 and SIGTERM",
    )
    parser.add_argument("--version", action="version", version=f"dpsvi {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(
            name, help=summary, description=summary.capitalize() + ".", allow_abbrev=False
        )
        add_output_arguments(sub, default=False)
        module = importlib.import_module(f"dpsvi.commands.{name}")
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


def main(argv=None) -> int:
    """Run one command; returns the exit code.

    Under ``mpiexec`` no rank may leave the others waiting: one that fails ends the job.
    """
    from dpsvi.commands.arguments import apply_config

    argv = sys.argv[1:] if argv is None else list(argv)
    parser = make_parser()
    args = apply_config(parser, argv)
    alone = launched_size() == 1
    _show_on_stderr("" if alone else f"[rank {launched_rank()}] ", args)
    _handle_signals()
    if alone:
        return _run(args)
    together = False
    try:
        code = args.run(args) or 0
        together = True  # an interrupted fit too: all ranks have left it
    except BaseException as error:
        code = _explain(args, error)
        together = isinstance(error, DivergedError | DroppedError)
    if together and launched_rank() != 0:
        # How the job ended is rank 0's to say: with another code of ours Open MPI would end it now,
        # while it still writes.
        code = 0
    _end_rank(code, together)
    return code


def _run(args) -> int:
    try:
        return args.run(args) or 0
    except BaseException as error:
        return _explain(args, error)


def _explain(args, error: BaseException) -> int:
    """Say what happened, and return the exit code; raise what nobody expected."""
    try:
        raise error
    except Terminated as signalled:
        return _fail(args, "ended by a signal", signalled.code)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone, there is nobody to tell
        return FAILURE
    except (DataFormatError, ModelFormatError) as error:
        return _fail(args, str(error), BAD_DATA)
    except DivergedError as error:
        return _fail(args, str(error), DIVERGED)
    except LostRankError as error:
        from dpsvi.commands.outputs import way_to_go_on

        further = way_to_go_on(args.out) if getattr(args, "out", None) else ""
        return _fail(args, "; ".join(filter(None, [str(error), further])), LOST)
    except (UsageError, FileExistsError) as error:
        return _fail(args, str(error), USAGE)
    except OSError as error:
        named = error.filename is not None and error.strerror
        said = f"{error.filename}: {error.strerror}" if named else str(error)
        return _fail(args, said, FAILURE)
    except (ValueError, TypeError, ImportError, DpsviError) as error:
        return _fail(args, str(error), FAILURE)
    except MemoryError as error:
        return _fail(args, f"there is not enough memory: {error}".removesuffix(": "), FAILURE)
    except BaseException:
        if launched_size() == 1:
            raise
        traceback.print_exc()
        return FAILURE


def _end_rank(code: int, together: bool) -> None:
    """End the job when this rank fails alone, not `together` with all others."""
    if "mpi4py.MPI" not in sys.modules:
        return
    from dpsvi.cluster.ranks.world import abort, world
    from dpsvi.files.launcher import launched_with_ulfm

    here = world()
    if here.frozen and together and code == 0 and launched_with_ulfm():
        print("dpsvi: finished, but without ranks that were silent", file=sys.stderr, flush=True)
        code = LOST
    # A fit that has failed on all ranks has not waited for any: one may be stopped.
    if not together or here.frozen or (here.failed and here.rank == 0):
        abort(code)


def _fail(args, message, code) -> int:
    from dpsvi.commands.wording import in_options

    if args.debug:
        traceback.print_exc()
    print(f"dpsvi {args.command}: {in_options(message, args)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
