"""A folder that one process at a time may write: a lock that ends with the process that holds it.

The system takes the lock away however the process ends, so nobody ever has to remove one that a
killed process has left.  Machines that share a file system share its locks, if it has any.
"""

from __future__ import annotations

import logging
import os
import platform
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

log = logging.getLogger(__name__)

_NAME = ".lock"  # of the file in the folder


class FolderLock:
    """The right to write a folder, which must be there: a context, or `acquire` and `release`.

    On Windows, and on file systems that know no locks, nothing is held; of a file system the log
    says so.

    Parameters
    ----------
    folder : path

    Raises
    ------
    FileExistsError
        On entry: another process holds it, or another object of this one.
    """

    def __init__(self, folder):
        self.path, self._file = Path(folder) / _NAME, None

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *error):
        self.release()

    def acquire(self) -> None:
        """See the class."""
        while fcntl is not None and self._file is None:
            file = open(self.path, "a+", encoding="utf-8")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "another process"
                file.close()
                raise FileExistsError(
                    f"{self.path.parent}: {holder} is writing this folder; wait until it has "
                    "ended, or take another folder"
                ) from None
            except OSError as error:
                log.warning(
                    "%s: its file system has no locks (%s): make sure that no other run writes it",
                    self.path.parent, error.strerror,
                )  # fmt: skip
                file.seek(0)
                if not file.read():  # else somebody holds it, in spite of that
                    self.path.unlink(missing_ok=True)
                file.close()
                return
            if not _is_at(file, self.path):
                file.close()  # its last holder has removed it meanwhile
                continue
            self._file = file
            with suppress(OSError):  # a disk that is full holds the lock, too
                os.ftruncate(file.fileno(), 0)
                os.write(file.fileno(), f"process {os.getpid()} on {platform.node()}\n".encode())

    def release(self) -> None:
        """Let others have it; nothing is to be done where it is not held."""
        if self._file is not None:
            self.path.unlink(missing_ok=True)  # before another one can hold it
            self._file.close()
            self._file = None


def _is_at(file, path: Path) -> bool:
    """Whether an open file is the one that has this name now."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
