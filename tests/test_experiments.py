"""What several experiments share: where a number comes from, processes of their own, pairs."""

import json
import subprocess

import numpy as np
import pytest

from experiments import mpiexec, provenance


def test_provenance_hides_folders_and_is_json():
    found = provenance.provenance(
        "experiments.panel", ["/home/me/a b", "--topics", "3"],
        ["numpy", "no-such-package"], {"split": 1},
    )  # fmt: skip
    assert found["command"] == "python -m experiments.panel 'a b' --topics 3"
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["no-such-package"] is None
    assert found["hardware"]["processor"]
    json.dumps(found)


def test_git_revision_notices_changes(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=e"]
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True)

    assert provenance.git_revision(tmp_path) is None
    git("init", "-q")
    (tmp_path / "file").write_text("a")
    git("add", "file")
    git("commit", "-qm", "one")
    assert provenance.git_revision(tmp_path)["modified"] is False
    results = tmp_path / "experiments" / "results"
    results.mkdir(parents=True)
    (results / "table.md").write_text("1")
    git("add", ".")
    git("commit", "-qm", "two")
    (results / "table.md").write_text("2")
    assert provenance.git_revision(tmp_path)["modified"] is False
    (tmp_path / "file").write_text("b")
    found = provenance.git_revision(tmp_path)
    assert found["modified"] is True and len(found["revision"]) == 40


def test_threads_pairs_one_thread_with_many(tmp_path):
    from dpsvi.datasets import load_lee
    from experiments import threads

    corpus = tmp_path / "docword.lee.txt"
    lee = load_lee()
    lines = [lee.n_items, lee.n_features, lee.nnz]
    for d in range(lee.n_items):
        for j in range(lee.offsets[d], lee.offsets[d + 1]):
            lines.append(f"{d + 1} {lee.index[j] + 1} {int(lee.value[j])}")
    corpus.write_text("\n".join(map(str, lines)) + "\n")
    threads.main(
        ["--corpus", str(corpus), "--topics", "5", "--passes", "2", "--seeds", "1",
         "--local-steps", "mean_field", "--out", str(tmp_path)]
    )  # fmt: skip
    found = json.loads((tmp_path / "lee-5-topics-pairs.json").read_text())
    (row,) = found["rows"]
    assert row["1"]["tokens_per_second"] != row["p"]["tokens_per_second"]  # they were two fits
    ratio = row["p"]["perplexity"] / row["1"]["perplexity"]
    assert f"{ratio:.4f}" in (tmp_path / "lee-5-topics-pairs.md").read_text()


def test_what_a_process_of_its_own_printed(tmp_path, monkeypatch):
    (tmp_path / "told.py").write_text(
        "import sys, time\n"
        "print('first')\n"
        "time.sleep(float(sys.argv[1]))\n"
        "print('{\"x\": 1}' if len(sys.argv) < 3 else sys.exit('no such ' + sys.argv[2]))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert mpiexec.finish(mpiexec.start(0, "told", 0)) == {"x": 1}
    with pytest.raises(RuntimeError, match="no such thing"):
        mpiexec.finish(mpiexec.start(0, "told", 0, "thing"))
    slow = mpiexec.start(0, "told", 60)
    with pytest.raises(subprocess.TimeoutExpired):
        mpiexec.finish(slow, seconds=0.2)
    assert slow.returncode is not None, "nothing is left behind"
