"""Starting ``mpiexec`` of either MPI, and finding its ranks to kill, stop or slow down."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
PYTHONS = {
    "openmpi": Path(os.environ.get("DPSVI_OPENMPI_PYTHON", sys.executable)),
    "mpich": Path(os.environ.get("DPSVI_MPICH_PYTHON", ROOT / ".venv-mpich/bin/python")),
}
_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "^ofi",  # which waits for a second in MPI_Init; ranks of one host do not use it
    "PYTHONUNBUFFERED": "1",
}


def _vendor(python):
    """Which MPI an interpreter's mpi4py uses, or None."""
    if not (python.parent / "mpiexec").exists():
        return None
    code = "from mpi4py import MPI; print(MPI.get_vendor()[0])"
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=240)
    return {"Open MPI": "openmpi", "MPICH": "mpich"}.get(answer.stdout.strip())


INSTALLED = [kind for kind, python in PYTHONS.items() if _vendor(python) == kind]


def needs(kind):
    """Skip where an MPI is not installed."""
    return pytest.mark.skipif(kind not in INSTALLED, reason=f"{kind} is not installed")


EVERY_MPI = [pytest.param(kind, marks=needs(kind)) for kind in PYTHONS]


def launch(kind, n, *arguments, options=(), python=None, stdin=None):
    """Start `n` ranks of ``python arguments`` with the launcher of `kind`; a :class:`Run`."""
    # --with-ft exists in Open MPI only; ranks share cores in tests.
    own = ["--oversubscribe", "--bind-to", "none"] if kind == "openmpi" else []
    mpiexec = PYTHONS[kind].parent / "mpiexec"
    # Open MPI leaves files of jobs that are killed, and does not start where a later launcher with
    # the same process number finds them.
    folder = TemporaryDirectory(prefix="mpi-", ignore_cleanup_errors=True)
    command = [mpiexec, *own, *options, "-n", str(n), python or PYTHONS[kind], *arguments]
    process = subprocess.Popen(
        [str(part) for part in command], stdin=stdin, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        env={**os.environ, **_ENVIRONMENT, "TMPDIR": folder.name}, start_new_session=True,
    )  # fmt: skip
    return Run(process, folder)


def faulty(faults, program, *arguments):
    """Arguments for :func:`launch`: a program with something wrong in it; see ``faults``."""
    path = Path(__file__).parent / "faults.py"
    return [path, json.dumps(faults), program, *arguments]


class Server:
    """Ranks that stay for many programs; see ``mpi_server``."""

    def __init__(self, kind, n):
        program = Path(__file__).parent / "mpi_server.py"
        self.run = launch(kind, n, "-m", "mpi4py", program, stdin=subprocess.PIPE)

    def call(self, program, *arguments, faults=None):
        """Have all ranks run a program, with `faults`."""
        self._tell([faults or {}, program, [str(argument) for argument in arguments]])
        while (line := self.run.process.stdout.readline()) and line != "done\n":
            pass
        if not line:
            pytest.fail(f"the ranks ended:\n{self.run.process.stderr.read()}")

    def stop(self):
        """Let the ranks end by themselves."""
        self._tell(None)  # not every mpiexec tells rank 0 that its stdin was closed
        assert self.run.wait() == 0, self.run.err

    def _tell(self, what):
        self.run.process.stdin.write(json.dumps(what) + "\n")
        self.run.process.stdin.flush()


@dataclass
class Run:
    """A running job."""

    process: subprocess.Popen
    folder: TemporaryDirectory  # of the job's temporary files; goes with the Run
    out: str = ""
    err: str = ""
    _known: dict = field(default_factory=dict)

    def ranks(self):
        """Process number of each rank that is there."""
        found = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                environment = (folder / "environ").read_bytes().split(b"\0")
                if os.getsid(int(folder.name)) != self.process.pid and not self._is_child(folder):
                    continue
            except (OSError, ProcessLookupError):
                continue
            values = dict(pair.split(b"=", 1) for pair in environment if b"=" in pair)
            rank = values.get(b"OMPI_COMM_WORLD_RANK", values.get(b"PMI_RANK"))
            command = (folder / "cmdline").read_bytes()
            if rank is not None and b"mpiexec" not in command and b"hydra" not in command:
                found[int(rank)] = int(folder.name)
        return found

    def _is_child(self, folder):
        """Whether the job's launcher is an ancestor."""
        number = int(folder.name)
        while number > 1:
            if number == self.process.pid:
                return True
            stat = (Path("/proc") / str(number) / "stat").read_text()
            number = int(stat.rsplit(")")[-1].split()[1])
        return False

    def send(self, rank, number=signal.SIGKILL):
        """Send a signal to one rank."""
        os.kill(self.ranks()[rank], number)

    def wait(self, timeout=240):
        """Exit code; the job and its output must be there within `timeout` seconds.

        That is for jobs that hang: nobody knows how busy the machine is.
        """
        try:
            self.out, self.err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.end()
            self.out, self.err = self.process.communicate()
            pytest.fail(f"no end after {timeout} s:\n{self.out}\n{self.err}")
        return self.process.returncode

    def end(self):
        """Kill whatever is left."""
        for number in self.ranks().values():
            os.kill(number, signal.SIGKILL)
        os.killpg(self.process.pid, signal.SIGKILL)


def until(condition, timeout=240.0):
    """Wait for a condition; returns its value."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return value
