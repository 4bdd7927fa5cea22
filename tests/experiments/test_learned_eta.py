"""Eta that is learned or not: what is compared, and what the table says of it."""

import json

import pytest
from reference.lda import TopicCorpus
from tools.corpus_writers import write_small

from experiments.learned_eta import main, make, table


def test_names_of_models():
    assert make("hdp").n_components == 150
    for name, step in (("20", "collapsed"), ("s20", "sparse"), ("m20", "mean_field")):
        assert (make(name).n_components, make(name).local_step) == (20, step)


def test_percent_above_the_fixed_one():
    rows = [
        {"corpus": corpus, "model": "20", "None": [90.0, 110.0], "auto": auto, "eta None": 0.1,
         "eta auto": 0.2} for corpus, auto in (("a", [95.0, 95.0]), ("b", [101.0, 101.0]))
    ]  # fmt: skip
    assert "| a | 20 | 0.1 | 0.2 | 100 | -5.0 |" in table(rows)
    assert "| 20 | | | | -2.0 (-5.0 to +1.0) |" in table(rows)


def test_from_end_to_end(tmp_path):
    drawn = TopicCorpus(3, 40, n_documents=300, n_tokens=40, alpha=0.3, seed=0)
    path = write_small(tmp_path, drawn.counts)
    given = ["--models", "3,m3,s3,hdp", "--passes", "3", "--seeds", "1"]
    main([str(path), *given, "--out", str(tmp_path / "out")])
    rows = json.loads((tmp_path / "out/learned_eta.json").read_text())["rows"]
    assert [row["model"] for row in rows] == ["3", "m3", "s3", "hdp"]
    for row in rows:
        assert row["eta auto"] != row["eta None"]
        assert row["auto"][0] == pytest.approx(row["None"][0], rel=0.2)
    assert "| small | hdp |" in (tmp_path / "out/learned_eta.md").read_text()
