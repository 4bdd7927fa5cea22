"""Kills at random moments: what is on record stays there, and a run that was stopped goes on."""

import json

import pytest

from experiments import kills


class Runs(list):
    """Strategy and kill of every run; the one that makes them `stop_at` is stopped, as by Ctrl-C.

    No process is started: the perplexity of a run is its number.
    """

    stop_at = None

    def run(self, args, strategy, out, kill):
        self.append((strategy, kill))
        if len(self) == self.stop_at:
            raise KeyboardInterrupt
        return {"exit": 0, "named": kill is not None, "perplexity": float(len(self)), "items": 90}


@pytest.fixture
def runs(monkeypatch):
    found = Runs()
    monkeypatch.setattr(kills, "run", found.run)
    return found


def test_what_is_on_record_stays_and_a_stopped_run_goes_on(tmp_path, runs):
    path = tmp_path / "new" / "kills.json"
    settings = ["--corpus", "it.txt", "--kills", "4", "--without", "2", "--out", str(path)]

    def record():
        return json.loads(path.read_text())["strategies"]

    kills.main([*settings, "--strategies", "decay"])
    first = record()
    assert list(first) == ["decay"] and len(runs) == 6
    assert first["decay"]["command"].endswith("--strategies decay")
    runs.stop_at = 6 + 6 + 5  # in the middle of the second strategy that is new
    with pytest.raises(KeyboardInterrupt):
        kills.main([*settings, "--strategies", "gala,decay,gossip"])
    second = record()
    assert list(second) == ["decay", "gala"] and second["decay"] == first["decay"]
    assert second["gala"]["command"].endswith("--strategies gala,decay,gossip")
    # The same command again makes what is missing, with the same moments, and nothing else.
    runs.clear()
    kills.main([*settings, "--strategies", "gala,decay,gossip"])
    third = record()
    assert [strategy for strategy, _ in runs] == ["gossip"] * 6
    assert list(third) == ["decay", "gala", "gossip"]
    assert {name: third[name] for name in second} == second

    def moments(name):
        return [(row["rank"], row["seconds"]) for row in third[name]["kills"]]

    assert moments("gossip") == moments("decay") == [kill for _, kill in runs[2:]]
    lines = path.with_suffix(".md").read_text().splitlines()
    for name in third:
        (line,) = [line for line in lines if line.startswith(f"| {name} |")]
        assert line.startswith(f"| {name} | 4 | 4 | 0 | 0 |")
    runs.clear()
    kills.main([*settings, "--strategies", "decay"])
    assert not runs and record() == third


def test_what_ends_badly_is_not_counted_as_good(tmp_path, monkeypatch):
    """One run each: it goes on, is killed after its end, fails, misses documents, hangs."""
    good = {"exit": 0, "named": True, "perplexity": 800.0, "items": 90}
    ends = [
        {**good, "named": False},  # without a kill
        good, {**good, "named": False}, {"exit": 5, "named": True, "stderr": "no"},
        {**good, "items": 80}, {"exit": None, "named": False, "stderr": "a hang; "},
    ]  # fmt: skip
    left = iter(ends)
    monkeypatch.setattr(kills, "run", lambda *args: next(left))
    path = tmp_path / "kills.json"
    kills.main(["--corpus", "it.txt", "--kills", "5", "--without", "1", "--out", str(path)])
    facts = json.loads(path.read_text())["strategies"]["decay"]
    assert (facts["went_on"], facts["killed_after_the_end"]) == (1, 1)
    assert "| decay | 5 | 1 | 1 | 3 | 800 | 800 |" in path.with_suffix(".md").read_text()
