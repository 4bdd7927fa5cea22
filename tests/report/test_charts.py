"""The charts of the page in a browser: what numbers and names say, and where they lie."""

import json
from itertools import pairwise

import numpy as np
import pytest
from tools.browser import needs_chromium, probe
from tools.run_folders import row_of

from dpsvi.report import write_report


@needs_chromium
def test_numbers_of_axes(run, tmp_path):
    """Ticks lie in the range and can be told apart, and a value can lie between two of them."""
    seen = probe(
        write_report(run),
        tmp_path / "profile",
        """
        const ranges = [[0, 1], [-0.3, 0.32], [1000, 1001], [0, 7e-5], [7, 7], [-3e6, -1e6]];
        seen.steps = ranges.map((ends) => steps(...ends));
        seen.texts = [[0, 0.2], [0, 500, 1000], [1000.5, 1001], [-2, 0], [0, 1e-12]].map(tickTexts);
        seen.finer = [
          [1000.4567, [1000, 1000.5]], [-0.123456, [-0.2, -0.1]], [0.5, [0, 0.5]],
          [12345.678, [12000, 13000]], [-0.0004, [-0.2, -0.1]], [3.25, []],
        ].map((given) => finer(...given));
        const scale = axis([10, 1000], [0, 90], true);
        seen.places = [10, 100, 1000].map(scale);
        seen.flat = axis([5, 5], [10, 90], false)(5);
        seen.decades = [[10, 1000], [1, 1e5], [3, 10]].map((e) => axis(e, [0, 1], true).ticks);
    """,
    )
    wanted = [
        np.arange(6) / 5, [-0.2, 0, 0.2], 1000 + np.arange(6) / 5, 2e-5 * np.arange(4), [7],
        -1e6 * np.array([3, 2.5, 2, 1.5, 1]),
    ]  # fmt: skip
    for ticks, expected in zip(seen["steps"], wanted, strict=True):
        assert ticks == pytest.approx(list(expected), abs=1e-9 * max(map(abs, expected)))
    assert seen["texts"] == [
        ["0", "0.2"], ["0", "500", "1,000"], ["1,000.5", "1,001.0"], ["\N{MINUS SIGN}2", "0"],
        ["0", "0.000000000001"],
    ]  # fmt: skip
    assert seen["finer"] == [
        "1,000.46", "\N{MINUS SIGN}0.1235", "0.5", "12,346", "\N{MINUS SIGN}0.0004", "3.25",
    ]  # fmt: skip
    assert seen["places"] == pytest.approx([0, 45, 90]) and seen["flat"] == 10
    assert seen["decades"] == [
        [10, 20, 50, 100, 200, 500, 1000], [10**e for e in range(6)], pytest.approx([4, 6, 8, 10])
    ]  # fmt: skip


def record(run, scores):
    """Replace what the run has recorded by scores at these seconds, a series a rank."""
    rows = [
        row_of(i, 10 * i, seconds, "score", value, rank=rank)
        for rank, series in enumerate(scores)
        for i, (seconds, value) in enumerate(series)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@needs_chromium
@pytest.mark.parametrize(
    "scores",
    [[(0, 100), (100, 0)], [(0, 0), (100, 100)], [(0, 50), (98, 99), (99, 0), (100, 1)], [(0, 5)]],
)
def test_the_name_of_a_line_does_not_lie_on_it(run, tmp_path, scores):
    """Nor outside of the picture; between two points that are far apart, too."""
    record(run, [scores])
    seen = probe(
        write_report(run),
        tmp_path / "profile",
        """
        const [line, name] = ["#curve .line", "#curve .main-label"].map((s) => all(s)[0]);
        const { x, y, width, height } = name.getBBox();
        const parts = Array.from({ length: 1001 }, (_, i) => line.getTotalLength() * i / 1000);
        const near = parts.map((part) => line.getPointAtLength(part)).filter((p) => p.x >= x);
        seen.below = near.every((point) => point.y > y + height);
        const { viewBox } = document.querySelector("#curve svg");
        seen.inside = x >= 0 && y >= 0 && x + width <= viewBox.baseVal.width;
    """,
    )
    assert seen == {"below": True, "inside": True}


@needs_chromium
def test_names_of_several_lines_are_apart(run, tmp_path):
    """Lines that end at nearly the same height; the names stay in the picture."""
    record(run, [[(0, 5), (9, 1 + rank / 1000)] for rank in range(3)])
    seen = probe(
        write_report(run),
        tmp_path / "profile",
        """
        const names = all("#curve text").filter((text) => text.textContent.includes("rank"));
        seen.names = names.map((name) => name.textContent);
        seen.boxes = names.map((name) => name.getBBox()).map((b) => [b.y, b.y + b.height]);
        const { width, height } = document.querySelector("#curve svg").viewBox.baseVal;
        seen.inside = names.map((name) => name.getBBox())
          .every((b) => b.x + b.width <= width && b.y + b.height <= height);
    """,
    )
    ends = [("0", "1"), ("1", "1.001"), ("2", "1.002")]
    assert sorted(seen["names"]) == [f"held-out, rank {rank} {end}" for rank, end in ends]
    boxes = sorted(seen["boxes"])
    assert all(above[1] <= below[0] for above, below in pairwise(boxes))
    assert seen["inside"]


@needs_chromium
def test_bubbles_of_the_map(run, tmp_path):
    """They lie in the picture, with areas as the shares; keys go from one to the next."""
    seen = probe(
        write_report(run),
        tmp_path / "profile",
        """
        const circles = all(".bubble circle").map((circle) =>
          ["cx", "cy", "r"].map((name) => Number(circle.getAttribute(name))));
        seen.inside = circles.every(([x, y, r]) =>
          Math.min(x, y) - r >= 0 && Math.max(x, y) + r <= SIDE);
        const weight = Object.fromEntries(DATA.topics.map((topic) => [topic.topic, topic.weight]));
        seen.ratios = all(".bubble").map((bubble, i) =>
          circles[i][2] ** 2 / weight[Number(bubble.textContent)]);
        const press = (key) => document.activeElement.dispatchEvent(
          new KeyboardEvent("keydown", { key, bubbles: true }));
        const at = () => all(".bubble").indexOf(document.activeElement);
        all(".bubble")[0].focus();
        seen.keys = ["ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp", "ArrowUp"].map((key) => {
          press(key);
          return at();
        });
        press("Enter");
        seen.chosen = all(".bubble").findIndex((bubble) => bubble.classList.contains("chosen"));
        seen.stops = all(".bubble[tabindex='0']").length;
    """,
    )
    assert seen["inside"]
    assert seen["ratios"] == pytest.approx([seen["ratios"][0]] * 20)
    assert seen["keys"] == [1, 2, 1, 0, 19]
    assert seen["chosen"] == 19 and seen["stops"] == 1


@needs_chromium
def test_what_is_closed_is_printed(run, tmp_path):
    seen = probe(
        write_report(run),
        tmp_path / "profile",
        """
        const open = () => all("details.printed").map((one) => one.open);
        all("details.printed")[0].open = true;
        seen.states = ["beforeprint", "afterprint"].map((name) => {
          window.dispatchEvent(new Event(name));
          return open();
        });
    """,
    )
    assert seen["states"] == [[True, True], [True, False]]
