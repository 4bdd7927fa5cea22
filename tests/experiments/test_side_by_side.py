"""The comparison of the family with other tools: its arithmetic and its clock."""

import time

import numpy as np
from members import gaussian_mixture

from experiments.family import __main__ as family
from experiments.family.recorder import point, recorded
from experiments.family.table import curves, plot, seconds_to, table


def points():
    ours = [point("p", "dpsvi", "2 threads", s, score) for s, score in ((1, -3), (2, -2), (4, -1))]
    theirs = [point("p", "other", "slow", s, score) for s, score in ((10, -2.5), (20, -2))]
    better = [point("p", "best", "", 100, 0)]
    return [{"seed": 0, **p} for p in [*theirs, *ours, *better]]


def at(seed, tool, curve):
    return [{"seed": seed, **point("p", tool, "", s, score)} for s, score in curve]


def test_when_ours_has_a_score_of_others():
    text = table(points(), "# title", "source")
    assert "| other, slow | -2 | 20 | 10 to 20 s | 2 s |" in text
    assert "| best,  | 0 | 100 | at most 100 s | not reached |" in text


def test_a_peer_that_hardly_improves_any_more():
    """Ours was past it with its first point, and it came close between two of its own."""
    slow = [(s, -4 - 1 / s) for s in (50, 200, 400)]
    text = table([*points(), *at(0, "slow", slow)], "# title", "source")
    assert "| slow,  | -4.0025 | 400 | 50 to 200 s | at most 1 s |" in text
    text = table([*points(), *at(0, "slow", slow[1:])], "# title", "source")
    assert "| slow,  | -4.0025 | 400 | at most 200 s | at most 1 s |" in text


def test_several_seeds():
    """One that never reaches the score takes for ever, and counts in the median."""
    rows = [p for seed in range(3) for p in at(seed, "dpsvi", [(seed + 1, -seed)])]
    rows += [p for seed in range(3) for p in at(seed, "other", [(10, -1.5)])]
    row = "| 10 (10 to 10) | at most 10 s | at most 2 s (1 s to never); 2 of 3 seeds |"
    assert row in table(rows, "# title", "source")
    rows = [p for p in rows if p["tool"] != "dpsvi" or p["seed"] != 1]
    rows += at(1, "dpsvi", [(1, -2)])
    assert "| at most 10 s | reached by 1 of 3 |" in table(rows, "# title", "source")


def test_the_curve_of_a_tool():
    assert list(curves(points())["p"])[0] == "dpsvi, 2 threads", "ours first"
    curve = curves(points())["p"]["dpsvi, 2 threads"][0]
    assert seconds_to(curve, -2.5) == 2 and seconds_to(curve, 0) is None


def test_the_picture_has_every_tool(tmp_path, monkeypatch):
    from matplotlib import pyplot as plt

    monkeypatch.setattr(plt, "close", lambda figure: None)
    plot(points(), "title", tmp_path / "x.png")
    (axes,) = plt.gcf().axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["dpsvi", "other", "best"]
    low, high = axes.get_ylim()
    assert low < -2 and high > 0, "the last score of every tool is inside"


def test_scoring_is_not_timed_and_starting_is(rng):
    member = gaussian_mixture.MEMBER
    data = member.data(rng, 200)

    def score(fitted):
        time.sleep(0.3)
        return fitted.score(data["X"])

    began = time.perf_counter()
    found = recorded(member.estimator(max_iter=3), score, "p", "s", **data)
    assert len(found) == 3 and all(np.diff([p["seconds"] for p in found]) > 0)
    assert 0 < found[-1]["seconds"] < time.perf_counter() - began - 0.9
    assert found[-1]["score"] == member.estimator(max_iter=3).fit(**data).score(data["X"])


def test_every_comparison_has_a_title():
    assert {"gaussian_mixture", "hmm", "hdp"} <= set(family.names())
