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
        {"exit": 5, "awaited": False, "joined": True, "stderr": "late\ndpsvi fit: no\n--"},
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
    text = path.with_suffix(".md").read_text()
    assert line in text
    for reason in ("dpsvi fit: no", "it hung", "it missed documents"):
        assert f"\n* gala, 1 of 7 with those without: {reason}\n" in text
    assert calls[0] is None and {rank for rank, *_ in calls[1:]} == {1, 2, 3}
    assert all(0 <= seconds <= 0.5 and 0 <= stopped <= 4 for _, seconds, stopped in calls[1:])
    path.with_suffix(".md").unlink()
    late.main([*settings, "--out", str(path)])
    assert len(calls) == 7, "what is on record is not tried again"
    assert path.with_suffix(".md").read_text() == text
    assert list(json.loads(path.read_text())["strategies"]) == ["gala"]


def test_a_strategy_that_refuses_is_in_the_table_with_its_reason(tmp_path, monkeypatch):
    """The next one is tried all the same; each has its own command and revision."""

    def run(args, strategy, out, moment):
        facts = {"awaited": True, "joined": False}
        if strategy == "gala":
            return {**facts, "exit": 3, "stderr": "dpsvi fit: gala is for others\n" * 4}
        return {**facts, "exit": 0, "perplexity": 800.0, "items": 90}

    monkeypatch.setattr(late, "run", run)
    path = tmp_path / "late.json"
    settings = ["--corpus", "it.txt", "--runs", "2", "--without", "1", "--out", str(path)]
    late.main([*settings, "--strategies", "gala"])
    late.main([*settings, "--strategies", "gala,gossip"])
    text = path.with_suffix(".md").read_text()
    assert "| gala | 2 | 0 | 0 | 0 | 2 |  |  |\n| gossip | 2 | 0 | 0 | 2 | 0 | 800 | 800 |" in text
    assert text.endswith("\n\n* gala, 3 of 3 with those without: dpsvi fit: gala is for others\n")
    record = json.loads(path.read_text())
    for name, given in (("gala", "gala"), ("gossip", "gala,gossip")):
        assert record["strategies"][name]["command"].endswith(f"--strategies {given}")
        assert record["strategies"][name]["git"] == record["git"]
