"""Strengths of the rule for minor topics: what is compared, and what the table says of it."""

import json

import pytest
from reference.lda import TopicCorpus
from tools.corpus_writers import write_small

from experiments.sharpness import main, table


def test_percent_of_strength_0():
    cell = {"corpus": "some", "model": "20", "tokens a word": 50.0}
    rows = [
        {**cell, "sharp": 0.0, "perplexity": [90.0, 110.0]},
        {**cell, "sharp": 3.0, "perplexity": [95.0, 95.0]},
    ]
    lines = table(rows).splitlines()
    assert lines[2] == "| some | 20 | 2.5 | 100 | -5.0 |"
    assert lines[3:] == ["| mean | | | | -5.0 |", "| largest | | | | -5.0 |"]


def test_from_end_to_end(tmp_path):
    """Strengths are compiled in: each is another fit."""
    drawn = TopicCorpus(3, 40, n_documents=400, n_tokens=60, alpha=0.1, seed=0)
    path = write_small(tmp_path, drawn.counts)
    out = tmp_path / "out"
    main([str(path), "--models", "10,hdp", "--passes", "5", "--seeds", "1", "--out", str(out)])
    rows = json.loads((out / "sharpness.json").read_text())["rows"]
    assert [(row["model"], row["sharp"]) for row in rows] == [
        ("10", 0), ("hdp", 0), ("10", 2), ("hdp", 2),
    ]  # fmt: skip
    assert rows[2]["perplexity"] != rows[0]["perplexity"], "compiled with another strength"
    assert rows[3]["perplexity"] != rows[1]["perplexity"]
    assert (out / "sharpness.md").read_text().count("| small |") == 2


@pytest.mark.parametrize("given", ["3", "1,3", "0,3,2"])
def test_strengths(given, capsys):
    with pytest.raises(SystemExit):
        main(["docword.x.txt", "--sharp", given])
    assert "--sharp must begin with 0" in capsys.readouterr().err
