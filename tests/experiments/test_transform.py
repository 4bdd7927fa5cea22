"""How fast `transform` is: what follows from CPU times, and that the table says it."""

import json

import pytest
from tools.corpus_writers import write_small

from experiments.transform import main, reckoned


def test_two_idle_cores():
    """A microsecond of the calling thread is one, of the other threads half of one."""
    assert reckoned({"caller_microseconds": 2.0, "cpu_microseconds": 8.0}) == pytest.approx(2e5)


def test_from_end_to_end(rng, tmp_path):
    write_small(tmp_path, rng.poisson(0.8, size=(120, 30)))
    main(
        [str(tmp_path), "--topics", "3", "--documents", "200000", "--entries", "9000",
         "--out", str(tmp_path / "out")]
    )  # fmt: skip
    (row,) = json.loads((tmp_path / "out/transform.json").read_text())["rows"]
    assert row["documents"] == pytest.approx(9000 / row["words"], abs=1)
    for form in ("corpus", "matrix"):
        assert 0 < row[form]["caller_microseconds"] <= row[form]["cpu_microseconds"] * 1.1
        assert 1 <= row[form]["memory"] < 100
    page = (tmp_path / "out/transform.md").read_text()
    assert f"| small | {row['words']:.0f} |" in page and "Below 50,000" in page
