"""The command line as on a system that lacks what only Linux, or only POSIX, has.

``python elsewhere.py ARGUMENTS`` runs ``dpsvi ARGUMENTS`` after these names have been taken away.
It shows that nothing calls them; whether the rest works there, only such a system can show.
"""

import builtins
import errno
import fcntl
import io
import os
import signal
import sys

import numba  # noqa: F401  (what other packages do at their import is not asked)
import scipy.stats  # noqa: F401
import sklearn.base  # noqa: F401

_OS = (
    "memfd_create", "sched_getaffinity", "register_at_fork", "fork", "sysconf", "uname",
    "O_DIRECTORY", "O_CLOEXEC",
)  # fmt: skip
_open, _os_open, _fsync, _stat = builtins.open, os.open, os.fsync, os.stat


def open_file(file, *given, **named):
    """Open a file that is no part of /proc."""
    if str(file).startswith("/proc"):
        raise FileNotFoundError(errno.ENOENT, "not on this system", str(file))
    return _open(file, *given, **named)


def stat(path, *given, **named):
    """Describe a file that is no part of /proc."""
    if str(path).startswith("/proc"):
        raise FileNotFoundError(errno.ENOENT, "not on this system", str(path))
    return _stat(path, *given, **named)


def open_descriptor(path, *given, **named):
    """Open a file that is no folder."""
    if os.path.isdir(path):
        raise PermissionError(f"{path} is a folder")
    return _os_open(path, *given, **named)


def flush(descriptor):
    """Flush a file that may be written to."""
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "open for reading only")
    _fsync(descriptor)


if __name__ == "__main__":
    for name in _OS:
        delattr(os, name)
    for name in ("SIGUSR1", "SIGUSR2", "SIGKILL", "SIGSTOP", "SIGCONT", "SIGHUP"):
        delattr(signal, name)
    sys.modules["fcntl"] = None
    builtins.open = io.open = open_file
    os.open, os.fsync, os.stat = open_descriptor, flush, stat
    from dpsvi.__main__ import main

    sys.exit(main())
