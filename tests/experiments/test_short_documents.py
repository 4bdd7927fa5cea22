"""Mean field with other shares of passes remembered: what is cut, what is set back."""

import json

import numpy as np
from tools.corpus_writers import write_small

from dpsvi.corpus import as_corpus
from dpsvi.families.topics import defaults
from dpsvi.models.lda import estimator
from experiments.short_documents import cut, main


def test_documents_are_cut_to_some_of_their_tokens(rng):
    whole = as_corpus(rng.poisson(0.5, size=(50, 30)) + np.eye(50, 30, dtype=int))
    short = cut(whole, 7)
    before, after = (corpus.to_csr().toarray() for corpus in (whole, short))
    assert np.all(after <= before)
    np.testing.assert_array_equal(after.sum(axis=1), np.minimum(before.sum(axis=1), 7))
    assert cut(whole, 0) is whole


def test_from_end_to_end(rng, tmp_path):
    before = estimator.DEFAULTS["mean_field"], defaults.MOST_LONGER
    write_small(tmp_path, rng.poisson(0.6, size=(80, 30)))
    main([str(tmp_path), "small:12:3", "--out", str(tmp_path / "out")])
    (row,) = json.loads((tmp_path / "out/shares.json").read_text())["rows"]
    assert row["K"] == 3 and row["tokens_a_document"] <= 12
    assert all(value > 1 for values in row["perplexity"].values() for value in values)
    assert "| small | 3 |" in (tmp_path / "out/shares.md").read_text()
    assert (estimator.DEFAULTS["mean_field"], defaults.MOST_LONGER) == before
