"""The page in a browser."""

import html
import json

import numpy as np
import pytest
from tools.browser import browse, needs_chromium, probe
from tools.run_folders import HOSTILE, data_of, distributions, make_run

from dpsvi.report import write_report


@needs_chromium
def test_page_runs_in_a_browser(run, tmp_path):
    dom, logged = browse(write_report(run).as_uri(), tmp_path / "profile")
    assert logged == []
    assert 'data-ready="yes"' in dom
    assert dom.count('<li class="word">') == 20 * 20
    assert dom.count('class="bubble"') == 20
    assert dom.count('class="line main"') == 1
    assert "unigram baseline 2,144" in dom


@needs_chromium
def test_hostile_words_stay_text_in_a_browser(tmp_path):
    page = write_report(make_run(tmp_path / "run", words=HOSTILE))
    dom, logged = browse(page.as_uri(), tmp_path / "p")
    assert logged == []
    assert 'data-ready="yes"' in dom
    assert "<img" not in dom
    for word in HOSTILE:
        assert f'translate="no">{html.escape(word, quote=False)}</bdi>' in dom


@needs_chromium
@pytest.mark.parametrize("name", ["metrics.jsonl", "topics.csv", "topic_map.json"])
def test_page_without_a_file_runs_in_a_browser(run, tmp_path, name):
    (run / name).unlink()
    if name == "topics.csv":
        (run / "topic_map.json").unlink()
    dom, logged = browse(write_report(run).as_uri(), tmp_path / "profile")
    assert logged == []
    assert 'data-ready="yes"' in dom


@needs_chromium
def test_relevance_ranks_words_anew(run, tmp_path):
    """As computed here, and the search follows."""
    vocabulary, components = distributions()
    overall = components.mean(axis=0)
    topics = [
        {"topic": k, "words": list(zip(vocabulary, row, overall, strict=True)), "documents": []}
        for k, row in enumerate(components.tolist())
    ]
    topics[3]["documents"] = [[12, 0.75, "<b>a text</b>"]]
    content = {"corpus": {}, "topics": topics}
    (run / "topic_words.json").write_text(json.dumps(content, default=float))
    seen = probe(
        write_report(run),
        tmp_path / "profile",
        """
        const card = () => document.querySelector("[aria-label='Topic 3']");
        const words = () => [...card().querySelectorAll("bdi[title]")].map((w) => w.textContent);
        const slider = document.getElementById("relevance");
        const move = (value) => {
          slider.value = value;
          slider.dispatchEvent(new Event("input"));
          return words();
        };
        seen.words = [move("0.4"), move("1")];
        seen.said = document.querySelector("[for=relevance]").textContent;
        move("0.4");
        const search = document.getElementById("search");
        search.value = words()[0];
        search.dispatchEvent(new Event("input"));
        seen.hit = card().querySelector(".hit bdi").textContent === words()[0];
        seen.text = card().querySelector(".examples li").textContent;
    """,
    )
    p = components[3]
    for shown, r in zip(seen["words"], (0.4, 1), strict=True):
        relevance = r * np.log(p) + (1 - r) * np.log(p / overall)
        assert shown == [vocabulary[w] for w in np.argsort(-relevance)[:20]]
    assert seen["said"] == "1.0" and seen["hit"]
    assert seen["text"] == "12: 75.0% <b>a text</b>"


@needs_chromium
def test_controls(run, tmp_path):
    seen = probe(
        write_report(run),
        tmp_path / "profile",
        """
        const ticks = () => all("#curve text").map((text) => text.textContent);
        seen.seconds = ticks().includes("seconds");
        document.querySelector("[value=documents]").click();
        seen.documents = ticks().includes("documents");
        document.querySelector("#curve-controls [type=checkbox]").click();
        seen.log = [ticks().includes("10K"), ticks().includes("0"),
          document.getElementById("curve-note").textContent];
        const picture = document.querySelector("#curve svg");
        picture.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
        seen.reading = document.querySelector(".tip").textContent;
        const search = document.getElementById("search");
        const type = (text) => {
          search.value = text;
          search.dispatchEvent(new Event("input"));
          return all(".card:not([hidden]) h3 button").map((b) => b.firstChild.textContent).sort();
        };
        seen.galaxy = type("GALAX");
        seen.hits = all(".word.hit bdi").map((word) => word.textContent);
        seen.dim = all(".bubble.dim").length;
        seen.named = type("topic 7");
        seen.none = [type("zzz").length, document.getElementById("found").textContent];
        const bubble = all(".bubble").find((one) => one.textContent === "3");
        bubble.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        seen.chosen = all(".card.chosen").map((card) => card.getAttribute("aria-label"));
        seen.pressed = bubble.getAttribute("aria-pressed");
        seen.shown = all(".card:not([hidden])").length;
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
        seen.cleared = all(".chosen").length;
    """,
    )
    assert seen["seconds"]
    assert seen["documents"]
    assert seen["log"] == [
        True,
        False,
        "Points at 0 documents have no place on a log scale: 1 not shown.",
    ]
    assert "8,192 documents" in seen["reading"]
    holders = [
        topic["topic"]
        for topic in data_of((run / "report.html").read_text())["topics"]
        if "galaxy" in dict(topic["words"])
    ]
    assert 0 < len(holders) < 20
    assert seen["galaxy"] == sorted(f"Topic {topic}" for topic in holders)
    assert seen["hits"] == ["galaxy"] * len(holders)
    assert seen["dim"] == 20 - len(holders)
    assert seen["named"] == ["Topic 7"]
    assert seen["none"] == [0, "0 of 20 topics"]
    assert seen["chosen"] == ["Topic 3"]
    assert seen["pressed"] == "true"
    assert seen["shown"] == 20
    assert seen["cleared"] == 0
