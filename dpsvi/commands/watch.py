"""``dpsvi watch DIR``: a page in the browser that shows a run while it goes on."""

from __future__ import annotations

import argparse
import sys

from dpsvi.commands.arguments import add_model_argument
from dpsvi.commands.outputs import emit
from dpsvi.errors import DataFormatError, Terminated, UsageError


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        metavar="N",
        help="port of 127.0.0.1 to listen on [any that is free]",
    )


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 1 << 16:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be an integer from 0 to {(1 << 16) - 1}, got {text!r}")


def run(args) -> None:
    """Serve the page until Ctrl-C."""
    from dpsvi.report.live import LivePage, Server

    page = LivePage(args.model)
    try:
        page.content()
    except (OSError, ValueError) as error:
        raise DataFormatError(str(error)) from error
    try:
        server = Server(page, args.port)
    except OSError as error:
        raise UsageError(f"--port {args.port}: cannot be used: {error.strerror}") from error
    with server:
        text = f"{server.address} shows {args.model}; Ctrl-C ends it"
        emit(args, {"address": server.address, "run_folder": args.model}, text)
        sys.stdout.flush()
        try:
            server.serve_forever()
        except Terminated as signalled:
            if signalled.code != 130:  # that of Ctrl-C, which is how this command ends
                raise
