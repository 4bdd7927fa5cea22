"""Iterations on long documents: that the table says what was measured."""

import json

import pytest
from reference.lda import TopicCorpus
from scipy.sparse import csr_array
from tools.corpus_writers import write

from experiments import sweeps


def test_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "PASSES", 2)
    counts = csr_array(TopicCorpus(3, 40, 200, 20, 0.1, 0).counts)
    path = write(tmp_path, counts, "uci", gz=True)
    out = tmp_path / "out"
    sweeps.main([f"{path}:18:30", "--topics", "2", "3", "--seeds", "1", "--out", str(out)])
    rows = json.loads((out / "sweeps.json").read_text())["rows"]
    assert [(row["model"], row["K"]) for row in rows[::3]] == [
        ("DPSVILDA", 2), ("DPSVILDA", 3), ("DPSVIHDP", 3),
    ]  # fmt: skip
    assert {row["sweeps"] for row in rows} == set(sweeps.SWEEPS)
    assert 18 <= rows[0]["tokens"] <= 30 and rows[0]["documents"] < 200
    page = (out / "sweeps.md").read_text()
    first, second = rows[0]["perplexity"], rows[1]["perplexity"]
    share = rows[0]["topic_tokens"]
    assert 2 * 40 * share == pytest.approx(rows[0]["documents"] * rows[0]["tokens"])
    shown = f"{first:,.0f} | {second:,.0f} ({second / first:.3f}, "
    assert f"| {share:.2g} | DPSVILDA | 2 | {shown}" in page
