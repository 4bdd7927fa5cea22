"""Kept responsibilities on virtual workers: what is compared with what."""

import json

import numpy as np
import pytest
from tools.corpus_writers import write_small

from dpsvi.families.topics import kept
from experiments.digests.sides import ROOT
from experiments.kept_workers import main, table
from experiments.provenance import git_revision


def test_perplexities_are_compared_with_serial_fits_of_the_same_seed():
    rows = [
        {"cell": cell, "kept": keeps, "seed": seed, "perplexity": value, "tokens": 99.0}
        for cell, keeps, seed, value in (
            (None, True, 0, 100.0), (None, True, 1, 200.0), (None, False, 0, 110.0),
            (None, False, 1, 220.0), ((8, 2), True, 0, 101.0), ((8, 2), True, 1, 206.0),
            ((8, 2), False, 0, 99.0), ((8, 2), False, 1, 202.0),
        )
    ]  # fmt: skip
    lines = table(rows, 100.0).splitlines()
    assert "perplexity 100.0, 200.0" in lines[0]
    assert lines[-2:] == [
        "| serial | +0.00 ± 0.00 (+0.00 to +0.00) | +10.00 ± 0.00 (+10.00 to +10.00) | 0.990000 |",
        "| n = 8, p = 2 | +2.00 ± 1.00 (+1.00 to +3.00) | +0.00 ± 1.00 (-1.00 to +1.00) "
        "| 0.990000 |",
    ]
    plain = table([row for row in rows if not row["kept"]], 100.0).splitlines()
    assert "Serial, not kept: perplexity 110.0, 220.0" in plain[0]
    assert plain[-1] == "| n = 8, p = 2 | -9.09 ± 0.91 (-10.00 to -8.18) | 0.990000 |"


@pytest.mark.parametrize(("model", "name"), [("lda", "small"), ("hdp", "small-hdp")])
def test_from_end_to_end(model, name, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "KEPT_SHARE", kept.KEPT_SHARE)  # `main` sets it
    path = write_small(tmp_path, rng.poisson(0.6, size=(80, 30)))
    out = tmp_path / "out"
    given = ["--model", model, "--cells", "3x2", "--topics", "3", "--passes", "4", "--share", "2"]
    main([str(path), *given, "--seeds", "1", "--out", str(out)])
    found = json.loads((out / f"{name}-one-of-2.json").read_text())
    assert [row["cell"] for row in found["rows"]] == [None, None, [3, 2], [3, 2]]
    kept_ones = [row["tokens"] for row in found["rows"] if row["kept"]]
    np.testing.assert_allclose(kept_ones, found["tokens"], rtol=1e-4)
    assert found["simulated"] and found["git"] == git_revision(ROOT)
    assert "| n = 3, p = 2 |" in (out / f"{name}-one-of-2.md").read_text()
