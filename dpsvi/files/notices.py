"""What a fit says unasked: to the log where there is one, else to whoever started the program."""

from __future__ import annotations

import logging
import sys

from dpsvi.files.launcher import launched_rank

_shown: set[str] = set()


def notice(log: logging.Logger, message: str, *values) -> None:
    """Log `message` at INFO; without any handler of logs, show it on stderr.

    There it is shown once in a process, and by the first rank alone.  A program that gives the
    logger ``dpsvi`` or the root logger a handler, be it a ``NullHandler``, decides itself what is
    shown.

    Parameters
    ----------
    log : logging.Logger
    message : str
        With places for the `values`, as logging has them.
    *values : object
    """
    log.info(message, *values)
    text = message % values if values else message
    if log.hasHandlers() or launched_rank() or sys.stderr is None or text in _shown:
        return
    _shown.add(text)
    sys.stderr.write(f"dpsvi: {text}\n")
    sys.stderr.flush()
