"""Where a measurement comes from: machine, versions, revision, command, date, seeds.

A figure without these is an anecdote.  Every experiment stores them beside its numbers.
"""

from __future__ import annotations

import platform
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import dpsvi

_ROOT = Path(__file__).resolve().parent.parent
_STATUS = ["status", "--porcelain", "-uno", "--", ".", ":(exclude)experiments/results"]


def provenance(
    module: str,
    arguments: Sequence[str],
    packages: Iterable[str],
    seeds: Mapping[str, int | list[int]],
) -> dict:
    """Describe a measurement about to be made, in values that JSON can hold.

    Parameters
    ----------
    module : str
        What ``python -m`` was given.
    arguments : sequence of str
        The rest of the command line; absolute paths are kept by their last part only, since
        folders say nothing about a measurement and much about the person who made it.
    packages : iterable of str
        Distributions whose versions matter besides dpsvi's; None stands for one not installed.
    seeds : mapping from what is drawn to its seed or seeds

    Returns
    -------
    dict
        Keys ``date`` (UTC, ISO 8601), ``command``, ``git``, ``python``, ``hardware``,
        ``versions``, ``seeds``.
    """
    # Here, since experiments run with the dpsvi of other revisions, too.
    from dpsvi.files.environment import hardware, versions

    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command(module, arguments),
        "git": git_revision(_ROOT),
        "python": platform.python_version(),
        "hardware": hardware(),
        "versions": {"dpsvi": dpsvi.__version__, **versions(packages)},
        "seeds": dict(seeds),
    }


def described(source: Mapping) -> str:
    """Return the line that a table of results begins with: command, date, machine, versions."""
    return (
        f"`{source['command']}`; {source['date']}; {source['hardware']['processor']}, "
        f"{source['hardware']['cores']} cores; "
        f"{named_versions(source['versions'])}"
    )


def named_versions(versions: Mapping) -> str:
    """Return versions as a reader wants them: ``dpsvi 0.2.0, numpy 2.4.6``.

    Packages that were not installed, which have None, are left out.

    Examples
    --------
    >>> named_versions({"dpsvi": "0.2.0", "gensim": None, "numpy": "2.4.6"})
    'dpsvi 0.2.0, numpy 2.4.6'
    """
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version)


def command(module: str, arguments: Sequence[str]) -> str:
    """Return the command line, ready for a shell, without the folders of absolute paths."""
    parts = (Path(part).name if Path(part).is_absolute() else part for part in arguments)
    return shlex.join(["python", "-m", module, *parts])


def git_revision(folder: Path) -> dict | None:
    """Return the revision checked out in `folder` and whether tracked files differ from it.

    Results of experiments do not count: a measurement that goes on for hours writes some itself.
    None where there is no git or no repository.
    """
    try:
        revision, changes = (
            subprocess.run(
                ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
            ).stdout.strip()
            for arguments in (["rev-parse", "HEAD"], _STATUS)
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"revision": revision, "modified": bool(changes)}
