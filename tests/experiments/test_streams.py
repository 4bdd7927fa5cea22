"""Streams beside a pass of `fit`: what is measured, and that the table says it."""

import json

import pytest
from tools.corpus_writers import write_small

from experiments.streams import gap, main


def test_gap():
    found = {"fit": [100.0, 200.0], "100": [110.0, 200.0 * 1.1]}
    assert gap(found, "100") == pytest.approx(0.1)


def test_from_end_to_end(rng, tmp_path):
    write_small(tmp_path, rng.poisson(0.8, size=(120, 30)))
    main([str(tmp_path), "--topics", "3", "--seeds", "1", "--out", str(tmp_path / "out")])
    (row,) = json.loads((tmp_path / "out/streams.json").read_text())["rows"]
    assert set(row["perplexity"]) == {"fit", "100", "1,000", "10,000", "1,000, N known"}
    assert all(value > 1 for values in row["perplexity"].values() for value in values)
    assert row["perplexity"]["1,000"] == row["perplexity"]["10,000"], "one call each"
    page = (tmp_path / "out/streams.md").read_text()
    assert "| small | 3 |" in page
    (tmp_path / "out/streams.md").unlink()
    main(["nowhere", "--redraw", "--out", str(tmp_path / "out")])
    assert (tmp_path / "out/streams.md").read_text() == page
