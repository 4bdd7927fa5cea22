"""Hosts that are network namespaces of one machine, on a bridge, and ``mpiexec`` across them.

Each has a host name of its own; Open MPI starts its daemons there through ``agent.sh`` in place of
ssh, and all traffic is TCP.  Linux, root, iproute2, Open MPI.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

PREFIX, SUBNET = "dpsvi-", "10.77.0"
AGENT = Path(__file__).with_name("agent.sh")
# Not resolved: the interpreter of a virtual environment is a link out of it.
MPIEXEC = Path(sys.executable).parent / "mpiexec"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def possible() -> bool:
    """Whether hosts can be made here, and the ``mpiexec`` beside Python is Open MPI's."""
    answers = []
    try:
        for command in (["unshare", "--net", "ip", "link"], ["tc", "-V"], [MPIEXEC, "--version"]):
            answers.append(subprocess.run(command, capture_output=True, text=True, check=True))
    except (OSError, subprocess.CalledProcessError):
        return False
    return "Open MPI" in answers[-1].stdout


def ip(*arguments, check: bool = True) -> str:
    """Run ``ip`` and return what it printed."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if check and done.returncode:
        raise OSError(f"ip {shlex.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def hosts(numbers: Sequence[int]):
    """Make hosts with these numbers, and take them away again whatever happens in the block."""
    if ip("link", "show", f"{PREFIX}br", check=False):
        raise FileExistsError(
            f"there is a bridge {PREFIX}br: another run is going on, or was killed; "
            "python -m experiments.cluster.hosts --clean removes what it left"
        )
    try:
        ip("link", "add", f"{PREFIX}br", "type", "bridge")
        ip("link", "set", f"{PREFIX}br", "up")
        for n in numbers:
            name, port = f"{PREFIX}h{n}", f"{PREFIX}v{n}"
            ip("netns", "add", name)
            ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", port, "master", f"{PREFIX}br", "up")
            ip("-n", name, "addr", "add", f"{SUBNET}.{n}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        with undisturbed():
            remove_hosts(numbers)


@contextmanager
def undisturbed():
    """Ignore the signals that end a run while the block cleans up after it."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def remove_hosts(numbers: Sequence[int]) -> None:
    """Kill what runs on the hosts and remove them."""
    for n in numbers:
        for process in processes(n):
            kill(process)
        ip("netns", "del", f"{PREFIX}h{n}", check=False)
        # A link outlives its namespace while a killed process still holds that.
        ip("link", "del", f"{PREFIX}v{n}", check=False)
    ip("link", "del", f"{PREFIX}br", check=False)


def limit(host: int, bytes_a_second: float) -> None:
    """Let a host's link carry so much each way, as a token bucket of two packets does."""
    rate = ["tbf", "rate", f"{8 * bytes_a_second:.0f}bit", "burst", "3028", "limit", "1000000"]
    inside = ["ip", "netns", "exec", f"{PREFIX}h{host}"]
    for before, device in ((inside, "eth0"), ([], f"{PREFIX}v{host}")):
        subprocess.run([*before, "tc", "qdisc", "add", "dev", device, "root", *rate], check=True)


def processes(host: int) -> list[int]:
    """Numbers of the processes on a host."""
    return [int(n) for n in ip("netns", "pids", f"{PREFIX}h{host}", check=False).split()]


def kill(process: int, number=signal.SIGKILL) -> None:
    """Send a signal to a process that may have gone."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def mpiexec(slots: dict[int, int], *options: str) -> list[str]:
    """What goes before a command that is to have so many ranks on each host.

    Ranks are numbered in the order of the hosts: those of the first one come first.
    """
    places = ",".join(f"{SUBNET}.{host}:{n}" for host, n in slots.items())
    words = [
        MPIEXEC, *options,
        "--prtemca", "plm_ssh_agent", AGENT, "--prtemca", "prte_if_include", f"{SUBNET}.0/24",
        # By node, too many ranks of one host would go to the others in turn.
        "--host", places, "--map-by", "slot:oversubscribe", "--bind-to", "none",
        "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
        "--mca", "btl_tcp_if_include", f"{SUBNET}.0/24", "-n", sum(slots.values()),
    ]  # fmt: skip
    return [str(word) for word in words]


def on_host(host: int, command: Sequence[str]) -> list[str]:
    """`command` as one that runs on a host."""
    return [str(AGENT), f"{SUBNET}.{host}", "exec", shlex.join(command)]
