"""What several experiments share: where a number comes from, processes of their own, pairs."""

import json
import subprocess

import numpy as np
import pytest

import dpsvi
from experiments import mpiexec, provenance
from experiments.record import kept


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
    named = provenance.described(found).partition(" cores; ")[2]
    assert named == f"dpsvi {dpsvi.__version__}, numpy {np.__version__}"


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


@pytest.fixture
def corpus(tmp_path):
    """A UCI file of a real corpus."""
    pytest.importorskip("gensim")
    from dpsvi.datasets import load_lee

    path, lee = tmp_path / "docword.lee.txt", load_lee()
    lines = [lee.n_items, lee.n_features, lee.nnz]
    for d in range(lee.n_items):
        for j in range(lee.offsets[d], lee.offsets[d + 1]):
            lines.append(f"{d + 1} {lee.index[j] + 1} {int(lee.value[j])}")
    path.write_text("\n".join(map(str, lines)) + "\n")
    return path


def test_threads_pairs_one_thread_with_many(corpus, tmp_path):
    from experiments import threads

    threads.main(
        ["--corpus", str(corpus), "--topics", "5", "--passes", "2", "--seeds", "1",
         "--local-steps", "mean_field", "--out", str(tmp_path)]
    )  # fmt: skip
    found = json.loads((tmp_path / "lee-5-topics-pairs.json").read_text())
    (row,) = found["rows"]
    assert row["1"]["tokens_per_second"] != row["p"]["tokens_per_second"]  # they were two fits
    ratio = row["p"]["perplexity"] / row["1"]["perplexity"]
    assert f"{ratio:.4f}" in (tmp_path / "lee-5-topics-pairs.md").read_text()


@pytest.mark.mpi
def test_scaling_tables_all_kinds_of_fits_beside_one_thread(corpus, tmp_path):
    from experiments import scaling

    given = ["--corpus", str(corpus), "--topics", "5", "--passes", "2", "--cores", "2",
             "--repeats", "1", "--out", str(tmp_path)]  # fmt: skip
    scaling.main(given)
    stem = tmp_path / "scaling-lee"
    rows = json.loads(stem.with_suffix(".json").read_text())["rows"]
    cells = [(row["kind"], row["threads"], row["workers"]) for row in rows]
    assert cells == [
        ("threads", 1, 0), ("threads", 2, 0), ("workers", 1, 1), ("workers", 1, 2),
        ("nothing exchanged", 2, 0),
    ]  # fmt: skip
    one, apart = rows[0], rows[-1]
    assert apart["perplexity"] == one["perplexity"] and "waiting" in rows[3]
    table = stem.with_suffix(".md")
    text = table.read_text()
    assert f"{rows[3]['documents_a_second'] / one['documents_a_second']:.2f}" in text
    table.unlink()
    scaling.main([*given, "--redraw"])
    assert table.read_text() == text and len(rows) == 5, "nothing was fitted anew"


def test_what_is_kept_is_not_measured_again(tmp_path):
    path, found = tmp_path / "new" / "rows.json", {"date": "today", "rows": [{"a": 1}]}
    assert kept(path, {"date": "today"}, lambda: [{"a": 1}]) == found
    assert kept(path, {"date": "later"}, None) == found
    with pytest.raises(FileNotFoundError):
        kept(tmp_path / "other.json", {}, None)


def test_what_a_process_of_its_own_printed(tmp_path, monkeypatch):
    (tmp_path / "told.py").write_text(
        "import sys, time\n"
        "print('first')\n"
        "time.sleep(float(sys.argv[1]))\n"
        "print('{\"x\": 1}' if len(sys.argv) < 3 else sys.exit('no such ' + sys.argv[2]))\n"
        "print('of a launcher')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert mpiexec.finish(mpiexec.start(0, "told", 0)) == {"x": 1}
    with pytest.raises(RuntimeError, match="no such thing"):
        mpiexec.finish(mpiexec.start(0, "told", 0, "thing"))
    slow = mpiexec.start(0, "told", 60)
    with pytest.raises(subprocess.TimeoutExpired):
        mpiexec.finish(slow, seconds=0.2)
    assert slow.returncode is not None, "nothing is left behind"


def test_ratios_of_a_race():
    from experiments.dpsgd import race

    def record(seed, entrant, passes, seconds):
        return {"problem": "p", "seed": seed, "entrant": entrant, "mark": 0.1, "passes": passes,
                "step": "optimal", "seconds": seconds, "processor": [2 * s for s in seconds],
                "errors": [0.1] * len(seconds)}  # fmt: skip

    lines = race.table([
        record(0, "peer", 2, [1.0, 2.0, 9.0]), record(1, "peer", 2, [3.0]),
        record(0, "ours", 1, [0.5]), record(1, "ours", None, []),
        record(0, "other", None, []), record(1, "other", None, []),
    ])  # fmt: skip
    end = "0.1000 | 1.00 (1.00-1.00) | 1.00 (1.00-1.00) |"
    assert f"| peer | optimal | 2 of 2 | 2 | 2.500 | 5.000 | {end}" in lines[2]
    end = "0.1000 | 4.00 (4.00-4.00) | 4.00 (4.00-4.00) |"
    assert f"| ours | optimal | 1 of 2 | 1 | 0.500 | 1.000 | {end}" in lines[3]
    assert "| other | optimal | 0 of 2 |" in lines[4]
    assert {line.count("|") for line in lines} == {12}


def test_one_table_of_the_races_that_were_run(tmp_path):
    from experiments.dpsgd.__main__ import RACES, write_table

    for number, part in enumerate(RACES[:2]):
        source = provenance.provenance("experiments.dpsgd", ["--only", part], [], {})
        content = json.dumps({**source, "rows": [number]})
        (tmp_path / f"{part}.json").write_text(content)
    write_table(tmp_path / "race.md", RACES, "Title.\n\nText.", lambda rows: [str(rows)])
    title, _, first, _, second, _, table = (tmp_path / "race.md").read_text().splitlines()
    assert (title, table) == ("# Title.", "[0, 1]")
    assert f"--only {RACES[0]}`" in first and f"--only {RACES[1]}`" in second


def test_both_sides_of_a_race_choose_from_the_same_step_sizes():
    from sklearn.linear_model import SGDClassifier

    from dpsvi import DPSGD
    from experiments.dpsgd import entrants

    theirs, ours = entrants.schedules(1e-4)
    assert theirs.keys() == ours.keys()
    t = np.arange(2000)
    for name, parameters in theirs.items():
        found = DPSGD(**ours[name]).rates(t)
        SGDClassifier(**parameters)._validate_params()
        if name == "optimal":  # scikit-learn's documentation: 1 / (alpha (t0 + t)), t0 = 1000 here
            expected = 1 / (1e-4 * (1000 + t))
        elif parameters["learning_rate"] == "constant":
            expected = np.full(len(t), parameters["eta0"])
        else:
            expected = parameters["eta0"] / (1 + t) ** parameters["power_t"]
        np.testing.assert_allclose(found, expected)


def test_a_step_size_is_chosen_without_test_data():
    """Of two the one that is at the mark with fewer passes; a thread more takes the same one."""
    from sklearn.linear_model import SGDClassifier

    from experiments.dpsgd import tune
    from experiments.dpsgd.entrants import Entrant, Problem

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)

    def make(step, seed, passes):
        return SGDClassifier(
            loss="log_loss", random_state=seed, learning_rate="constant", max_iter=passes or 5,
            tol=None, **step,
        )  # fmt: skip

    steps = {"slow": {"eta0": 1e-9}, "fast": {"eta0": 0.1}}
    problem = Problem("p", (X, y, np.full_like(X, np.nan), 1 - y), {
        "one": Entrant(make, steps), "two": Entrant(make, {"only": steps["fast"]}, like="one"),
    })  # fmt: skip
    found = tune.tuned(problem)
    assert found.ends == found.choices["one"].step == "fast" and found.mark < 0.1
    assert found.choices["two"] == found.choices["one"]


def test_full_gradient_of_the_theorem(rng):
    from scipy.optimize import approx_fprime

    from dpsvi.optimize import network
    from experiments.dpsgd import descent

    X, y = (part[:20] for part in descent.items())
    x = network.start(X.shape[1], descent.CLASSES, descent.HIDDEN, rng)
    expected = approx_fprime(
        x.ravel(),
        lambda v: network.mean_loss(v.reshape(x.shape), X, y, descent.CLASSES), 1e-7,
    )  # fmt: skip
    np.testing.assert_allclose(descent.gradient(x, X, y).ravel(), expected, atol=1e-6)


def test_runs_of_the_theorem():
    """Global steps and rate are those asked for; one worker makes the steps of serial SGD."""
    from experiments.dpsgd import descent

    row = descent.measure(128, 2, 2, 1, 1, seed=0, c=0.5)
    assert row["global_steps"] == 128 and row["rate"] == 0.5 / 16 and 0 < row["norm"] < 3
    alone, one = (descent.measure(128, n, 1, 1, 1, seed=0, c=0.5) for n in (0, 1))
    assert alone["global_steps"] == one["global_steps"] == 128
    assert one["norm"] == pytest.approx(alone["norm"], rel=1e-6)
    assert one["loss"] == pytest.approx(alone["loss"], rel=1e-6)


def test_where_workers_leave_serial_descent():
    from experiments.dpsgd import theorem

    rows = [{"n": 4, "times_serial": 1.0}, {"n": 16, "times_serial": 1.25**2}]
    assert theorem.leaving(rows, "workers") == pytest.approx(8)
    assert theorem.leaving(rows[:1], "workers") is None
    assert theorem.leaving(rows[1:], "workers") == pytest.approx(4)
    plan = theorem.settings()
    for length in theorem.BOUNDED:
        numbers = [s[1] for sweep, _, s in plan if sweep == "workers" and s[0] == length]
        assert min(numbers) < length**0.5 < max(numbers)
    assert len(set(plan)) == len(plan)
