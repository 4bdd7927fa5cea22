"""Incremental beside decayed passes: what is compared with what."""

import json

import pytest

from dpsvi.estimators import incremental
from experiments.digests.sides import ROOT
from experiments.incremental import PROBLEMS, main, table
from experiments.provenance import git_revision


def test_pairs_of_fits_are_compared():
    rows = [
        {"passes": 5, "n": n, "incremental": changes, "seed": seed, "score": score,
         "bound": 10 * score, "cpu_seconds": 1.0 + changes}
        for n, changes, seed, score in (
            (0, False, 0, 1.0), (0, False, 1, 3.0), (0, True, 0, 1.5), (0, True, 1, 3.1),
            (8, False, 0, 0.0), (8, False, 1, 2.0), (8, True, 0, 1.0), (8, True, 1, 1.5),
        )
    ]  # fmt: skip
    assert table(rows).splitlines()[2:] == [
        "| 5 | serial | 2.0000 | 2.3000 | +0.3000 (+0.1000 to +0.5000) | +3.0000 |  | 2.00 |",
        "| 5 | 8 | 1.0000 | 1.2500 | +0.2500 (-0.5000 to +1.0000) | +2.5000 | -1.0500 |  |",
    ]


@pytest.mark.parametrize("name", ["HMM, 25", "pixels"])
def test_from_end_to_end(name, tmp_path, monkeypatch):
    monkeypatch.setattr(incremental, "SHARE", incremental.SHARE)  # `main` sets it
    given = ["--only", name, "--cells", "3x0,3x2", "--seeds", "1", "--share", "1"]
    main([*given, "--out", str(tmp_path)])
    found = json.loads((tmp_path / "table-share-1.json").read_text())
    ((problem, rows),) = found["rows"].items()
    assert name in problem and problem in PROBLEMS
    assert [(row["n"], row["incremental"]) for row in rows] == [
        (0, False), (0, True), (2, False), (2, True),
    ]  # fmt: skip
    assert len({row["visits"] for row in rows}) == 1, "equal visits"
    assert found["simulated"] and found["git"] == git_revision(ROOT)
    assert "| 3 | 2 |" in (tmp_path / "table-share-1.md").read_text()
