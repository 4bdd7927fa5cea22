"""Ranks that are late at random moments: what counts as good, and what is on record stays there."""

import json

from experiments import late


def test_what_ends_badly_is_not_counted_as_good(tmp_path, monkeypatch):
    """It joins, comes after the end, is awaited, misses documents, fails, hangs."""
    good = {"exit": 0, "awaited": False, "joined": False, "perplexity": 800.0, "items": 90}
    ends = [
        {**good, "awaited": True},  # nobody is late
        {**good, "joined": True}, good, {**good, "awaited": True},
        {**good, "joined": True, "items": 80},
        {"exit": 5, "awaited": False, "joined": True, "stderr": "no"},
        {"exit": None, "awaited": True, "joined": False, "stderr": "a hang; "},
    ]  # fmt: skip
    left, calls = iter(ends), []

    def run(args, strategy, out, moment):
        calls.append(moment)
        return dict(next(left))

    monkeypatch.setattr(late, "run", run)
    path = tmp_path / "new" / "late.json"
    settings = ["--corpus", "it.txt", "--strategies", "gala", "--runs", "6", "--without", "1"]
    late.main([*settings, "--out", str(path)])
    line = "| gala | 6 | 1 | 1 | 1 | 3 | 800 | 800 |"
    assert line in path.with_suffix(".md").read_text()
    assert calls[0] is None and {rank for rank, *_ in calls[1:]} == {1, 2, 3}
    assert all(0 <= seconds <= 0.5 and 0 <= stopped <= 4 for _, seconds, stopped in calls[1:])
    late.main([*settings, "--out", str(path)])
    assert len(calls) == 7, "what is on record is not tried again"
    assert list(json.loads(path.read_text())["strategies"]) == ["gala"]
