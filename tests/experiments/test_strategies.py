"""The table of strategies: items by group, choices, and what it says."""

import gzip
import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from tools.corpus_writers import write

from dpsvi import strategies
from experiments.strategies.__main__ import main
from experiments.strategies.problems import GROUPS, by_group, load
from experiments.strategies.settings import CHOICES, choices, named, split
from experiments.strategies.table import table


@pytest.fixture
def folder(tmp_path, rng):
    """2,000 documents of 20 groups, each of which has 3 words of its own."""
    labels = rng.integers(GROUPS, size=2000)
    counts = rng.poisson(0.05, size=(2000, 3 * GROUPS))
    for own in range(3):
        counts[np.arange(2000), 3 * labels + own] += 3
    write(tmp_path, csr_array(counts), "uci", gz=True).rename(tmp_path / "docword.20news.txt.gz")
    with gzip.open(tmp_path / "labels.20news.txt.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"train\tgroup{label:02}\t{i}\n" for i, label in enumerate(labels))
    return tmp_path


def test_the_documents_of_a_worker_are_of_one_group(folder):
    train, others = load(folder, 10)
    assert train.n_items == 10 * GROUPS and others.n_items == 1500
    dense = train.to_csr().toarray().reshape(10, GROUPS, GROUPS, 3).sum(axis=3)
    assert np.all(dense.argmax(axis=2) == np.arange(GROUPS))


def test_groups_of_points_are_slices(rng):
    points = rng.normal(size=(205, 3)) * [1.0, 10.0, 0.1]
    order = by_group(points)
    assert len(order) == 200 and len(set(order)) == 200
    middles = points[order, 1].reshape(10, GROUPS)
    assert np.all(np.diff(middles.max(axis=0)) * np.sign(middles[0, -1] - middles[0, 0]) > 0)


def test_every_strategy_chooses_from_as_many_settings():
    assert CHOICES.keys() <= set(strategies.names())
    for name in strategies.names():
        assert len(choices(name)) == 3 and choices(name)[0] is not choices(name)[1]
        for settings in choices(name):
            own, parameters = split(settings)
            strategies.get(name)(**own)
            assert parameters.keys() <= {"local_steps"}
    assert named({}) == "default" and named({"outer_rate": 0.5}) == "outer rate 0.5"


def test_from_end_to_end(folder):
    arguments = [
        str(folder), "--problems", "lda", "--only", "decay,gossip", "--workers", "2", "--seeds",
        "1", "--passes", "1", "--apart", "2", "--out", str(folder / "out"),
    ]  # fmt: skip
    main(arguments)
    found = json.loads((folder / "out/lda.json").read_text())
    assert found["simulated"] and list(found["rows"]) == ["decay", "gossip"]
    row = found["rows"]["gossip"]["seeds"][0]
    assert row.keys() == {"n = 2", "one group each", "none slow", "one slow"}
    assert row["n = 2"]["score"] < 0 == row["n = 2"]["outside"] and row["n = 2"]["bytes"] > 0
    assert len(found["rows"]["gossip"]["scores"]) == 3
    text = (folder / "out/lda.md").read_text()
    assert text.startswith("# Strategies, simulated: lda") and "| gossip |" in text
    main([*arguments, "--redraw"])
    assert (folder / "out/lda.md").read_text() == text


def test_the_table_says_what_was_found():
    def fit(score, **more):
        scores = [[1.0, score - 1], [2.0, score]]
        return {"scores": scores, "score": score, "seconds": 2.0, "bytes": 1234.5, "outside": 0.0,
                **more}  # fmt: skip

    row = {"n = 4": fit(-5.1), "one group each": {"failed": "DivergedError: NaN"},
           "none slow": fit(-5.1), "one slow": fit(-5.1, seconds=5.0, outside=0.1)}  # fmt: skip
    record = {
        "unit": "token", "workers": [4], "apart": 8, "serial": [fit(-5.0)],
        "rows": {"decay": {"settings": {"rate": 0.5}, "seeds": [row, row]}},
    }  # fmt: skip
    assert table(record).splitlines()[-1] == (
        "| decay | rate 0.5 | +10.0 | DivergedError | never | 2.5 times | 1,234 | 2 of 6 |"
    )
    row["n = 4"] = {**fit(-4.99), "scores": [[0.5, -5.01], [1.0, -4.99]]}
    assert "| -1.0 | DivergedError | 4.0 times |" in table(record)
