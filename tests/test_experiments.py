"""The benchmark against peers: its arithmetic, its clock, and one tiny run from end to end."""

import csv
import importlib.util
import json
import math
import subprocess

import numpy as np
import pytest

from dpsvi.corpus import Corpus
from dpsvi.evaluate import completion_perplexity
from experiments import mpiexec, provenance
from experiments.peers import libraries, plot, problem, summary, tuning
from experiments.peers.__main__ import competitors, main, parse
from experiments.peers.problem import Settings
from experiments.peers.recorder import Recorder

N_WORDS, N_TOPICS = 60, 3
INSTALLED = [name for name in libraries.names() if importlib.util.find_spec(name)]


def two_sided_corpus(n_items=120, seed=0):
    """Documents that use one third of the words each: far from the unigram distribution."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((n_items, N_WORDS), np.float32)
    for d in range(n_items):
        third = rng.integers(3) * (N_WORDS // 3)
        counts[d, third : third + N_WORDS // 3] = rng.poisson(2.0, N_WORDS // 3)
    counts[:, 0] += 1  # no document is empty
    item, word = counts.nonzero()
    offsets = np.searchsorted(item, np.arange(n_items + 1)).astype(np.int64)
    return Corpus(offsets, word.astype(np.int32), counts[item, word], N_WORDS)


def record(competitor, curve, threads=2, library="peer", tokens=1000.0, **more):
    points = [
        {
            "seconds": s, "perplexity": p, "log_likelihood_per_token": -math.log(p),
            "tokens": tokens * s, "passes": s,
        }
        for s, p in curve
    ]  # fmt: skip
    return {
        "competitor": competitor, "library": library, "threads": threads,
        "unigram_perplexity": 321.0, "points": points, **more,
    }  # fmt: skip


# -- arithmetic ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("curve", "target", "seconds"),
    [
        ([(1, 300), (4, 100)], 200, 2),  # half-way, straight over log time
        ([(1, 300), (4, 100)], 100, 4),
        ([(1, 300), (4, 100)], 300, 1),
        ([(1, 300), (4, 100)], 400, 1),  # below from the start: an upper bound
        ([(1, 300), (4, 100)], 99, math.inf),
        ([(1, 300), (4, 100), (9, 500), (16, 100)], 200, 2),  # the first crossing counts
        ([(1, 200), (4, 200), (8, 100)], 200, 1),
    ],
)
def test_time_to_a_perplexity(curve, target, seconds):
    points = record("any", curve)["points"]
    assert summary.time_to(points, target) == pytest.approx(seconds)


def test_summary_compares_medians_and_keeps_ranges():
    records = [
        record("dpsvi-x", [(1, 300), (4, 100)], library="dpsvi", tokens=3000.0),
        record("dpsvi-x", [(1, 200), (4, 100)], library="dpsvi", tokens=6000.0),
        record("dpsvi-x", [(2, 200), (8, 100)], library="dpsvi", tokens=9000.0),
        record("dpsvi-x", [(4, 200), (8, 100)], threads=1, library="dpsvi", tokens=3000.0),
        record("slow", [(10, 250), (30, 210)]),
        record("slow", [(10, 250), (30, 200)]),
        record("slow", [(10, 190), (30, 190)]),
    ]
    found = summary.summarise(records, threads=2)
    speeds = {(r["competitor"], r["threads"]): r["tokens_per_second"] for r in found["competitors"]}
    assert speeds["dpsvi-x", 2] == {"median": 6000, "low": 3000, "high": 9000}
    (against,) = found["against"]
    assert against["target"] == 200
    assert against["tokens_per_second_ratio"] == {"median": 6, "low": 3, "high": 9}
    assert against["seconds"] == pytest.approx({"median": 2, "low": 1, "high": 2})
    # Each repeat runs to its own last perplexity; the third was there at its first point.
    assert against["other_seconds"] == pytest.approx({"median": 30, "low": 10, "high": 30})
    assert against["time_ratio"] == pytest.approx({"median": 15, "low": 5, "high": 30})
    assert against["at_most"]  # two runs were there at their first point
    (threads,) = found["threads"]
    assert threads["tokens_per_second_ratio"]["median"] == 2
    assert threads["time_ratio"]["median"] == pytest.approx(2)
    text = summary.as_text(found)
    assert "dpsvi-x, slow" in text and "-4.605" in text and "321" in text


def test_summary_says_when_a_target_is_never_reached():
    records = [
        record("dpsvi-x", [(1, 300), (30, 250)], library="dpsvi"),
        record("dpsvi-x", [(1, 300), (30, 150)], library="dpsvi"),
        record("dpsvi-x", [(1, 300), (30, 260)], library="dpsvi"),
        record("good", [(10, 200), (30, 160)]),
    ]
    (against,) = summary.summarise(records, threads=2)["against"]
    assert against["seconds"]["median"] is None and against["seconds"]["high"] is None
    assert against["seconds"]["low"] < 30
    assert against["time_ratio"]["median"] is None
    assert against["time_ratio"]["high"] > 1
    assert not against["at_most"]
    json.dumps(against, allow_nan=False)
    assert "never / 30.00" in summary.as_text(summary.summarise(records, threads=2))


def test_each_competitor_gets_its_own_best_eta():
    runs = [
        record(name, [(1, perplexity)], eta=eta)
        for name, eta, perplexity in [
            ("a", 0.003, 12), ("a", 0.01, 10), ("a", 0.1, 11), ("b", 0.01, 9), ("b", 0.1, 8),
        ]
    ]  # fmt: skip
    best = tuning.best_etas(runs)
    assert best["a"] == {
        "eta": 0.01, "perplexity": {"0.003": 12, "0.01": 10, "0.1": 11}, "at_edge": False,
    }  # fmt: skip
    assert best["b"]["eta"] == 0.1 and best["b"]["at_edge"]


def test_median_curve_covers_the_common_time():
    group = [
        record("a", [(1, 400), (4, 200), (16, 100)]),
        record("a", [(2, 500), (8, 300)]),
        record("a", [(1, 900), (16, 900)]),
    ]
    seconds, perplexity = plot.median_curve(group)
    np.testing.assert_allclose(seconds, [2, 4, 8])
    np.testing.assert_allclose(perplexity, [500, 400, 300])


# -- clock --------------------------------------------------------------------------------------


def test_clock_stands_still_while_a_copy_is_taken():
    time = [100.0]
    recorder = Recorder(1.0, now=lambda: time[0])
    with recorder.stage("convert"):
        time[0] += 7
    recorder.start()
    live = np.zeros((2, 2))

    def parameters():
        time[0] += 50  # an expensive copy
        live[...] += 1
        return live

    stopped = []
    for step in range(1, 6):
        time[0] += 0.25
        stopped.append(recorder(step / 2, parameters))
    assert stopped == [False, False, False, True, True]
    assert recorder.stages == {"convert": 7}
    np.testing.assert_allclose([s.seconds for s in recorder.snapshots], [0.25, 0.5, 0.75, 1, 1.25])
    assert [s.passes for s in recorder.snapshots] == [0.5, 1, 1.5, 2, 2.5]
    assert [s.parameters[0, 0] for s in recorder.snapshots] == [1, 2, 3, 4, 5]  # copies, not views


def test_copies_are_taken_at_even_steps_of_log_time():
    time = [0.0]
    recorder = Recorder(30.0, now=lambda: time[0])
    recorder.start()
    for _ in range(30 * 512):
        time[0] += 1 / 512  # exact in binary
        recorder(0, lambda: np.zeros((1, 1)))
    seconds = np.array([s.seconds for s in recorder.snapshots])
    assert len(seconds) == 20  # 0.05 sqrt(2)^n below 30, and 30
    np.testing.assert_allclose(np.diff(np.log(seconds[:-1])), np.log(2) / 2, atol=0.1)
    assert seconds[-1] == pytest.approx(30)


# -- problem and command line -------------------------------------------------------------------


def test_split_holds_out_the_same_documents_whatever_is_trained_on(tmp_path):
    corpus = two_sided_corpus()
    all_, few = problem.split(corpus, None, seed=1), problem.split(corpus, 10, seed=1)
    assert [all_[part].n_items for part in ("train", "validation", "test")] == [96, 12, 12]
    assert few["train"].n_items == 10
    np.testing.assert_array_equal(all_["test"].index, few["test"].index)
    assert sum(part.n_tokens for part in all_.values()) == corpus.n_tokens
    problem.save(few, tmp_path)
    loaded = problem.load(tmp_path, "train")
    np.testing.assert_array_equal(loaded.value, few["train"].value)
    with pytest.raises(ValueError, match=r"1\.\.96, got 97"):
        problem.split(corpus, 97, seed=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--peers absent", "peer must be one of"),
        ("--peers dpsvi", "peer must be one of"),
        ("--peers tomotopy", "pip install tomotopy"),
        ("--local-steps newton", "any of mean_field,collapsed"),
        ("--repeats 0", "must be above 0"),
        ("--seconds nan", "must be above 0"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(arguments, message, capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stopped:
        parse(["--corpus", "none.txt", *arguments.split()])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_competitors_are_those_asked_for():
    def names(arguments):
        return [c.competitor for c in competitors(parse(["--corpus", "x", *arguments.split()]))]

    assert names("--local-steps warm") == ["dpsvi-warm"]
    assert names("--peers sklearn --threads 1") == [
        "dpsvi-mean_field", "dpsvi-collapsed", "sklearn", "sklearn-converged",
    ]  # fmt: skip
    assert "sklearn-jobs" in names("--peers sklearn --threads 2")


def test_provenance_hides_folders_and_is_json():
    found = provenance.provenance(
        "experiments.peers", ["--corpus", "/home/me/a b.txt", "--topics", "3"],
        ["numpy", "no-such-package"], {"split": 1},
    )  # fmt: skip
    assert found["command"] == "python -m experiments.peers --corpus 'a b.txt' --topics 3"
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
    (tmp_path / "file").write_text("b")
    found = provenance.git_revision(tmp_path)
    assert found["modified"] is True and len(found["revision"]) == 40


# -- libraries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", INSTALLED)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_installed_library_learns(library, threads):
    parts = problem.split(two_sided_corpus(), None, seed=0)
    name, options = next(iter(libraries.get(library).COMPETITORS.items()))
    settings = Settings(name, library, options, N_TOPICS, 0.1, 0.1, threads, 1.5, 0, "test")
    recorder = Recorder(settings.seconds)
    libraries.get(library).train(parts["train"], settings, recorder)
    last = recorder.snapshots[-1]
    assert last.seconds >= settings.seconds and last.passes > 0
    assert last.parameters.shape == (N_WORDS, N_TOPICS) and (last.parameters > 0).all()
    # Pseudo-counts: one for every training token, and eta for every word and topic.
    expected = parts["train"].n_tokens + 0.1 * N_WORDS * N_TOPICS
    assert last.parameters.sum(dtype=np.float64) == pytest.approx(expected, rel=0.1)
    topics = last.parameters / last.parameters.sum(axis=0)
    found = completion_perplexity(topics, parts["test"], 0.1)
    assert found.perplexity < 0.7 * N_WORDS


def test_tiny_benchmark_from_end_to_end(tmp_path, capsys):
    corpus = two_sided_corpus()
    lines = [f"{corpus.n_items}", f"{N_WORDS}", f"{corpus.nnz}"]
    for d in range(corpus.n_items):
        for j in range(corpus.offsets[d], corpus.offsets[d + 1]):
            lines.append(f"{d + 1} {corpus.index[j] + 1} {corpus.value[j]:.0f}")
    path = tmp_path / "docword.tiny.txt"
    path.write_text("\n".join(lines) + "\n")
    arguments = "--topics 3 --threads 1 --seconds 0.3 --repeats 1 --local-steps collapsed"
    main(["--corpus", str(path), *arguments.split(), "--out", str(tmp_path / "out")])
    files = {file.suffix: file for file in (tmp_path / "out").iterdir()}
    assert {file.name for file in files.values()} == {
        f"tiny-3-topics-1-threads.{end}" for end in ("json", "csv", "png")
    }
    text = files[".json"].read_text()
    assert str(tmp_path) not in text
    result = json.loads(text)
    (run,) = result["runs"]
    assert run["competitor"] == "dpsvi-collapsed" and run["compile_seconds"] > 0
    assert run["points"][-1]["perplexity"] < run["unigram_perplexity"]
    assert result["corpus"]["test"]["documents"] == 12 and result["corpus"]["load_seconds"] > 0
    with files[".csv"].open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(run["points"])
    assert float(rows[-1]["perplexity"]) == run["points"][-1]["perplexity"]
    assert files[".png"].read_bytes().startswith(b"\x89PNG")
    assert "dpsvi-collapsed" in capsys.readouterr().out


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
