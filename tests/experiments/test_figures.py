"""The figures' machinery on small problems, and the two sharp ones of the paper's theory."""

import dataclasses
import json
import math
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from experiments.figures import findings, theory
from experiments.figures.__main__ import main
from experiments.figures.outcome import speedups
from experiments.figures.plan import PYTHON, SLOW, TOLERANCE, make_plan
from experiments.figures.runs import Run, Store, simulate, split, time_to

TIMING = {"step": 1e-3, "value": 1e-6, "spread": [0.9, 1.0, 1.1], "contention": 0.1}


# --- theory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [400, 1600])
@pytest.mark.parametrize("M, p, B", [(1, 1, 1), (4, 1, 1), (1, 1, 4), (1, 4, 1), (2, 2, 2)])
def test_the_rate_of_corollary_1(T, M, p, B):
    """(11): with the rate of (9) the mean squared gradient is a constant over sqrt(T M p B).

    Half of it is from where the descent begins, 22.5 = |v_0|^2 / 2, the rest noise, d / 2.
    """
    constant = theory.descend(T, M=M, p=p, B=B, delay=1) * math.sqrt(T * M * p * B)
    assert constant == pytest.approx(22.5 + 2.5, rel=0.07)


@pytest.mark.parametrize("row", theory.guard(), ids=lambda row: str(row["D'"]))
def test_the_guard_is_sharp(row):
    assert row["found"] == pytest.approx(row["predicted"], rel=0.005)


def test_workers_grow_as_the_root_of_the_steps():
    rows = theory.most_workers(quick=True)
    assert theory.slope(rows, "n") == pytest.approx(0.5, abs=0.1)


# --- runs -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus_path(tmp_path_factory):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(150, 0.05), 5)
    X = rng.poisson(50 * rng.dirichlet(np.full(5, 0.2), 900) @ topics)
    path = tmp_path_factory.mktemp("figures") / "docword.five.txt"
    d, w = np.nonzero(X)
    lines = [str(len(X)), "150", str(len(d))]
    lines += [f"{i + 1} {j + 1} {X[i, j]}" for i, j in zip(d, w, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_serial_is_the_baseline_and_workers_are_faster(corpus_path):
    run = Run(corpus_path.name, 500, topics=5, batch_size=10, passes=2, B=2)
    serial = simulate(run, str(corpus_path.parent), TIMING)
    four = simulate(dataclasses.replace(run, n=4), str(corpus_path.parent), TIMING)
    assert serial["bytes"] > 0 and serial["waiting"] == 0 and serial["items"] == 1000
    # 100 steps of about a millisecond and 10 x 40 values.
    assert serial["seconds"] == pytest.approx(100 * 1.4e-3, rel=0.15)
    assert four["seconds"] < serial["seconds"] / 1.5
    assert four["history"][-1][2] < 1.1 * serial["history"][-1][2]


def test_slower_steps_take_so_much_longer(corpus_path):
    """Serial SVI is all local steps; a rate that is given is the rate."""
    run = Run(corpus_path.name, 500, topics=5, batch_size=10, passes=1, B=2, rate=0.05)
    seconds = [
        simulate(dataclasses.replace(run, slower=by), str(corpus_path.parent), TIMING)["seconds"]
        for by in (1.0, 18.0)
    ]
    assert seconds[1] == pytest.approx(18 * seconds[0])


def test_the_dictionary_is_of_the_most_frequent_words(corpus_path):
    whole, cut = (split(str(corpus_path), 500, words) for words in (None, 40))
    counts = np.bincount(whole[0].index, whole[0].value, 150)
    assert cut[0].n_features == 40
    assert cut[0].value.sum() == np.sort(counts)[-40:].sum()
    assert all(np.diff(part.offsets).min() > 0 for part in cut)


def killed(*arguments):
    """What a system out of memory does to a run."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_run_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.figures.runs.simulate", killed)
    store = Store(tmp_path / "runs.jsonl", TIMING)
    with pytest.raises(SystemExit, match="killed, most likely for want of memory.*--jobs 1"):
        store.make([Run("c", 10)], tmp_path, {}, 1)


def test_a_store_is_read_again(tmp_path):
    store, run = Store(tmp_path / "runs.jsonl", TIMING), Run("c", 10)
    other = dataclasses.replace(run, n=3)
    store.add(run, {"seconds": 1.0}, {"command": "x"})
    with store.path.open("a") as file:
        file.write('{"run": ')  # killed here
    again = Store(tmp_path / "runs.jsonl", TIMING)
    assert again.get(run) == {"seconds": 1.0} and again.get(other) is None
    lines = [json.loads(line) for line in store.path.read_text().splitlines()[:1]]
    del lines[0]["run"]["waiting"]  # written when there was no such setting
    (tmp_path / "old.jsonl").write_text(json.dumps(lines[0]) + "\n")
    assert Store(tmp_path / "old.jsonl", TIMING).get(run) == {"seconds": 1.0}
    assert Store(store.path, {**TIMING, "value": 2e-6}).get(run) is None, "other costs"


def test_time_to_a_perplexity():
    history = [[1.0, 0, 100.0], [2.0, 0, 50.0], [3.0, 0, 25.0]]
    assert time_to(history, 200.0) == 1.0
    assert time_to(history, 50.0) == pytest.approx(2.0)
    assert time_to(history, math.sqrt(50 * 25)) == pytest.approx(2.5)
    assert time_to(history, 10.0) is None


def test_speedups_at_the_end_and_to_one_perplexity(tmp_path):
    """Serial SVI: 4 s to a perplexity of 100, 2 s to 102; workers of a slow step: 18 times that."""
    plan = dataclasses.replace(make_plan("c", quick=True), seeds=3, nodes=(1, 2))
    store = Store(tmp_path / "runs.jsonl", TIMING)
    for run in plan.serial():
        history = [[1.0, 0, 200.0], [2.0, 0, 100.0 * TOLERANCE], [4.0, 0, 100.0]]
        store.add(run, {"history": history, "seconds": 4.0}, {})
    common = {"master_busy": 0.1, "waiting": 0.2, "staleness": {"0": 3}, "bytes": 10, "items": 5,
              "exchanges": 3}  # fmt: skip
    for (_, _, n), runs in plan.points("fig1").items():
        for run in runs:
            seconds = 8.0 * run.slower / n
            final = 110.0 if n == 2 and run.seed else 100.0  # two of three seeds end too high
            history = [[seconds / 2, 0, 100.0 * TOLERANCE], [seconds, 0, final]]
            if final > 100:
                history[0][2] = 120.0
            store.add(run, {"history": history, "seconds": seconds, **common}, {})
    rows = {(row["panel"], row["series"], row["x"]): row for row in speedups(plan, store, "fig1")}
    for place in (SLOW, "10 GbE"):
        one, two = (rows[place, f"B = {plan.Bs[-1]}", n] for n in (1, 2))
        assert one["tsp"] == pytest.approx(4 / 8) and one["arrived"] == "3/3"
        assert one["sooner"] == pytest.approx(2 / 4)
        assert two["tsp"] is None and two["sooner"] is None and two["arrived"] == "1/3"
        assert two["speed"] == pytest.approx(1.0) and two["perplexity"] == pytest.approx(1.1)
    assert rows[SLOW, f"B = {plan.Bs[-1]}", 1]["run"].slower == PYTHON
    assert "missing at 2" in " ".join(findings.findings(list(rows.values()), "fig1"))


def test_points_with_fewer_seeds_are_named(tmp_path):
    """Drawn while an experiment is under way: each point with the seeds that it has."""
    plan = dataclasses.replace(make_plan("c", quick=True), seeds=3, both=(1, 2), Bs=(4,))
    store = Store(tmp_path / "runs.jsonl", TIMING)
    result = {"history": [[4.0, 0, 100.0]], "seconds": 4.0, "master_busy": 0.1, "waiting": 0.2,
              "staleness": {"0": 3}, "bytes": 10, "items": 5, "exchanges": 3}  # fmt: skip
    two = plan.points("fig3")[SLOW, "B = 4", 2]
    for run in [*plan.serial(), *plan.points("fig3")[SLOW, "B = 4", 1], *two]:
        store.add(run, result, {})
    rows = speedups(plan, store, "fig3")
    assert {row["x"] for row in rows} == {1, 2} and {row["panel"] for row in rows} == {SLOW}
    assert findings.seeds(rows) == "Seeds of every point: 3."
    del store.results[two[0].key]
    rows = speedups(plan, store, "fig3")
    assert findings.seeds(rows) == "Seeds of a point: 3; of B = 4 at 2: 2."
    assert [row["arrived"] for row in rows] == ["3/3", "2/2"]


def test_milder_slowing_is_said_with_its_numbers():
    def row(B, x, tsp):
        return {"panel": "here", "series": f"B = {B}", "x": x, "tsp": tsp, "run": Run("c", 1, B=B)}

    rows = [row(1, 2, 2.0), row(1, 4, 4.0), row(4, 2, 3.0), row(4, 4, 8.0), row(4, 6, None)]
    (said,) = findings.milder(rows)
    assert "n = p = 4" in said and "25% of n p (B = 1), 50% of n p (B = 4)" in said
    assert said.endswith("holds.")
    assert "does not hold" in findings.milder([row(1, 2, 2.0), row(4, 2, 1.0)])[0]


def test_everything_from_end_to_end(corpus_path, tmp_path, monkeypatch):
    """All quick figures of a small corpus; interrupted and drawn again without another run."""
    small = make_plan(corpus_path.name, quick=True)
    base = dataclasses.replace(small.base, documents=500, topics=5, batch_size=20)
    small = dataclasses.replace(
        small, base=base, nodes=(1, 2), threads=(1, 2), both=(1, 2), Bs=(1, 2), beyond=(10,),
        fixed=(2,), waiting=(0.2,),
    )  # fmt: skip
    monkeypatch.setattr("experiments.figures.__main__.make_plan", lambda *_: small)
    monkeypatch.setattr("experiments.figures.plan.GRID", {
        "kappa": (0.7,), "tau0": (4.0,), "batch_size": (20,),
    })  # fmt: skip
    monkeypatch.setattr("experiments.figures.plan.RATES", {"constant": (0.05,)})
    arguments = ["--corpus", str(corpus_path), "--quick", "--jobs", "1", "--out", str(tmp_path)]
    main([*arguments, "--only", "fig1"])
    runs = (tmp_path / "runs.jsonl").read_text().splitlines()
    main([*arguments, "--only", "fig1,fig2,fig3,fig4,beyond,steered,theory"])
    more = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert more[: len(runs)] == runs and len(more) > len(runs)
    main([*arguments, "--redraw"])
    assert (tmp_path / "runs.jsonl").read_text().splitlines() == more
    keys = [json.dumps(json.loads(line)["run"]) for line in more]
    assert len(set(keys)) == len(keys), "nothing is run twice"
    for name in ("fig1", "fig2", "fig3", "fig4", "beyond", "steered", "theory"):
        assert (tmp_path / f"{name}.svg").stat().st_size > 5000
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 7 and "http-equiv" not in page
    links = [part for part in page.split('"') if part.startswith("http")]
    assert all(part.startswith("http://www.w3.org/") for part in links), "names of formats only"
    assert str(Path.home()) not in page and str(tmp_path) not in page
