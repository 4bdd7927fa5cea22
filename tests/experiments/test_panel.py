"""The panel: its split, its clock, its arithmetic, and one tiny corpus from end to end."""

import csv
import importlib.util
import itertools
import json

import numpy as np
import pytest

from dpsvi.corpus import Corpus
from dpsvi.evaluation.completion import completion_perplexity
from experiments.panel import __main__ as panel
from experiments.panel import cells, corpora, in_time, libraries, losses, plan, reading, table
from experiments.panel.libraries import mallet_sweeps
from experiments.panel.options import parse
from experiments.panel.recorder import Recorder, Topics
from experiments.panel.settings import Settings
from experiments.panel.store import Store

N_WORDS, N_TOPICS = 60, 3
FIXED = {  # the first of each library, and of each of topica's samplers
    (library, options.get("sampler")): name
    for name, (library, options) in reversed(libraries.entrants().items())
    if libraries.is_fixed(name) and importlib.util.find_spec(library)
}
ONLY_PROBABILITIES = ("artm", "pyrmallet", "topica")  # show no counts


def as_corpus(counts):
    item, word = counts.nonzero()
    offsets = np.searchsorted(item, np.arange(len(counts) + 1)).astype(np.int64)
    return Corpus(
        offsets, word.astype(np.int32), counts[item, word].astype(np.float32), counts.shape[1]
    )


def two_sided_corpus(n_items=120, seed=0, mean=2.0):
    """Documents that use one third of the words each: far from the unigram distribution."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((n_items, N_WORDS))
    for d in range(n_items):
        third = rng.integers(3) * (N_WORDS // 3)
        counts[d, third : third + N_WORDS // 3] = rng.poisson(mean, N_WORDS // 3)
    return as_corpus(counts)


def write_uci(corpus, path):
    lines = [f"{corpus.n_items}", f"{corpus.n_features}", f"{corpus.nnz}"]
    for d in range(corpus.n_items):
        for j in range(corpus.offsets[d], corpus.offsets[d + 1]):
            lines.append(f"{d + 1} {corpus.index[j] + 1} {corpus.value[j]:.0f}")
    path.write_text("\n".join(lines) + "\n")


def settings(entrant, passes=30, seed=0, library="dpsvi", **more):
    given = {
        "corpus": "any", "bytes": 1, "documents": 30_000, "topics": 50, "threads": 2,
        "seconds": 30.0, "options": {}, **more,
    }  # fmt: skip
    return Settings(entrant=entrant, library=library, passes=passes, seed=seed, **given)


def record(entrant, passes, own, fixed=None, seconds=1.0, cut=False, **more):
    """One of ours: a single point, its end."""
    points = [{"seconds": seconds, "passes": passes, "own": own, "fixed": fixed or own}]
    return {
        "settings": vars(settings(entrant, passes, **more)), "points": points, "cut": cut,
        "seconds": seconds, "passes": passes, "tokens_per_second": 1.0,
        "unigram_perplexity": 500.0, "provenance": SOURCE,
        "corpus": {"documents": 100, "median_tokens": 50.0},
    }  # fmt: skip


def peer(entrant, curve, library):
    """A peer: a point for each (seconds, passes, own, fixed)."""
    found = record(entrant, 100, 1, library=library)
    keys = ("seconds", "passes", "own", "fixed")
    return found | {"points": [dict(zip(keys, point, strict=True)) for point in curve]}


SOURCE = {
    "command": "python -m experiments.panel x", "date": "2026-01-01T00:00:00+00:00", "git": None,
    "hardware": {"processor": "some", "cores": 2}, "versions": {"numpy": "2", "tomotopy": None},
}  # fmt: skip


def find_losses(records):
    return losses.find(reading.by_cell(records))


# -- the split ----------------------------------------------------------------------------------


def test_split_leaves_out_short_documents_and_fixes_the_test_documents():
    counts = np.zeros((200, 30))
    counts[:, 0] = np.arange(200) % 20  # tokens of a document: 0 to 19, the median is 10
    counts[:, 1] = np.arange(200) % 20 == 15
    corpus = as_corpus(counts)
    train, test, fewest = corpora.split(corpus)
    assert fewest == 10 and (train.n_items, test.n_items) == (90, 10)
    assert corpora.document_lengths(train).min() == 10
    few, same, _ = corpora.split(corpus, most_training=20)
    assert few.n_items == 20
    np.testing.assert_array_equal(same.value, test.value)
    np.testing.assert_array_equal(few.value, train.value[: few.nnz])
    order = np.random.default_rng(8).permutation(100)
    kept = np.flatnonzero(corpora.document_lengths(corpus) >= 10)
    np.testing.assert_array_equal(test.value, corpus.select(kept[order[:10]]).value)


def test_split_keeps_titles():
    counts = np.zeros((300, 30))
    counts[:, 0] = np.arange(300) % 9 + 1  # 1 to 9 tokens
    train, test, fewest = corpora.split(as_corpus(counts))
    assert fewest == 4
    assert corpora.document_lengths(train).min() == 4
    assert train.n_items + test.n_items == (counts[:, 0] >= 4).sum()


def test_split_refuses_a_corpus_that_is_too_small():
    with pytest.raises(ValueError, match="20 documents have 10 tokens or more"):
        corpora.split(two_sided_corpus(20))


def test_corpora_of_a_folder(tmp_path):
    with pytest.raises(ValueError, match="holds no docword"):
        corpora.find(tmp_path)
    for name in ("docword.b.x.txt.gz", "docword.a.txt", "vocab.a.txt", "docword.c.mtx"):
        (tmp_path / name).touch()
    assert list(corpora.find(tmp_path)) == ["a", "b.x"]
    assert corpora.find(tmp_path, ["a"]) == {"a": tmp_path / "docword.a.txt"}
    with pytest.raises(ValueError, match="--corpora must be any of a, b.x, got 'c'"):
        corpora.find(tmp_path, ["c"])


# -- the clock ----------------------------------------------------------------------------------


def test_clock_stands_still_while_a_copy_is_taken():
    time = [100.0]
    recorder = Recorder(2.0, 100, (0.5, 1), (3,), now=lambda: time[0])
    recorder.start()
    live = np.zeros((2, 2))

    def topics():
        time[0] += 50  # an expensive copy
        live[...] += 1
        return Topics(live, 0.1, np.array([0.2]))

    stopped = []
    for step in range(1, 9):
        time[0] += 0.25
        stopped.append(recorder(step / 2, topics))
    assert stopped == [False] * 7 + [True]
    found = recorder.snapshots
    # At half a second, at a second, after three passes and at the end.
    np.testing.assert_allclose([s.seconds for s in found], [0.5, 1, 1.5, 2])
    assert [s.passes for s in found] == [1, 2, 3, 4]
    assert [s.topics.counts[0, 0] for s in found] == [1, 2, 3, 4]  # copies, not views


def test_a_training_ends_after_its_passes():
    recorder = Recorder(1e9, 3, (), (1,))
    recorder.start()
    stopped = [recorder(n, lambda: Topics(np.ones((1, 1)), 1, 1)) for n in (1, 2, 3)]
    assert stopped == [False, False, True]
    assert [s.passes for s in recorder.snapshots] == [1, 3]


# -- reading and losses -------------------------------------------------------------------------


def test_ours_is_read_at_thirty_passes_or_the_most_that_ended():
    records = [
        record("defaults", 10, 110), record("defaults", 30, 100), record("defaults", 100, 90),
        record("defaults", 30, 104, seed=1), record("defaults", 30, 101, seed=2),
    ]  # fmt: skip
    assert reading.read_at(records) == 30 and reading.ours(records, "own") == 101
    cut = [record("defaults", 10, 110), record("defaults", 30, 1, cut=True)]
    assert reading.read_at(cut) == 10 and reading.ours(cut, "own") == 110
    assert reading.ours([record("defaults", 3, 1, cut=True)], "own") is None


def test_what_a_user_gets_in_some_seconds():
    fits = [
        record("defaults", 3, 120, seconds=0.5), record("defaults", 10, 110, seconds=2.0),
        record("defaults", 30, 100, seconds=29.0), record("defaults", 100, 1, seconds=30, cut=True),
    ]  # fmt: skip
    assert [reading.at_seconds(fits, s, "own") for s in (0.4, 1, 3, 30)] == [None, 120, 110, 100]
    runs = [peer("tomotopy", [(1.05, 2, 90, 91), (3.5, 7, 80, 81)], "tomotopy")]
    assert [reading.at_seconds(runs, s, "fixed") for s in (0.5, 1, 3, 10)] == [None, 91, 91, 81]
    assert reading.at_passes(runs, 7, "own") == 80 and reading.at_passes(runs, 3, "own") is None
    cut = [runs[0] | {"cut": True, "seconds": 9.2}]  # it says nothing of what comes later
    assert [reading.at_seconds(cut, s, "own") for s in (3, 10, 30)] == [90, 80, None]


def test_who_is_ahead_after_some_seconds():
    records = [
        record("defaults", 3, 120, seconds=2), record("defaults", 30, 100, seconds=8),
        peer("tomotopy", [(1, 2, 200, 1), (3, 4, 119, 1), (10, 13, 101, 1)], "tomotopy"),
        peer("sklearn-fixed-pair", [(9, 9, 99.5, 1)], "sklearn"),
        record("kept", 3, 1, seconds=1), record("defaults", 3, 1, corpus="alone"),
    ]  # fmt: skip
    found = in_time.find(reading.by_cell(records))
    assert [(case.seconds, case.ours, case.other) for case in found] == [
        (1, None, 200), (3, 120, 119), (10, 100, 99.5), (30, 100, 99.5), (60, 100, 99.5),
    ]  # fmt: skip
    text = "\n".join(in_time.as_lines(reading.by_cell(records)))
    assert "| 1 | 1 | 0 | 0 | 1 |\n| 3 | 1 | 0 | 1 | 0 |" in text and "alone" not in text
    assert "any, K = 50, 3 s: defaults 120.0, tomotopy 119.0, 0.8 % worse" in text
    assert "any, K = 50, 1 s: no pass, tomotopy 200.0" in text
    assert in_time.as_lines(reading.by_cell(records[:2])) == []


def test_a_peer_that_cannot_be_watched_is_read_like_ours():
    runs = [
        record("topica-warp", passes, own, seconds=seconds, library="topica")
        for passes, own, seconds in ((10, 90, 0.5), (100, 80, 5.0), (300, 85, 15.0))
    ]
    assert [reading.at_seconds(runs, s, "own") for s in (0.4, 1, 10, 30)] == [None, 90, 80, 85]
    assert reading.at_passes(runs, 100, "own") == 80 and reading.best(runs, "own") == 80


def test_losses_against_peers_are_found_by_column_and_priors():
    found = find_losses(
        [
            record("defaults", 30, 100, 120), record("fixed-pair", 30, 101),
            peer("tomotopy", [(1, 3, 105, 110), (2, 9, 103, 112)], "tomotopy"),
            peer("tomotopy-fixed-pair", [(1, 3, 99, 99)], "tomotopy"),
            peer("sklearn-fixed-pair", [(1, 3, 200, 200)], "sklearn"),
            peer("sklearn-online-fixed-pair", [(1, 3, 100.5, 100.5)], "sklearn"),
        ]
    )  # fmt: skip
    shown = {(x.kind, x.entrant, x.column, x.ours, x.other) for x in found}
    assert shown == {
        ("peer", "defaults", "fixed", 120, 110),
        ("peer", "fixed-pair", "own", 101, 99),
        ("peer", "fixed-pair", "own", 101, 100.5),
        ("best", "defaults", "own", 100, 99),
        ("fixed pair", "defaults", "fixed", 120, 101),
    }
    assert [x.kind for x in found] == ["peer"] * 3 + ["best", "fixed pair"]
    assert "9.1 % worse" in str(found[0]) and "alpha .1" in str(found[0])


def test_losses_against_counting_words_and_fewer_passes():
    found = find_losses(
        [
            record("kept", 3, 510), record("kept", 10, 505), record("kept", 30, 509),
            record("kept", 100, 512),
        ]
    )  # fmt: skip
    assert [(x.kind, x.ours, x.other) for x in found] == [
        ("unigram", 509, 500), ("passes", 512, 505),
    ]  # fmt: skip
    assert "kept after 100 passes 512.0, after 10 505.0 (own priors), 1.4 % worse" in str(found[1])


def test_no_loss_where_ours_is_best():
    records = [
        record("defaults", 30, 90), record("fixed-pair", 30, 89.5),
        peer("gensim", [(1, 3, 100, 100)], "gensim"),
    ]  # fmt: skip
    assert find_losses(records) == []
    assert "None." in table.as_markdown(records)


def test_table_marks_losses_and_names_what_was_left_out():
    records = [
        record("defaults", 10, 100, 120), record("kept", 30, 95), record("kept", 30, 97, seed=1),
        peer("tomotopy", [(1, 3, 98, 130)], "tomotopy"),
    ]  # fmt: skip
    text = table.as_markdown(records, ["x was left out: damaged"])
    row = next(line for line in text.splitlines() if line.startswith("| any | 50 "))
    assert "| **100 / 120 (10)** |" in row and "| 96.0 |" in row and "98.0 / 130" in row
    assert "* x was left out: damaged" in text
    assert "| any | 50 | kept | 30 | 2 | 96.0 | 95.0 | 97.0 |" in text


def test_table_names_peers_cut_short_and_the_load():
    busy = SOURCE | {"hardware": SOURCE["hardware"] | {"load_average": 9.5}}
    gensim = peer("gensim", [(1, 3, 98, 130)], "gensim") | {"passes": 7.2, "cut": True}
    records = [
        record("defaults", 30, 90), gensim | {"provenance": busy},
        peer("tomotopy", [(1, 3, 98, 130)], "tomotopy"),
        record("topica-warp", 100, 99, library="topica"),
        record("pyrmallet", 10, 99, library="pyrmallet"),
        record("pyrmallet", 1125, 99, library="pyrmallet"),
    ]  # fmt: skip
    text = table.as_markdown(records)
    assert "* any, K = 50: gensim 7, tomotopy 100 as told, topica-warp 100 of 1,125\n" in text
    assert "the load was 9.5 to 9.5" in text and "Seconds are too long" in text
    assert "had time for" not in table.as_markdown(records[:1])


def test_grid_compares_the_default_with_its_best_entry():
    records = [
        record("defaults", 100, 103),
        record("grid-64-0.7", 100, 100), record("grid-64-0.9", 100, 110),
        record("mean-field", 10, 200), record("mean-field-grid-64-0.5", 10, 199),
    ]  # fmt: skip
    text = table.as_markdown(records)
    assert "| defaults | 100 | 103 | grid-64-0.7 | 100 of 2 | **1.030** |" in text
    assert "| mean-field | 10 | 200 | mean-field-grid-64-0.5 | 199 of 1 | 1.005 |" in text


# -- plan and store -----------------------------------------------------------------------------


def test_plan_begins_with_what_must_be_reached():
    described = {
        "bbc": {"tokens": 2e5, "median_tokens": 100, "documents": 2000, "bytes": 1},
        "new": {"tokens": 1e6, "median_tokens": 100, "documents": 9000, "bytes": 1},
    }
    entrants = {name: libraries.entrants()[name] for name in ("defaults", "kept", "tomotopy")}
    wanted = plan.Wanted(cells.TOPICS, entrants, cells.PASSES, 30_000, 2, 30.0)
    runs = plan.runs(wanted, described)
    assert [(r.corpus, r.topics, r.entrant, r.passes, r.seed) for r in runs[:10]] == [
        ("bbc", 50, entrant, 30, seed) for seed in range(5) for entrant in ("defaults", "kept")
    ]
    assert {r.seconds for r in runs[:10]} == {cells.MUST_REACH_SECONDS}
    cells_met = [cell for cell, _ in itertools.groupby((r.corpus, r.topics) for r in runs[10:])]
    assert cells_met == [
        ("bbc", 50), ("new", 100), ("bbc", 20), ("new", 20), ("new", 50), ("bbc", 100),
        ("bbc", 400), ("new", 400),
    ]  # fmt: skip
    assert len(runs) == 8 * (2 * 4 + 1) + 8 == len({r.key() for r in runs})
    unseen = wanted._replace(topics=[50], entrants={"pyrmallet": libraries.entrants()["pyrmallet"]})
    runs = plan.runs(unseen, {"new": described["new"]})
    assert [r.passes for r in runs] == list(libraries.get("pyrmallet").PASSES)
    few = wanted._replace(topics=[50], passes=[3, 100], seeds=(0, 1))
    runs = plan.runs(few, {"new": described["new"]})
    ours = {(entrant, seed, passes) for entrant in ("defaults", "kept")
            for seed in (0, 1) for passes in (3, 100)}  # fmt: skip
    found = {(r.entrant, r.seed, r.passes) for r in runs}
    assert found == ours | {("tomotopy", 0, cells.PEER_PASSES)}
    grid = plan.grid(wanted, described)
    assert len(grid) == 2 * (1 + 9 + 2 * (1 + 9))
    assert {r.topics for r in grid} == {50, 100} and {r.seconds for r in grid} == {300.0}


def test_store_knows_what_is_done(tmp_path):
    store = Store(tmp_path / "runs")
    store.add(record("defaults", 30, 100))
    store.add(record("kept", 30, 100, cut=True, seconds=30.0) | {"passes": 20})
    store.add(record("sklearn", 100, 100, cut=True, library="sklearn") | {"passes": 9})
    again = Store(tmp_path / "runs")
    assert again.all() == store.all() and len(again.all()) == 3
    assert again.has(settings("defaults", seconds=99.0)) and not again.has(settings("defaults", 10))
    assert not again.has(settings("defaults", seed=1))
    assert again.has(settings("kept")) and not again.has(settings("kept", seconds=60.0))
    assert again.hopeless(settings("kept", 100)) and not again.hopeless(settings("kept", 10))
    assert again.hopeless(settings("kept", seed=1))
    assert not again.hopeless(settings("kept", seed=1, seconds=60.0))
    assert not again.hopeless(settings("defaults", 100))
    assert not again.hopeless(settings("sklearn", 100, seed=1, library="sklearn"))
    # The passes of a peer that is watched are a limit, as seconds are.
    assert again.has(settings("sklearn", 9999, library="sklearn"))
    assert not again.has(settings("sklearn", 9999, library="sklearn", seconds=60.0))
    again.add(record("sklearn", 200, 100, library="sklearn"))
    assert len(again.all()) == 3 and again.has(settings("sklearn", 100, library="sklearn"))
    assert not again.has(settings("sklearn", 9999, library="sklearn"))
    store.add(record("topica-cvb0", 100, 100, seconds=25.0, library="topica"))
    assert not store.hopeless(settings("topica-cvb0", 200, library="topica"))
    assert store.hopeless(settings("topica-cvb0", 300, library="topica"))
    store.add(record("topica-cvb0", 150, 100, seconds=25.0, library="topica"))
    assert not store.hopeless(settings("topica-cvb0", 300, library="topica"))
    again.add(record("defaults", 30, 99, bytes=2))  # another file of this name
    assert len(again.all()) == 1
    (tmp_path / "runs" / "any.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match=r"any\.jsonl:1: not a record"):
        Store(tmp_path / "runs")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "FOLDER"),
        ("{0}", "holds no docword"),
        ("{0}/made --corpora absent", "--corpora must be any of tiny"),
        ("{0}/made --entrants newton", "--entrants must be any of defaults,"),
        ("{0}/made --entrants tomotopy", "pip install tomotopy"),
        ("{0}/made --entrants ,", "--entrants names none"),
        ("{0}/made --topics 20,x", "must be whole numbers"),
        ("{0}/made --passes 0", "--passes must be above 0"),
        ("{0}/made --seconds nan", "--seconds must be above 0"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(
    arguments, message, capsys, monkeypatch, tmp_path
):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "docword.tiny.txt").touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if "py" in name else name)
    with pytest.raises(SystemExit) as stopped:
        parse(arguments.format(tmp_path).split())
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_sweeps_of_mallets_heirs_add_up_to_their_defaults():
    for passes in (1, 2, 3, 9, 10, *mallet_sweeps.PASSES):
        later = mallet_sweeps.shared_out(passes)
        samples = later["num_samples"] * later["sample_interval"]
        assert mallet_sweeps.before_samples(passes) + samples == passes
        assert samples <= max(1, passes / 2)
    assert later == {"num_samples": 5, "sample_interval": 25}
    assert mallet_sweeps.before_samples(passes) == 1000


# -- libraries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FIXED.values()))
def test_every_installed_library_learns(name):
    train, test, _ = corpora.split(two_sided_corpus())
    library, options = libraries.entrants()[name]
    given = settings(name, 10, library=library, topics=N_TOPICS, options=options, threads=1)
    recorder = Recorder(20.0, 10, (), (3,))
    libraries.get(library).train(train, given, recorder)
    last = recorder.snapshots[-1]
    assert last.passes == 10 and last.seconds > 0
    assert last.topics.counts.shape == (N_WORDS, N_TOPICS) and (last.topics.counts > 0).all()
    np.testing.assert_allclose(last.topics.alpha, cells.FIXED_ALPHA, rtol=1e-6)
    np.testing.assert_allclose(last.topics.eta, cells.FIXED_ETA, rtol=1e-6)
    if library not in ONLY_PROBABILITIES:
        # Pseudo-counts: one for every training token, and eta for every word and topic.
        expected = train.n_tokens + cells.FIXED_ETA * N_WORDS * N_TOPICS
        assert last.topics.counts.sum(dtype=np.float64) == pytest.approx(expected, rel=0.1)
    found = completion_perplexity(last.topics.counts / last.topics.counts.sum(axis=0), test, 0.1)
    assert found.perplexity < 0.9 * N_WORDS


def test_a_fit_that_time_cuts_says_so():
    train, _, _ = corpora.split(two_sided_corpus())
    recorder = Recorder(0.0, 50)
    libraries.get("dpsvi").train(train, settings("defaults", 50, topics=3, threads=1), recorder)
    assert [s.passes for s in recorder.snapshots] == [1]


def test_corpora_never_named_from_end_to_end(tmp_path, capsys, monkeypatch):
    folder, out = tmp_path / "corpora", tmp_path / "out"
    folder.mkdir()
    write_uci(two_sided_corpus(), folder / "docword.never seen.txt")
    write_uci(two_sided_corpus(10), folder / "docword.few.txt")
    (folder / "docword.damaged.txt").write_text("3\n4\n5\n1 1 nonsense\n")
    arguments = [str(folder), "--topics", "3", "--passes", "3,5", "--seconds", "5", "--threads",
                 "1", "--entrants", "defaults,sklearn", "--out", str(out)]  # fmt: skip
    assert panel.main(arguments) == 1  # two corpora could not be used
    said = capsys.readouterr()
    assert "damaged was left out: docword.damaged.txt:" in said.err
    assert "few was left out: 10 documents" in said.err
    assert "* few was left out" in said.out and "| never seen | 3 |" in said.out
    assert {file.name for file in out.iterdir()} == {
        "table.md", "panel.csv", "marks.csv", "panel.png", "runs",
    }  # fmt: skip
    text = (out / "runs" / "never seen.jsonl").read_text()
    assert str(tmp_path) not in text + (out / "table.md").read_text()
    records = [json.loads(line) for line in text.splitlines()]
    assert [(r["settings"]["entrant"], r["passes"]) for r in records] == [
        ("defaults", 3), ("defaults", 5), ("sklearn", records[2]["passes"]),
    ]  # fmt: skip
    assert records[2]["cut"] and records[2]["passes"] > 5
    for found in records:
        assert found["corpus"]["documents"] == 108
        assert found["points"][-1]["own"] < 0.9 * found["unigram_perplexity"]
        assert found["provenance"]["versions"]["numpy"] == np.__version__
    with (out / "panel.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(found["points"]) for found in records)
    assert float(rows[0]["perplexity"]) == records[0]["points"][0]["own"]
    assert (out / "panel.png").read_bytes().startswith(b"\x89PNG")

    def nothing(*_):
        raise AssertionError("a run was done twice")

    monkeypatch.setattr(panel, "launch", nothing)
    (folder / "docword.damaged.txt").unlink()
    (folder / "docword.few.txt").unlink()
    assert panel.main(arguments) == 0
    assert "0 runs to be done" in capsys.readouterr().err
    (out / "table.md").unlink()
    assert panel.main([*arguments[1:], "--summary-only"]) == 0
    assert "| never seen | 3 |" in (out / "table.md").read_text()

    def failing(given, *_):
        raise RuntimeError(f"{given} gave no result; it last wrote:\nnothing")

    monkeypatch.setattr(panel, "launch", failing)
    assert panel.main([*arguments, "--entrants", "mean-field"]) == 1
    said = capsys.readouterr().out
    assert "* never seen, K = 3, mean-field, 3 passes, seed 0 gave no result" in said
