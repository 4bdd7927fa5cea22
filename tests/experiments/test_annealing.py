"""Annealed priors beside priors that hold from the beginning."""

import json

from tools.corpus_writers import write_small

from experiments.annealing import main
from experiments.digests.sides import ROOT
from experiments.provenance import git_revision


def test_from_end_to_end(rng, tmp_path):
    """Two fits of the same seed, which differ where the priors are larger than the default ones."""
    path = write_small(tmp_path, rng.poisson(0.4, size=(80, 30)))
    out = tmp_path / "out"
    for name, alpha in (("large", "2"), ("small", "0.001")):
        given = ["--topics", "6", "--passes", "4", "--alpha", alpha, "--eta", "0.001"]
        main([str(path), *given, "--name", name, "--out", str(out)])
        found = json.loads((out / f"{name}.json").read_text())
        (row,) = found["rows"]
        assert found["git"] == git_revision(ROOT) and row["corpus"] == "small"
        differ = row["plain"]["perplexity"] != row["annealed"]["perplexity"]
        assert differ == (name == "large")
        assert "| small | 6 | 4 |" in (out / f"{name}.md").read_text()
