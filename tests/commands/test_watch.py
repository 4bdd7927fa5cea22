"""``dpsvi watch``: it says where the page is, serves it, and ends with Ctrl-C."""

import json
import os
import signal
import socket
import subprocess
import sys
from urllib.request import urlopen

import pytest
from tools.run_folders import append, data_of, make_run, row_of

from dpsvi.__main__ import main


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_serves_until_it_is_ended(number, code, tmp_path):
    run = make_run(tmp_path / "run")
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsvi", "watch", str(run), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    address = json.loads(process.stdout.readline())["address"]
    before = data_of(urlopen(address, timeout=30).read().decode())["curves"][0]["points"]
    append(run, json.dumps(row_of(9999, 9e5, 400, "perplexity", 700)) + "\n")
    after = data_of(urlopen(address, timeout=30).read().decode())["curves"][0]["points"]
    assert after == [*before, [9999, 9e5, 400, 700]]
    os.kill(process.pid, number)
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr
    assert not (run / "report.html").exists()  # nothing is written


def test_ports(tmp_path, capsys):
    run = make_run(tmp_path / "run")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["watch", str(run), "--port", str(port)]) == 2
    assert f"--port {port}: cannot be used: Address already in use" in capsys.readouterr().err
    for port in ("65536", "-1", "http"):
        with pytest.raises(SystemExit) as error:
            main(["watch", str(run), f"--port={port}"])
        assert error.value.code == 2
        assert f"from 0 to 65535, got '{port}'" in capsys.readouterr().err
