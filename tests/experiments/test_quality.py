"""Measures of topics against independent references, and the whole command on a small corpus."""

import gzip
import json

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from dpsvi.corpus import Corpus
from experiments.panel import cells, corpora, libraries
from experiments.panel.recorder import Topics
from experiments.quality import __main__ as quality
from experiments.quality import documents, measures, plan, published, table, theta

N_WORDS = 60


@pytest.fixture(scope="module")
def counts():
    """Documents that use one third of the words each, and its number."""
    rng = np.random.default_rng(0)
    thirds = rng.integers(3, size=150)
    found = np.zeros((150, N_WORDS))
    for d, third in enumerate(thirds):
        found[d, 20 * third : 20 * third + 20] = rng.poisson(1.0, 20)
    found[np.arange(150), rng.integers(N_WORDS, size=150)] += 1
    return found, thirds


def as_corpus(counts):
    item, word = counts.nonzero()
    offsets = np.searchsorted(item, np.arange(len(counts) + 1)).astype(np.int64)
    return Corpus(
        offsets, word.astype(np.int32), counts[item, word].astype(np.float32), counts.shape[1]
    )


# -- measures -----------------------------------------------------------------------------------


def slow_npmi(top, counts):
    """The definition, pair by pair."""
    held, found = counts > 0, []
    for topic in top:
        for i, v in enumerate(topic):
            for w in topic[:i]:
                both = (held[:, v] & held[:, w]).mean() + 1e-12
                found.append(np.log(both / (held[:, v].mean() * held[:, w].mean())) / -np.log(both))
    return np.mean(found)


@pytest.fixture
def top(rng):
    """Eight words of five topics; those of the first are of one third of the words."""
    top = np.array([rng.permutation(N_WORDS)[:8] for _ in range(5)])
    top[0] = np.arange(8)
    return top


def test_npmi_is_its_definition(counts, top):
    counts = counts[0]
    ours = measures.npmi(top, as_corpus(counts))
    assert ours == pytest.approx(slow_npmi(top, counts), rel=1e-12)
    assert measures.npmi(top[:1], as_corpus(counts)) > measures.npmi(top[1:], as_corpus(counts))


def test_npmi_is_gensims_over_whole_documents(counts, top):
    corpora = pytest.importorskip("gensim.corpora")
    models = pytest.importorskip("gensim.models")
    counts = counts[0]
    texts = [[str(w) for w in np.repeat(np.arange(N_WORDS), row.astype(int))] for row in counts]
    gensims = models.CoherenceModel(
        topics=[[str(w) for w in topic] for topic in top], texts=texts,
        dictionary=corpora.Dictionary(texts), coherence="c_npmi", window_size=1_000_000,
        processes=1,
    ).get_coherence()  # fmt: skip
    assert measures.npmi(top, as_corpus(counts)) == pytest.approx(gensims, rel=1e-6)


def test_words_that_never_meet_have_an_npmi_near_minus_one():
    apart = as_corpus(np.repeat(np.eye(2), 5, axis=0))
    assert measures.npmi(np.array([[0, 1]]), apart) == pytest.approx(-1, abs=0.06)


def test_top_words_are_the_most_probable():
    counts = np.array([[1.0, 5], [3, 5], [2, 0]])
    np.testing.assert_array_equal(measures.top_words(counts, 2), [[1, 2], [0, 1]])


def test_two_kinds_of_diversity():
    top = np.array([[0, 1, 2], [0, 3, 4]])
    assert measures.diversity(top) == 5 / 6  # different words
    assert measures.once_only(top) == 4 / 6  # words that head one topic


def test_clusters_are_judged_as_by_scikit_learn(rng):
    for n_labels, n_clusters in ((4, 7), (3, 1), (1, 3), (5, 5)):
        labels = rng.integers(n_labels, size=200)
        clusters = np.where(rng.random(200) < 0.5, labels, rng.integers(n_clusters, size=200))
        clusters = clusters % n_clusters + 10
        assert measures.mutual_information(labels, clusters) == pytest.approx(
            normalized_mutual_info_score(labels, clusters), abs=1e-12
        )
        expected = contingency_matrix(labels, clusters).max(axis=0).sum() / 200
        assert measures.purity(labels, clusters) == pytest.approx(expected)
    assert measures.mutual_information(np.zeros(4), np.zeros(4)) == 0


def test_stability_finds_the_best_pairs_of_topics():
    run = [["a", "b"], ["c", "d"], ["e", "f"]]
    assert measures.stability([run, run[::-1]]) == 1
    # The best pairs are ab with ax, cd with cd; e and f have nothing left to be like.
    other = [["c", "d"], ["a", "x"], ["y", "z"]]
    assert measures.stability([run, other]) == pytest.approx((1 / 3 + 1 + 0) / 3)
    expected = (1 + 2 * (1 / 3 + 1) / 3) / 3
    assert measures.stability([run, other, run]) == pytest.approx(expected)


def test_proportions_find_the_thirds_and_classify_them(counts):
    counts, thirds = counts
    beta = np.full((N_WORDS, 3), 0.01)
    for k in range(3):
        beta[20 * k : 20 * k + 20, k] = 50  # pseudo-counts
    found = theta.proportions(Topics(beta, np.array([0.1, 0.1, 0.2]), 0.01), as_corpus(counts))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    assert (found.argmax(axis=1) == thirds).mean() > 0.97
    scores = theta.classified(found[:100], thirds[:100], found[100:], thirds[100:])
    assert set(scores) == {"accuracy", "macro_f1", "linear_accuracy"}
    assert min(scores.values()) > 0.95


# -- documents and plan -------------------------------------------------------------------------


def write(folder, counts, labels):
    """A corpus with its words and labels in `folder`."""
    item, word = counts.nonzero()
    lines = [*map(str, counts.shape), str(len(item))]
    lines += [f"{d + 1} {w + 1} {counts[d, w]:.0f}" for d, w in zip(item, word, strict=True)]
    folder.mkdir(exist_ok=True)
    (folder / "docword.thirds.txt").write_text("\n".join(lines) + "\n")
    (folder / "vocab.thirds.txt").write_text("".join(f"w{i}\n" for i in range(counts.shape[1])))
    (folder / "labels.thirds.txt").write_text("\n".join(labels) + "\n")
    return folder / "docword.thirds.txt"


def test_labels_split_a_corpus_and_its_words_are_those_of_the_training_documents(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(documents, "WORDS", 3)
    counts = np.array([[1, 1, 0, 0, 1], [1, 1, 2, 0, 0], [9, 0, 1, 0, 0], [0, 0, 0, 5, 0.0]])
    path = write(tmp_path / "in", counts, ["train b", "val\ta\t7", "test b", "test a"])
    described = documents.prepare(path, tmp_path / "out", split=True)
    # Word 3 is in no training document, word 4 is cut: words 2 and 4 are in one each.
    assert documents.load_words(tmp_path / "out") == ["w0", "w1", "w2"]
    train, test = (corpora.load(tmp_path / "out", part) for part in ("train", "test"))
    np.testing.assert_array_equal(train.to_csr().toarray(), counts[:2, :3])
    np.testing.assert_array_equal(test.to_csr().toarray(), counts[2:3, :3])  # the last is empty
    labels = [documents.load_labels(tmp_path / "out", part).tolist() for part in ("train", "test")]
    assert labels == [[1, 0], [1]]
    assert described == {"words": 3, "documents": 2, "tokens": 6, "test_documents": 1}


def test_wrong_labels_are_named(tmp_path):
    path = tmp_path / "labels.x.txt.gz"
    path.write_bytes(gzip.compress(b"train a\ndev b\n"))
    with pytest.raises(ValueError, match=r"labels\.x\.txt\.gz:2: must begin with train, val"):
        documents.read_labels(path, 2)
    path.write_bytes(gzip.compress(b"train a\n"))
    with pytest.raises(ValueError, match="1 lines for 2 documents"):
        documents.read_labels(path, 2)


def test_labels_of_the_real_corpora_fit_them(corpora_folder):
    for name, n_items, n_labels, n_test in (("bbc", 2225, 5, 335), ("20news", 18845, 20, 7531)):
        labels, is_test = documents.read_labels(corpora_folder / f"labels.{name}.txt.gz", n_items)
        assert (labels.max() + 1, is_test.sum()) == (n_labels, n_test)


def test_plan_goes_through_all_entrants_with_one_seed_before_the_next():
    entrants = {name: libraries.entrants()[name] for name in ("defaults", "tomotopy")}
    described = {
        "big": {"tokens": 9, "documents": 5, "bytes": 1},
        "small": {"tokens": 2, "documents": 5, "bytes": 1},
        "small.split": {"tokens": 1, "documents": 5, "bytes": 1},
    }
    runs = plan.runs(plan.Wanted(entrants, 2, 30.0), described)
    assert len({r.key() for r in runs}) == len(runs) == 2 * (3 * (1 + 5 + 5) + 2 * 2)
    assert [r.seed for r in runs] == sorted(r.seed for r in runs)
    assert [(r.corpus, r.topics) for r in runs[:6:2]] == [
        ("small.split", 50), ("small", 50), ("small", 10),
    ]  # fmt: skip
    wanted = {("defaults", cells.READ_AT), ("tomotopy", cells.PEER_PASSES)}
    assert {(r.entrant, r.passes) for r in runs} == wanted
    assert {r.topics for r in runs if r.seed == 4} == {50}


def test_published_rows_stand_in_the_table():
    record = {
        "settings": {
            "corpus": "bbc", "entrant": "defaults", "topics": 10, "seed": 0, "passes": 30,
            "seconds": 30.0,
        },
        "seconds": 2.0, "passes": 30.0, "scores": {"npmi": 0.1234, "diversity": 0.9},
        "top_words": [["a"]], "corpus": {"documents": 2225, "words": 2949},
        "provenance": {
            "command": "x", "date": "2026-01-01", "git": None, "versions": {},
            "hardware": {"processor": "some", "cores": 2},
        },
    }  # fmt: skip
    other = {
        **record, "settings": {**record["settings"], "seed": 1},
        "scores": {"npmi": 0.1, "diversity": 0.7},
    }  # fmt: skip
    more = {**record, "settings": {**record["settings"], "topics": 20}}
    # Every number of topics counts as much, whatever its runs.
    text = table.as_markdown([record, other, more])
    assert "| defaults | 0.118 | 0.850 | 2.0 | 30 | 3 of 15 |" in text
    text = table.as_markdown([record])
    assert "| defaults | 0.123 | 0.900 | 2.0 | 30 | 1 of 15 |" in text
    assert "| published: CTM | 0.094 | 0.819 | 97 |  |  |" in text
    assert published.BERTOPIC in text and published.TOPMOST not in text


# -- end to end ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_measures_what_is_missing_and_no_more(counts, tmp_path, capsys, monkeypatch):
    counts, thirds = counts
    parts = ["train"] * 100 + ["test"] * 50
    labels = [f"{part}\t{third}" for part, third in zip(parts, thirds, strict=True)]
    write(tmp_path / "in", counts, labels)
    monkeypatch.setattr(plan, "TOPICS", (3, 4))
    monkeypatch.setattr(plan, "STABLE_TOPICS", 3)
    monkeypatch.setattr(plan, "TOPICS_OF_SPLIT", 3)
    monkeypatch.setattr(plan, "SEEDS", (0,))
    monkeypatch.setattr(plan, "STABLE_SEEDS", (0,))
    arguments = [str(tmp_path / "in"), "--corpora", "thirds", "--entrants", "defaults,sklearn",
                 "--threads", "1", "--seconds", "1", "--out", str(tmp_path / "out")]  # fmt: skip
    assert quality.main(arguments) == 0
    said = capsys.readouterr().out
    assert "## thirds: coherence" in said and "## thirds: topics and labels" in said
    lines = [
        line
        for file in sorted((tmp_path / "out" / "runs").iterdir())
        for line in file.read_text().splitlines()
    ]
    records = [json.loads(line) for line in lines]
    assert len(records) == 2 * (2 + 1) and str(tmp_path) not in "".join(lines)
    for record in records:
        assert record["scores"]["npmi"] > 0.1
        assert all(len(topic) == 10 and topic[0].startswith("w") for topic in record["top_words"])
        assert record["provenance"]["versions"]["numpy"] == np.__version__
        if record["settings"]["corpus"] == "thirds.split":
            assert record["scores"]["purity"] > 0.9 and record["scores"]["accuracy"] > 0.9

    def nothing(*_, **__):
        raise AssertionError("a run was done twice")

    monkeypatch.setattr(quality, "launch", nothing)
    assert quality.main(arguments) == 0
    assert "0 runs to be done" in capsys.readouterr().err
