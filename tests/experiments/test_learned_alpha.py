"""Factors of a learned alpha: what is compared, and what the table says of it."""

import json

import pytest
from reference.lda import TopicCorpus
from tools.corpus_writers import write_small

from experiments.learned_alpha import FACTORS, above, main, summary


def test_percent_above_the_lowest():
    rows = [
        {"perplexity": 110.0, "by_factor": {1.0: 100.0, 2.0: 120.0}},
        {"perplexity": 100.0, "by_factor": {1.0: 101.0, 2.0: 100.0}},
    ]
    assert above(rows[0]) == pytest.approx({1.0: 0, 2.0: 20, "by tokens": 10})
    assert "| 2 | 10.00 | 20.00 |" in summary(rows)
    assert "| by tokens | 5.00 | 10.00 |" in summary(rows)


def test_from_end_to_end(tmp_path):
    drawn = TopicCorpus(3, 40, n_documents=300, n_tokens=40, alpha=0.3, seed=0)
    path = write_small(tmp_path, drawn.counts)
    main([str(path), "--topics", "3", "--passes", "5", "--out", str(tmp_path / "out")])
    (row,) = json.loads((tmp_path / "out/learned_alpha.json").read_text())["rows"]
    assert row["K"] == 3 and 1 < row["taken"] < 2
    assert len(row["by_factor"]) == len(FACTORS)
    assert 1 < min(row["by_factor"].values()) <= 1.02 * row["perplexity"]
    assert row["by_factor"]["0.5"] != row["by_factor"]["4.0"]
    assert "| small | 3 |" in (tmp_path / "out/learned_alpha.md").read_text()
