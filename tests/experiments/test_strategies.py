"""The table of strategies: documents by group, and what it says."""

import gzip
import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from tools.corpus_writers import write

from experiments.strategies import GROUPS, load, main, table


@pytest.fixture
def folder(tmp_path, rng):
    """1,400 documents of 20 groups, each of which has 3 words of its own."""
    labels = rng.integers(GROUPS, size=1400)
    counts = rng.poisson(0.05, size=(1400, 3 * GROUPS))
    for own in range(3):
        counts[np.arange(1400), 3 * labels + own] += 3
    write(tmp_path, csr_array(counts), "uci", gz=True).rename(tmp_path / "docword.20news.txt.gz")
    with gzip.open(tmp_path / "labels.20news.txt.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"train\tgroup{label:02}\t{i}\n" for i, label in enumerate(labels))
    return tmp_path


def test_the_documents_of_a_worker_are_of_one_group(folder):
    train, test = load(folder, 10)
    assert train.n_items == 10 * GROUPS and test.n_items == 1000
    dense = train.to_csr().toarray().reshape(10, GROUPS, GROUPS, 3).sum(axis=3)
    assert np.all(dense.argmax(axis=2) == np.arange(GROUPS))


def test_from_end_to_end(folder, capsys):
    main([
        str(folder), "--only", "decay,gossip", "--workers", "2", "--passes", "1", "--seeds", "1",
        "--documents", "10", "--topics", "3", "--apart", "2", "--out", str(folder / "out"),
        "--option", "gossip.probability=0.3",
    ])  # fmt: skip
    found = json.loads((folder / "out/strategies.json").read_text())
    assert found["simulated"] and list(found["rows"]) == ["decay", "gossip"]
    assert found["rows"]["decay"][0]["n = 2"]["perplexity"] > 1
    text = (folder / "out/strategies.md").read_text()
    assert text.startswith("# Strategies, simulated") and "| gossip |" in text


def test_the_table_says_what_was_found(folder):
    class Asked:
        workers, apart, only_n, own = [4], 8, False, {"decay": {"rate": 0.5}}

    good = {"perplexity": 110.0, "seconds": 2.0, "bytes": 1234.5}
    row = {"n = 4": good, "one group each": {"failed": "NaN"}, "none slow": good,
           "one slow": {**good, "seconds": 5.0}}  # fmt: skip
    text = table([{"perplexity": 100.0}], {"decay": [row, row]}, Asked)
    assert text.splitlines()[-1] == "| decay | +10.0 % | diverged | 2.5 times | 1,234 |"
    Asked.only_n = True
    text = table([{"perplexity": 100.0}], {"decay": [row, row]}, Asked)
    assert text.splitlines()[-1] == "| decay, rate 0.5 | +10.0 % | 1,234 |"
