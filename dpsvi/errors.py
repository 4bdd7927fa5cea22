"""The errors and warnings dpsvi raises; each is also the built-in a caller would expect."""

from os import PathLike


class DpsviError(Exception):
    """Base of every error that dpsvi raises on purpose."""


class UsageError(DpsviError, ValueError):
    """A command was called with arguments that it does not take."""


class DataFormatError(DpsviError, ValueError):
    """A file that cannot be read as data; the message names the place and what is allowed."""

    @classmethod
    def at(cls, path: str | PathLike, line: int, reason: object) -> "DataFormatError":
        """Return the error for one line of a text file, worded ``file:line: reason``."""
        return cls(f"{path}:{line}: {reason}")


class CorpusFormatError(DataFormatError):
    """Data that cannot be a corpus; the message names the place, the value and what is allowed."""


class DivergedError(DpsviError, FloatingPointError):
    """The parameters hold NaN or infinity; nothing after the last checkpoint can be trusted."""


class Terminated(KeyboardInterrupt):
    """A signal asked the process to end; `code` is its exit status, 128 + signal number."""

    def __init__(self, number: int):
        super().__init__(number)
        self.code = 128 + number


class CorpusWarning(UserWarning):
    """A corpus was accepted, but holds something its owner may not expect."""


class RepeatedCorpusWarning(CorpusWarning):
    """The same matter once more, with counts that may differ; shown only if a filter asks for it.

    A cross-validation would say of each of its parts what it has said of the whole.
    """


class ModelFormatError(DpsviError, ValueError):
    """A saved model that is damaged, of another kind, or written by a newer version."""


class UnstableError(DpsviError, ValueError):
    """Rates and staleness for which the recursion of the master has no stable fixed point."""


class LostRankError(DpsviError, RuntimeError):
    """A rank that the fit cannot go on without has died or gone silent."""


class DroppedError(LostRankError, SystemExit):
    """The others have gone on without this rank.

    Where nobody catches it the process ends with 0: a failure would end the job of the others.
    """

    def __init__(self, message: str):
        super().__init__(message)
        self.code = 0


class LauncherError(DpsviError, RuntimeError):
    """The processes were started by another MPI than the one that is installed."""
