"""Components that are moved: what is compared with what."""

import json

from experiments.digests.sides import ROOT
from experiments.provenance import git_revision
from experiments.restructuring import main, table


def test_ways_are_compared_with_plain_fits_of_the_same_seed():
    rows = [
        {"init": "kmeans", "way": way, "seed": seed, "score": score, "bound": 2 * score,
         "cpu_seconds": 1.0, "moves": moves}
        for way, seed, score, moves in (
            ("plain", 0, 1.0, None), ("plain", 1, 3.0, None),
            ("restructure", 0, 1.5, {"merge": 1, "birth": 2}),
            ("restructure", 1, 2.5, {"merge": 0, "birth": 3}),
        )
    ]  # fmt: skip
    assert table(rows).splitlines()[2:] == [
        "| kmeans | plain | 2.000 |  | 4.000 | 1.00 |  |",
        "| kmeans | restructure | 2.000 | +0.000 (-0.500 to +0.500) | 4.000 | 1.00 | 0.5, 2.5 |",
    ]


def test_from_end_to_end(tmp_path):
    main(["--only", "digits, 16 features, K", "--seeds", "1", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "table.json").read_text())
    ((name, rows),) = found["rows"].items()
    assert "digits" in name and len(rows) == 9 and found["git"] == git_revision(ROOT)
    assert "| kmeans | restructure |" in (tmp_path / "table.md").read_text()
