"""The table of strategies: items by group, choices, and what it says."""

import gzip
import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from tools.corpus_writers import write

from dpsvi import DPSVIHMM, DPSVILDA, Cluster, DPSVIGaussianMixture, strategies
from experiments.strategies import domain, few_bytes
from experiments.strategies.__main__ import main
from experiments.strategies.agent import LEARNING_RATES, SETTINGS
from experiments.strategies.known import PROVED
from experiments.strategies.measured import measure
from experiments.strategies.problems import GROUPS, PROBLEMS, by_group, digits, load
from experiments.strategies.settings import CHOICES, ENTRANTS, OF_AGENT, choices, named, split
from experiments.strategies.table import table
from experiments.strategies.trial import Trials


@pytest.fixture
def folder(tmp_path, rng):
    """2,000 documents of 20 groups, each of which has 3 words of its own."""
    labels = rng.integers(GROUPS, size=2000)
    counts = rng.poisson(0.05, size=(2000, 3 * GROUPS))
    for own in range(3):
        counts[np.arange(2000), 3 * labels + own] += 3
    write(tmp_path, csr_array(counts), "uci", gz=True).rename(tmp_path / "docword.20news.txt.gz")
    with gzip.open(tmp_path / "labels.20news.txt.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"train\tgroup{label:02}\t{i}\n" for i, label in enumerate(labels))
    return tmp_path


def test_the_documents_of_a_worker_are_of_one_group(folder):
    train, others = load(folder, 10)
    assert train.n_items == 10 * GROUPS and others.n_items == 1500
    dense = train.to_csr().toarray().reshape(10, GROUPS, GROUPS, 3).sum(axis=3)
    assert np.all(dense.argmax(axis=2) == np.arange(GROUPS))


def test_a_group_of_digits_is_half_of_one():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 22))
    found = labels[by_group(labels)].reshape(-1, GROUPS)
    assert np.array_equal(found, np.broadcast_to(np.repeat(np.arange(10), 2), found.shape))
    train, tuning, test = digits()
    assert len(train) % GROUPS == 0 and len(tuning) == len(test) == 300
    assert len({row.tobytes() for row in (*train, *tuning, *test)}) > 0.99 * (600 + len(train))


def test_everybody_chooses_from_as_many_settings():
    assert CHOICES.keys() <= ENTRANTS.keys() and set(strategies.names()) <= ENTRANTS.keys()
    for name, (strategy, fixed) in ENTRANTS.items():
        assert len({str(settings) for settings in choices(name, {})}) == 3
        assert len({str(settings) for settings in choices(name, OF_AGENT)}) == 3
        for settings in choices(name, {}) + choices(name, OF_AGENT):
            assert fixed.keys() <= settings.keys()
            given, parameters = split(settings)
            Cluster(strategy=strategy, **given)
            assert parameters.keys() <= {"local_steps", "incremental"}
    assert named({}) == "default" and named({"outer_rate": 0.5}) == "outer rate 0.5"


def test_all_is_said_of_everybody():
    assert list(PROVED) == list(ENTRANTS)


def test_parameters_outside_of_their_domain_are_found(rng):
    """Also those that a local step would repair."""
    X = rng.normal(size=(200, 2))
    settings = {"batch_size": 20, "max_iter": 1, "random_state": 0}
    mixture = DPSVIGaussianMixture(3, **settings).fit(X)._state
    chain = DPSVIHMM(3, **settings).fit(X, lengths=[20] * 10)._state
    topics = DPSVILDA(3, **settings).fit(rng.poisson(1.0, (200, 9)))._state
    width = 2 * 2 + 2 + 3  # weight | kappa | h | Psi | nu

    def of_mixture(state):
        return domain.components(state, 2)

    def of_chain(state):
        return domain.chain(state, 3, 2)

    for state, outside, places in (
        (mixture, of_mixture, {0: 0, 1: 1, width + 4: 1, width + 7: 1, width - 1: 1}),
        (chain, of_chain, {0: 1, 5: 1, 12 + 1: 1, 12 + width + 4: 1, 12 + width - 1: 1}),
    ):  # fmt: skip
        assert outside(state) < 0
        for place in places:
            before = state.shared.totals[0].copy()
            state.shared.totals[0, place] = -(state.model.prior[0, place] + 1) / state.scale
            assert outside(state) > 0, place
            state.shared.totals[0] = before
    assert domain.counts(topics) <= 0
    topics.shared.rows[2, 1] = -1e-3
    assert domain.counts(topics) > 0


def test_from_end_to_end(folder, monkeypatch):
    def two(folder, problem, passes, offset, chosen, seeds):
        asked.append(list(chosen))
        return {name: [{"score": -3.0, "outside": 0.0}] for name in chosen}

    asked = []
    monkeypatch.setattr("experiments.strategies.__main__.measure", two)
    arguments = [
        str(folder), "--problems", "lda", "--only", "decay,gossip", "--workers", "2", "--seeds",
        "1", "--length", "1", "--out", str(folder / "out"),
    ]  # fmt: skip
    main(arguments)
    found = json.loads((folder / "out/lda.json").read_text())
    assert list(found["rows"]) == ["decay", "gossip"] and len(found["offsets"]) == 3
    row = found["rows"]["gossip"]["seeds"][0]
    assert row.keys() == {"n = 2", "one group each", "one slow", "one killed", "two processes"}
    assert row["n = 2"]["score"] < 0 == row["n = 2"]["outside"] and row["n = 2"]["bytes"] > 0
    assert len(found["rows"]["gossip"]["scores"]) == 3
    text = (folder / "out/lda.md").read_text()
    assert text.startswith("# Strategies: lda") and "| gossip |" in text
    main([*arguments, "--redraw"])
    assert (folder / "out/lda.md").read_text() == text
    # What is on record is not made again, unless it is asked for.
    main(arguments)
    assert json.loads((folder / "out/lda.json").read_text()) == found
    main([*arguments, "--only", "gossip", "--fresh"])
    again = json.loads((folder / "out/lda.json").read_text())
    assert again["rows"]["decay"] == found["rows"]["decay"]
    assert again["rows"]["gossip"]["seeds"] == found["rows"]["gossip"]["seeds"]
    # Kills that an earlier record lacks are added, as they would have been.
    kills = [row.pop("one killed") for row in again["rows"]["gossip"]["seeds"]]
    (folder / "out/lda.json").write_text(json.dumps(again))
    main(arguments)
    again = json.loads((folder / "out/lda.json").read_text())["rows"]["gossip"]
    assert [row["one killed"] for row in again["seeds"]] == kills and "score" in kills[0]
    assert list(again["added"]) == ["one killed"]
    assert asked == [["decay", "gossip"], [], ["gossip"], []]
    with pytest.raises(ValueError, match="use another --out"):
        main([*arguments, "--seeds", "2"])


def test_an_actor_critic_is_a_problem_of_moves_and_returns(tmp_path, monkeypatch):
    """It has no groups, and says of each strategy that cannot fit it why."""

    def two(folder, problem, length, rate, chosen, seeds):
        assert (problem, length) == ("actor-critic", 3000) and rate in LEARNING_RATES
        return {name: [{"score": 20.0}] for name in chosen}

    monkeypatch.setattr("experiments.strategies.__main__.measure", two)
    monkeypatch.setitem(SETTINGS, "n_games", 2)
    main([
        "nowhere", "--problems", "actor-critic", "--only", "displacement,incremental,sda",
        "--workers", "4", "--seeds", "1", "--length", "3000", "--out", str(tmp_path),
    ])  # fmt: skip
    found = json.loads((tmp_path / "actor-critic.json").read_text())
    assert (found["unit"], found["moves"]) == ("episode", 3000) and len(
        found["learning_rates"]
    ) == 3
    row = found["rows"]["displacement"]["seeds"][0]
    assert row.keys() == {"n = 4", "one slow", "one killed", "two processes"}
    assert 8 <= row["n = 4"]["score"] <= 500 and row["n = 4"]["bytes"] > 0
    assert [rate["global_rate"] for rate in found["rows"]["displacement"]["tried"][1:]] == [
        0.25, 0.0625
    ]  # fmt: skip
    text = (tmp_path / "actor-critic.md").read_text()
    assert "3,000 moves" in text and "every worker plays games of its own" in text
    cells = text.split("| displacement |")[1].split("\n")[0].split("|")
    assert cells[2].strip() == "does not apply" == cells[-3].strip()
    assert "* `incremental`, n = 4: 1 of 1 fits failed, Refused: an actor-critic has no" in text
    assert "* `sda`, n = 4: 1 of 1 fits failed, Refused: strategy='sda' adds the" in text


@pytest.mark.mpi
def test_two_processes_end_as_near_as_virtual_workers(folder):
    found = measure(folder, "lda", 2, 10.0, {"decay": {}, "gossip": {}}, [0])
    trials = Trials(PROBLEMS["lda"](folder), 2, 10.0)
    for name in ("decay", "gossip"):
        virtual = trials.fit(0, name, {}, 2)
        # Of a busy machine's two processes one may be far behind the other.  Counting words: -4.1.
        assert abs(found[name][0]["score"] - virtual["score"]) < 0.2
        assert found[name][0]["outside"] == 0 < found[name][0]["bytes"]


def test_the_table_says_what_was_found():
    def fit(score, **more):
        scores = [[1.0, score - 1], [2.0, score]]
        return {"scores": scores, "score": score, "seconds": 2.0, "bytes": 1234.5, "outside": 0.0,
                **more}  # fmt: skip

    row = {
        "n = 4": fit(-5.1), "one group each": {"failed": "DivergedError: NaN"},
        "one slow": fit(-5.1, seconds=5.0, outside=0.1), "two processes": fit(-5.2),
        "one killed": fit(-5.15),
    }  # fmt: skip
    git = {"revision": "0123456789", "modified": False}
    record = {
        "unit": "token", "workers": [4], "passes": 5, "offset": 10.0, "serial": [fit(-5.0)],
        "git": git, "rows": {"decay": {"settings": {"rate": 0.5}, "seeds": [row, row], "git": git}},
    }  # fmt: skip
    said = table(record)
    assert (
        "| decay | rate 0.5 | +10.0 | DivergedError | +15.0 | +20.0 | never | 2.5 times | 1,234 "
        "| 4 of 10 | nothing in this form |\n\nFits that failed:\n\n"
        "* `decay`, one group each: 2 of 2 fits failed, DivergedError: NaN\n"
    ) in said
    assert "By how much n = 4 is sooner" in said
    # What was refused everywhere has no number anywhere, and says so.
    no = {"failed": "Refused: it cannot"}
    refused = dict.fromkeys(("n = 4", "one group each", "one slow", "two processes"), no)
    record["rows"]["incremental"] = {"settings": {}, "seeds": [refused], "git": git}
    assert f"| incremental | default |{' Refused |' * 8} nothing in this form |" in table(record)
    row["n = 4"] = {**fit(-4.99), "scores": [[0.5, -5.01], [1.0, -4.99]]}
    assert "| -1.0 | DivergedError | +15.0 | +20.0 | 4.0 times |" in table(record)


def test_few_bytes_without_a_master(folder, monkeypatch):
    monkeypatch.setattr(few_bytes, "N_NODES", 2)
    monkeypatch.setattr(few_bytes, "N_TOPICS", 3)
    free = {"local_steps": 2, "most_blind": None}
    cases = [("serial", {}, 1), ("ownership", free, 1), ("push_rows", {"share": 0.1}, 1)]
    monkeypatch.setattr(few_bytes, "CASES", cases[:2])
    monkeypatch.setattr(few_bytes, "SEEDS", range(2))
    monkeypatch.setattr(few_bytes, "FEW", 1)
    monkeypatch.setattr(few_bytes, "MANY", 1)
    few_bytes.main([str(folder), "--out", str(folder / "out")])
    found = json.loads((folder / "out/few-bytes.json").read_text())
    monkeypatch.setattr(few_bytes, "CASES", cases)
    few_bytes.main([str(folder), "--out", str(folder / "out")])
    again = json.loads((folder / "out/few-bytes.json").read_text())
    new = len(found["cases"])
    assert again["cases"][:new] == found["cases"] and len(again["cases"]) == new + 1
    chosen = [case for case in found["cases"] if case["settings"].get("numbers") == "bfloat16"]
    tried = {case["settings"]["together"]: case["score"] for case in chosen if case["seed"] == 1000}
    best = max(tried, key=tried.get)
    assert [(case["seed"], case["settings"]["together"]) for case in chosen[len(tried) :]] == [
        (0, best), (1, best)
    ]  # fmt: skip
    # A block of ownership is half of the matrix, and goes there and back at every second step.
    assert 2 <= again["cases"][1]["dense"] / again["cases"][1]["bytes"] < 8
    assert "| serial | default | 1 | 2 |" in (folder / "out/few-bytes.md").read_text()
    case = {"strategy": "gossip", "settings": {}, "passes": 1, "score": -5.05, "bytes": 20.0,
            "dense": 1000.0, "seed": 0, "git": {"revision": "0d165d4"}}  # fmt: skip
    serial = {**case, "strategy": "serial", "score": -5.0}
    said = few_bytes.table({"cases": [serial, case]}).splitlines()[-1]
    assert said == "| gossip | default | 1 | 1 | -5.0500 | +5.1 % | +1.00 % | 1/50 |"
