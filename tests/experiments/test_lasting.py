"""Fits that find their end beside others: that the table says what was measured."""

import json

from reference.lda import TopicCorpus
from tools.corpus_writers import write_small

from experiments import lasting


def test_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(lasting, "LONG", 12)
    write_small(tmp_path, TopicCorpus(3, 40, 200, 20, 0.1, 0).counts)
    lasting.main([str(tmp_path), "--seeds", "1", "--out", str(tmp_path / "out")])
    (row,) = json.loads((tmp_path / "out/lasting.json").read_text())["rows"]
    assert row["at once"]["passes"] == row["auto"]["passes"] >= 10
    assert (row["default"]["passes"], row["long"]["passes"]) == (10, 12)
    page = (tmp_path / "out/lasting.md").read_text()
    assert f"| small | {row['K']} | {row['auto']['passes']} (" in page
