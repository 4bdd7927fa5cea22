"""The figures' machinery on small problems, and the two sharp ones of the paper's theory."""

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpsvi.cluster.virtual import Timing
from experiments.figures import findings, python_step, theory
from experiments.figures.__main__ import main
from experiments.figures.default_step import DefaultStep, costs_by_size
from experiments.figures.outcome import soonest, speedups
from experiments.figures.plan import (
    CHEAP,
    DECAY,
    FALLING,
    PAPER,
    PYTHON,
    RULE,
    TOLERANCE,
    make_plan,
)
from experiments.figures.runs import Run, simulate, split, time_to
from experiments.figures.store import ROOT, Store, code_mark, executed

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


def test_decay_as_read_is_another_fit_of_several_threads(corpus_path):
    """Both forms of the decay that Figure 2 shows; with one thread they are one."""
    run = Run(corpus_path.name, 500, topics=5, batch_size=10, n=1, B=2, rate=0.05)
    for p, equal in ((1, True), (4, False)):
        exact, as_read = (
            simulate(dataclasses.replace(run, p=p, local_decay=kind), corpus_path.parent, TIMING)
            for kind in ("exact", "as_read")
        )
        ends = [result["history"][-1][2] for result in (exact, as_read)]
        assert (ends[0] == pytest.approx(ends[1], rel=1e-6)) is equal
        assert ends[1] == pytest.approx(ends[0], rel=0.05)


def test_ratios_of_a_step_in_python(corpus_path):
    train, *_ = split(str(corpus_path), 500)
    assert 0 < python_step.ours(train, {}) < 1e-2
    rows = [
        {"iterations": "all", "ours": 1e-6 * own, "gensim, local step": 8e-6,
         "gensim, whole step": 16e-6}
        for own in (1, 2, 4)
    ]  # fmt: skip
    rows += [{**row, "iterations": "at most ten"} for row in rows]
    *_, line, _, last = python_step.table(rows)
    assert line == "| all | 2.0 | 8.0 | 16.0 | 4.0 (2.0-8.0) | 8.0 (4.0-16.0) |"
    assert f"{PYTHON:g}" in last


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
    monkeypatch.setattr("experiments.figures.store.simulate", killed)
    monkeypatch.setattr("experiments.figures.store.parts", lambda *_: None)
    store = Store(tmp_path / "runs.jsonl", TIMING, "code")
    with pytest.raises(SystemExit, match="killed, most likely for want of memory.*--jobs 1"):
        store.make([Run("c", 10)], tmp_path, {}, 1)


def test_a_store_is_read_again(tmp_path):
    store, run = Store(tmp_path / "runs.jsonl", TIMING, "code"), Run("c", 10)
    other = dataclasses.replace(run, n=3)
    store.add(run, {"seconds": 1.0}, {"command": "x"})
    with store.path.open("a") as file:
        file.write('{"run": ')  # killed here
    again = Store(tmp_path / "runs.jsonl", TIMING, "code")
    assert again.get(run) == {"seconds": 1.0} and again.get(other) is None
    lines = [json.loads(line) for line in store.path.read_text().splitlines()[:1]]
    del lines[0]["run"]["waiting"]  # written when there was no such setting
    (tmp_path / "old.jsonl").write_text(json.dumps(lines[0]) + "\n")
    assert Store(tmp_path / "old.jsonl", TIMING, "code").get(run) == {"seconds": 1.0}
    assert Store(store.path, {**TIMING, "value": 2e-6}, "code").get(run) is None, "other costs"


def test_results_of_other_code_are_not_taken_up(tmp_path):
    run, path = Run("c", 10), tmp_path / "runs.jsonl"
    Store(path, TIMING, "before").add(run, {"seconds": 1.0}, {})
    assert Store(path, TIMING, "after").get(run) is None
    Store(path, TIMING, "after").add(run, {"seconds": 2.0}, {})
    assert Store(path, TIMING, "before").get(run) == {"seconds": 1.0}
    assert Store(path, TIMING, None).get(run) == {"seconds": 2.0}, "drawn is what was run last"


def test_the_code_mark_is_of_all_that_a_run_imports(corpus_path):
    """Whatever module of ours is loaded after a run, in a process of its own, is in the mark."""
    run = Run(corpus_path.name, 500, topics=5, batch_size=10, n=2, strategy="displacement")
    code = (
        "import sys, dataclasses, json\n"
        "from experiments.figures.runs import Run, simulate\n"
        "run, folder, timing = json.loads(sys.argv[1])\n"
        "simulate(Run(**run), folder, timing)\n"
        "print(json.dumps([m.__file__ for m in list(sys.modules.values())"
        " if getattr(m, '__file__', None)]))\n"
    )
    settings = json.dumps([dataclasses.asdict(run), str(corpus_path.parent), TIMING])
    out = subprocess.run(
        [sys.executable, "-c", code, settings], capture_output=True, text=True, check=True,
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout  # fmt: skip
    loaded = {Path(name).resolve() for name in json.loads(out.splitlines()[-1])}
    ours = {path for path in loaded if path.is_relative_to(ROOT / "dpsvi")}
    assert ours and ours <= set(executed())
    assert {"runs.py", "held_out.py"} <= {path.name for path in executed()}


def test_the_code_mark_changes_with_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.figures.store.ROOT", tmp_path)
    file = tmp_path / "dpsvi" / "training" / "loop.py"
    file.parent.mkdir(parents=True)
    file.write_text("a = 1\n")
    before = code_mark()
    assert code_mark() == before
    file.write_text("a = 2\n")
    assert code_mark() != before


def test_time_to_a_perplexity():
    history = [[1.0, 0, 100.0], [2.0, 0, 50.0], [3.0, 0, 25.0]]
    assert time_to(history, 200.0) == 1.0
    assert time_to(history, 50.0) == pytest.approx(2.0)
    assert time_to(history, math.sqrt(50 * 25)) == pytest.approx(2.5)
    assert time_to(history, 10.0) is None


WORKERS = {
    DECAY: {"strategy": "decay", "rate": 0.02}, FALLING: {"strategy": "decay"},
    PAPER: {"strategy": "displacement", "rate": 0.01},
    RULE: {"strategy": "displacement", "rate": 0.04, "rule": "per_T"},
}  # fmt: skip


def test_equal_perplexity_is_what_counts(tmp_path):
    """Serial SVI: 4 s to a perplexity of 100, 2 s to 102; workers of a slow step: 18 times that."""
    plan = dataclasses.replace(make_plan("c", quick=True), seeds=3, nodes=(1, 2), workers=WORKERS)
    store = Store(tmp_path / "runs.jsonl", TIMING, "code")
    for run in plan.serial():
        history = [[1.0, 0, 200.0, 1.0], [2.0, 0, 100.0 * TOLERANCE, 1.0], [4.0, 0, 100.0, 1.0]]
        store.add(run, {"history": history, "seconds": 4.0}, {})
    common = {"master_busy": 0.1, "waiting": 0.2, "staleness": {"0": 3}, "bytes": 10, "items": 5,
              "exchanges": 3}  # fmt: skip
    for (_, _, n), runs in plan.points("fig1").items():
        for run in runs:
            seconds = 8.0 * run.slower / n
            final = 110.0 if n == 2 and run.seed else 100.0  # two of three seeds end too high
            history = [[seconds / 2, 0, 100.0 * TOLERANCE, 1.0], [seconds, 0, final, 1.0]]
            if final > 100:
                history[0][2] = 120.0
            store.add(run, {"history": history, "seconds": seconds, **common}, {})
    rows = speedups(plan, store, "fig1")
    assert {row["x"] for row in rows} == {1, 2}
    for row in rows:
        if row["x"] == 1:
            assert row["tsp"] == pytest.approx(2 / 4) and row["arrived"] == "3/3" and row["ended"]
            assert row["speed"] == pytest.approx(4 / 8)
            # Log-linear from 102 at 4 s to 100 at 8 s, of serial SVI at 2 s and 4 s.
            assert row["stricter"] == [pytest.approx(0.5), pytest.approx(0.5)]
            assert row["paired"] == 1.0 and row["paired_range"] == [1.0, 1.0]
        else:
            assert row["tsp"] is None and row["arrived"] == "1/3" and not row["ended"]
            assert row["speed"] == pytest.approx(1.0) and row["perplexity"] == pytest.approx(1.1)
            assert row["stricter"] == [None, None]
            assert row["paired"] == pytest.approx((1.0 + 1.1 + 1.1) / 3)
    assert rows[0]["run"].slower == PYTHON
    first, _, *others = findings.sentences(rows, "fig1")
    assert first.startswith("TSP (12), the time to serial SVI's perplexity + 2 %, at best: 0.50")
    assert "TSP (12) 0.50 at 1, missing at 2. Documents per second 0.50 at 1" in others[0]


def test_workers_are_compared_with_serial_fits_of_their_own_step(tmp_path):
    """Two problems in one panel: each has the serial fit of its own, and of the same seed."""
    base = Run("c", 10, local_step="collapsed", kappa=None, B=None, passes=6)
    store = Store(tmp_path / "runs.jsonl", TIMING, "code")
    plans = [
        DefaultStep(dataclasses.replace(base, keep=keep), 2, (2,), (2,), (2,), {1: (2,), 4: (8,)})
        for keep in (False, True)
    ]
    common = {"master_busy": 0.1, "waiting": 0.2, "staleness": {"0": 3}, "bytes": 10, "items": 5,
              "exchanges": 3, "seconds": 4.0}  # fmt: skip
    for plan, of_serial in zip(plans, (100.0, 80.0), strict=True):
        for run in plan.serial():
            final = of_serial * (1 + run.seed)
            store.add(run, {"history": [[4.0, 0, final, 1.0]], **common}, {})
        for runs in (*plan.points("fig1").values(), *plan.points("beyond").values()):
            for run in runs:
                final = of_serial * (1 + run.seed) * (1.01 if run.seed else 0.99)
                store.add(run, {"history": [[4.0, 0, final, 1.0]], **common}, {})
    assert plans[0].points("fig2") == {}
    rows = [row for plan in plans for row in speedups(plan, store, "fig1")]
    assert len({row["panel"] for row in rows}) == 2 and len({row["series"] for row in rows}) == 2
    for row in rows:
        assert row["paired"] == pytest.approx(1.0)
        assert row["paired_range"] == [pytest.approx(0.99), pytest.approx(1.01)]
    assert [(row["run"].n, row["run"].p, row["x"]) for row in speedups(plans[1], store, "beyond")] \
        == [(2, 1, 2), (2, 4, 8)]  # fmt: skip
    assert findings.milder(rows) == [], "no B is given"


def test_costs_of_a_step_and_of_a_value_follow_from_two_sizes():
    """Seconds per document that do not depend on the size are a matter of values alone."""
    for step, value in ((0.0, 2.0), (3.0, 2.0)):
        whole, part = ((Timing(step=step + 0.5 * n, value=value - 0.5), n) for n in (64.0, 8.0))
        assert costs_by_size(whole, part) == pytest.approx({"step": step, "value": value})
    slower = Timing(step=0.0, value=1.0), 64.0
    assert costs_by_size(slower, (Timing(step=0.0, value=0.5), 8.0)) == {"step": 0.0, "value": 1.0}


def test_kept_sums_are_what_a_run_ends_with(corpus_path):
    """Passes that keep are timed and exchanged as all others are, and so is their last sum."""
    run = Run(corpus_path.name, 500, topics=5, batch_size=10, passes=4, every=1.0, B=None,
              local_step="collapsed", kappa=None, eta=None, sweeps=None)  # fmt: skip
    kept, serial, plain = (
        simulate(dataclasses.replace(run, **more), str(corpus_path.parent), TIMING)
        for more in ({"n": 4, "keep": True}, {"keep": True}, {"n": 4})
    )
    for result, looks in ((kept, 6), (serial, 6), (plain, 5)):
        assert result["items"] == 4 * 500
        seconds = [look[0] for look in result["history"]]
        assert len(seconds) == looks and seconds == sorted(seconds)
        assert seconds[-1] == result["seconds"]
    assert kept["seconds"] > kept["history"][-2][0], "the sum takes time"
    assert kept["seconds"] < serial["seconds"] / 1.5
    assert kept["history"][-1][2] < 1.1 * serial["history"][-1][2]


def test_rates_are_chosen_by_the_time_to_equal_perplexity(tmp_path):
    """A rate that ends lower but gets there later loses; without one that does, the lowest wins."""
    plan = make_plan("c", quick=True)
    store = Store(tmp_path / "runs.jsonl", TIMING, "code")
    serial, (late, soon, never, *_) = plan.grid()[0], plan.rates(DECAY)
    for run, history in (
        (serial, [[2.0, 0, 100.0]]),
        (late, [[1.0, 0, 150.0], [2.0, 0, 90.0]]),
        (soon, [[1.0, 0, 101.0], [2.0, 0, 100.0]]),
        (never, [[1.0, 0, 104.0], [2.0, 0, 103.0]]),
    ):
        store.add(run, {"history": history, "seconds": 2.0}, {})
    assert soonest([late, soon, never], store, serial) == soon
    assert soonest([never], store, serial) == never


def test_points_with_fewer_seeds_are_named(tmp_path):
    """Drawn while an experiment is under way: each point with the seeds that it has."""
    plan = dataclasses.replace(
        make_plan("c", quick=True), seeds=3, both=(1, 2), Bs=(4,), workers=WORKERS
    )
    store = Store(tmp_path / "runs.jsonl", TIMING, "code")
    result = {"history": [[4.0, 0, 100.0, 1.0]], "seconds": 4.0, "master_busy": 0.1, "waiting": 0.2,
              "staleness": {"0": 3}, "bytes": 10, "items": 5, "exchanges": 3}  # fmt: skip
    two = plan.points("fig3")[CHEAP, "B = 4", 2]
    for run in [*plan.serial(), *plan.points("fig3")[CHEAP, "B = 4", 1], *two]:
        store.add(run, result, {})
    rows = speedups(plan, store, "fig3")
    assert {row["x"] for row in rows} == {1, 2} and {row["panel"] for row in rows} == {CHEAP}
    assert findings.seeds(rows) == "Seeds of every point: 3."
    del store.results[two[0].key]
    rows = speedups(plan, store, "fig3")
    assert findings.seeds(rows) == "Seeds of a point: 3; of B = 4 at 2: 2."
    assert [row["arrived"] for row in rows] == ["3/3", "2/2"]
    other = [{**row, "panel": "default step", "arrived": "5/5"} for row in rows]
    found = findings.seeds([*rows, *other])
    assert found == f"Seeds of a point: 3 ({CHEAP}), 5 (default step); of {CHEAP}, B = 4 at 2: 2."


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
        grid_of={"kappa": (0.7,), "tau0": (4.0,), "batch_size": (20,)}, rates_of=(0.05,),
        fixed=(2,), waiting=(0.2,),
    )  # fmt: skip
    monkeypatch.setattr("experiments.figures.__main__.make_plan", lambda *_: small)
    arguments = ["--corpus", str(corpus_path), "--quick", "--jobs", "1", "--out", str(tmp_path)]
    main([*arguments, "--only", "fig1"])
    runs = (tmp_path / "runs.jsonl").read_text().splitlines()
    main([*arguments, "--only", "fig1,fig2,fig3,fig4,beyond,steered,theory"])
    assert "default step" not in (tmp_path / "fig1.md").read_text()
    main([*arguments, "--only", "default"])
    more = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert more[: len(runs)] == runs and len(more) > len(runs)
    own = (tmp_path / "runs-default.jsonl").read_text().splitlines()
    main([*arguments, "--redraw"])
    assert (tmp_path / "runs.jsonl").read_text().splitlines() == more
    assert (tmp_path / "runs-default.jsonl").read_text().splitlines() == own
    assert all("default step, 3" in (tmp_path / f"{name}.md").read_text()
               for name in ("fig1", "fig3", "beyond"))  # fmt: skip
    keys = [json.dumps(json.loads(line)["run"]) for line in more + own]
    assert len(set(keys)) == len(keys), "nothing is run twice"
    for name in ("fig1", "fig2", "fig3", "fig4", "beyond", "steered", "theory"):
        assert (tmp_path / f"{name}.svg").stat().st_size > 5000
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 7 and "http-equiv" not in page
    links = [part for part in page.split('"') if part.startswith("http")]
    assert all(part.startswith("http://www.w3.org/") for part in links), "names of formats only"
    assert str(Path.home()) not in page and str(tmp_path) not in page
