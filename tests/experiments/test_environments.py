"""The command that measures environments and compares them with their references."""

import json

from experiments.environments import __main__ as command


def test_rates_stand_beside_the_peers(tmp_path):
    command.main(
        ["--environments", "cartpole,breakout", "--seconds", "0.02", "--repeats", "2",
         "--out", str(tmp_path)]
    )  # fmt: skip
    found = json.loads((tmp_path / "rates.json").read_text())
    assert found["versions"]["minatar"] and found["hardware"]["cores"]
    for row, peers in zip(found["rows"], (["gymnasium"], ["minatar"]), strict=True):
        rates = row["moves_per_second"]
        for peer in peers:
            assert min(rates["dpsvi"]) > 5 * max(rates[peer])
    assert "times as fast" in (tmp_path / "rates.md").read_text()


def test_a_check_says_what_it_saw(tmp_path):
    command.main(["--environments", "cartpole,breakout", "--check", "500", "--out", str(tmp_path)])
    rows = json.loads((tmp_path / "check.json").read_text())["rows"]
    assert [(row["environment"], row["sticky"], row["moves"]) for row in rows] == [
        ("breakout", 0.0, 500), ("breakout", 0.1, 500),
    ]  # fmt: skip
    assert "| breakout | 0.1 | 500 |" in (tmp_path / "check.md").read_text()
    (row,) = json.loads((tmp_path / "check-control.json").read_text())["rows"]
    assert (row["environment"], row["moves"]) == ("cartpole", 500) and row["apart"] < 1e-6
    assert "| cartpole | 500 |" in (tmp_path / "check-control.md").read_text()
