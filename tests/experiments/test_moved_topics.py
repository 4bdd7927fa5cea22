"""Topics that are moved: what is compared with what."""

import json

import numpy as np

from experiments.digests.sides import ROOT
from experiments.moved_topics import draw, main, table
from experiments.provenance import git_revision


def test_gains_are_over_plain_fits_of_the_same_seed():
    def row(way, seed, score, topics, moves=None):
        return {
            "way": way, "seed": seed, "score": score, "topics": topics, "cpu_seconds": 2.0,
            "moves": moves,
        }  # fmt: skip

    rows = [
        row("plain", 0, -6.0, 9), row("plain", 1, -5.0, 8),
        row("restructure", 0, -5.5, 20, {"merge": 1, "birth": 2}),
        row("restructure", 1, -5.25, 30, {"merge": 0, "birth": 3}),
    ]  # fmt: skip
    assert table({"m10": rows}).splitlines()[2:] == [
        "| m10 | plain | -5.5000 |  | 9, 8 | 2.0 |  |",
        "| m10 | restructure | -5.3750 | +0.1250 (-0.2500 to +0.5000) | 20, 30 | 2.0 | 0.5, 2.5 |",
    ]


def test_drawn_documents_have_the_words_of_their_topics():
    train, test = draw((3, 40, 500, 30), seed=1)
    assert len(train) == 500 and len(test) == 300
    assert np.diff(train.offsets).max() <= 40
    assert 29 < train.value.sum() / 500 < 31
    other, _ = draw((3, 40, 500, 30), seed=2)
    assert other.value.sum() != train.value.sum()


def test_from_end_to_end(corpus_file, tmp_path):
    main(["drawn-5", str(corpus_file), "--seeds", "1", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "topics.json").read_text())
    assert list(found["rows"]) == ["drawn-5", "known"] and found["git"] == git_revision(ROOT)
    assert [r["way"] for r in found["rows"]["known"]] == ["plain", "restructure"]
    assert found["rows"]["drawn-5"][1]["topics"] == 5
    lines = (tmp_path / "topics.md").read_text().splitlines()
    assert lines[2].startswith("`python -m experiments.moved_topics drawn-5 docword.known.txt")
    assert len([line for line in lines if line.startswith("| known |")]) == 2
