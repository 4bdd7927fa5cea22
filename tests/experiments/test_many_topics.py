"""What a pass costs as the number of topics grows."""

import json

from tools.corpus_writers import write_small

from experiments.many_topics import main


def test_from_end_to_end(rng, tmp_path):
    """The sparse step is fitted with all numbers of topics, the others up to a number."""
    path = write_small(tmp_path, rng.poisson(0.4, size=(80, 30)))
    main([str(path), "--topics", "4,50", "--most", "10", "--out", str(tmp_path / "out")])
    found = json.loads((tmp_path / "out/many_topics.json").read_text())
    fitted = [(row["step"], row["topics"]) for row in found["rows"]]
    assert fitted == [("sparse", 4), ("sparse", 50), ("collapsed", 4)]
    for row in found["rows"]:
        assert 0 < row["microseconds"] < 1e3 and 1 < row["perplexity"] < 40
        assert row["bytes_a_pair"] == 0
    table = (tmp_path / "out/many_topics.md").read_text()
    assert table.count("| small |") == 3
