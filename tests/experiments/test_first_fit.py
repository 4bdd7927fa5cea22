"""How long a first fit takes."""

import json

from experiments.first_fit import ALLOWED, main, table


def test_the_first_process_compiles_and_the_second_finds_it(tmp_path):
    """With a folder of their own, whatever was compiled before."""
    main(["--only", "matrix_factorization", "--repeats", "1", "--out", str(tmp_path)])
    (row,) = json.loads((tmp_path / "first_fit.json").read_text())["rows"]
    assert row["cold"]["compiled"] > 5 and row["warm"]["compiled"] == 0
    assert 0 < row["warm"]["processor"] < row["cold"]["processor"]


def test_what_takes_longer_than_allowed_is_named():
    """One that is too slow in both processes, and one that is not."""
    source = {"command": "", "date": "", "hardware": {"processor": "", "cores": 1}, "versions": {}}
    slow, fast = ({"processor": f, "seconds": f, "compiled": 1} for f in (9.0, 0.5))
    rows = [{"model": "a", "cold": slow, "warm": slow}, {"model": "b", "cold": fast, "warm": fast}]
    assert list(ALLOWED) == ["cold", "warm"]
    last = [line.split("|")[-2].strip() for line in table(rows, source).splitlines()[-2:]]
    assert last == ["no: cold, warm", "yes"]
