"""Figure 5 over TCP: hosts, the link between them, and workers that are slowed down."""

import json
import subprocess
import sys
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import pytest

from experiments.cluster import namespaces
from experiments.hsa2c import __main__ as command
from experiments.hsa2c import figure5, links, paced, paced_rank
from experiments.mpiexec import ROOT_MAY, finish, start


@pytest.fixture
def two_hosts():
    """Hosts 1 and 2, where they can be made."""
    if not namespaces.possible():
        pytest.skip("network namespaces need root, and ranks on them Open MPI")
    with ExitStack() as stack:
        try:
            stack.enter_context(namespaces.hosts((1, 2)))
        except FileExistsError as error:
            pytest.skip(str(error))
        yield


@pytest.mark.mpi
def test_ranks_lie_where_they_were_counted_for_and_the_link_is_limited(two_hosts, monkeypatch):
    for name, value in ROOT_MAY.items():
        monkeypatch.setenv(name, value)
    told = ["sh", "-c", "echo $OMPI_COMM_WORLD_RANK $(hostname)"]
    launch = namespaces.on_host(1, [*namespaces.mpiexec({1: 1, 2: 3}), *told])
    found = subprocess.check_output(launch, text=True, timeout=60)
    ranks = ["0 dpsvi-h1", "1 dpsvi-h2", "2 dpsvi-h2", "3 dpsvi-h2"]
    assert sorted(found.splitlines()) == ranks

    rate, n_bytes = 4e5, 200_000
    listen = (
        "import socket, time\n"
        "server = socket.create_server(('10.77.0.1', 9000)); print('ready', flush=True)\n"
        "peer, _ = server.accept(); began = time.perf_counter(); n = 0\n"
        "peer.sendall(b'!')  # nothing is sent before the clock runs\n"
        "while found := peer.recv(65536): n += len(found)\n"
        "print(n, time.perf_counter() - began)\n"
    )
    send = (
        "import socket; peer = socket.create_connection(('10.77.0.1', 9000)); peer.recv(1); "
        f"peer.sendall(bytes({n_bytes}))"
    )
    namespaces.limit(1, rate)
    listener = subprocess.Popen(
        namespaces.on_host(1, [sys.executable, "-c", listen]), stdout=subprocess.PIPE, text=True
    )
    assert listener.stdout.readline() == "ready\n"
    subprocess.run(namespaces.on_host(2, [sys.executable, "-c", send]), check=True, timeout=60)
    n, seconds = map(float, listener.communicate(timeout=60)[0].split())
    assert n == n_bytes and seconds > n_bytes / rate


def test_a_step_takes_as_long_as_on_a_slow_node_and_no_longer(monkeypatch):
    now, slept = [0.0], []

    def segment(done, seconds):
        now[0] += seconds
        return done

    clock = SimpleNamespace(perf_counter=lambda: now[0], sleep=slept.append)
    monkeypatch.setattr(paced_rank, "time", clock)
    monkeypatch.setattr(paced_rank, "run_segment", segment)
    assert paced_rank.slowly(0.02, 3, 0.01) == paced_rank.slowly(0.02, 3, 0.1) == 3
    assert slept == pytest.approx([0.05, 0.0])


@pytest.mark.mpi
def test_workers_are_slow_and_those_beside_the_master_are_found_out(monkeypatch):
    settings = {
        "environment": "cartpole", "hidden": [8], "n_games": 2, "n_moves": 5, "seed": 0, "n": 2,
        "link": "1 Gbit/s", "exchanges": {"4": 8, "16": 4}, "repeats": 1,
    }  # fmt: skip
    fits = finish(start(3, "experiments.hsa2c.paced_rank", json.dumps(settings)))
    assert [fit["B"] for fit in fits] == [4, 16]
    for fit in fits:
        moves = figure5.moves(
            {**settings, "B": fit["B"], "exchanges": settings["exchanges"][str(fit["B"])]}
        )
        assert moves / fit["seconds"] < 1.02 * 2 * paced.MOVES_A_SECOND
        assert fit["pace"] >= 1 and fit["rate"] > 0
    monkeypatch.setattr(links, "finish", lambda process, seconds: fits)
    monkeypatch.setattr(links.subprocess, "Popen", lambda *told, **more: None)
    monkeypatch.setattr(namespaces, "hosts", nullcontext)
    monkeypatch.setattr(namespaces, "limit", lambda host, rate: None)
    with pytest.raises(RuntimeError, match="fewer bytes crossed the link"):
        links.over_tcp(settings)


def test_medians_stand_beside_the_formula(tmp_path, monkeypatch):
    def over_tcp(settings):
        fits = [
            {"B": int(B), "rate": rate, "crossed": 1.1, "pace": 1.001}
            for B in settings["exchanges"]
            for rate in (90.0, 110.0, 100.0)
        ]
        return {"fits": fits, "load": 0.5}

    told = ["links", "--nodes", "2,8", "--out", str(tmp_path)]
    monkeypatch.setattr(links, "over_tcp", over_tcp)
    monkeypatch.setattr(namespaces, "possible", lambda: False)
    command.main(told)
    assert not any(tmp_path.iterdir()), "nothing is written where nothing can be run"
    monkeypatch.setattr(namespaces, "possible", lambda: True)
    command.main(told)
    assert len((tmp_path / "runs/links.jsonl").read_text().splitlines()) == 4
    text = (tmp_path / "links.md").read_text()
    assert "MEASURED" in text and "further than 10.0 %" in text
    cells = [f"100 ({figure5.prediction('1 Gbit/s', 64, n):,.0f})" for n in (2, 8)]
    assert f"| 64 | {cells[0]} | {cells[1]} |" in text
    assert (tmp_path / "links.png").stat().st_size > 1000
