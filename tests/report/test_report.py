"""The HTML report: topic map, reading of the run folder, escaping, and the page in a browser."""

import csv
import html
import json
import math
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon, pdist, squareform
from sklearn.decomposition import KernelPCA

from dpsvi.report import topic_map, write_report
from dpsvi.report.layout import js_distances

THEMES = """
gene protein cell sequence dna expression genome mutation rna binding enzyme transcription
cell tumor cancer patient tissue growth receptor therapy breast disease clinical survival
patient treatment trial clinical drug dose therapy placebo risk outcome hospital randomized
neuron brain cortex response stimulus visual synaptic activity memory firing motor spike
network learning training layer model neural input weight error gradient output classifier
model bayesian prior posterior distribution inference likelihood latent variable sampling
algorithm problem bound optimal convergence theorem function set proof complexity graph
graph node edge network vertex community path degree random cluster tree link
image object feature pixel segmentation detection camera video scene texture shape depth
word language text sentence document translation parsing corpus grammar topic semantic speech
query database index search user web data page retrieval server storage information
system software code program memory thread cache processor compiler parallel performance kernel
robot control state policy action reward agent motion environment plan trajectory sensor
star galaxy mass telescope redshift luminosity cluster stellar solar orbit planet emission
energy particle quantum field decay state spin electron mass collision photon detector
magnetic temperature phase lattice spin superconductor transition electron crystal band film
water climate ocean temperature carbon surface soil ice rainfall atmosphere sea forest
species population habitat evolution selection plant bird diversity predator fish ecology forest
market price trade firm cost risk stock bank investor tax policy growth
school student teacher education social child family community survey university women health
"""
FILLER = "method result analysis value number effect increase large time data rate level".split()
HOSTILE = [
    "<script>alert(1)</script>",
    "</script>",
    "<img src=x onerror=alert(1)>",
    "a&amp;b",
    "\u2028",
    "'\"`${x}",
    "\u05e9\u05dc\u05d5\u05dd",
    "naïve",
    'comma, "quoted"',
]


def distributions(seed=0):
    """Topic-word matrix of the themes: 20 topics, each leaning to its neighbours in the list."""
    rng = np.random.default_rng(seed)
    themes = [line.split() for line in THEMES.strip().splitlines()]
    vocabulary = sorted({word for theme in themes for word in theme} | set(FILLER))
    components = rng.gamma(0.3, 0.004, (len(themes), len(vocabulary)))
    for row, theme in zip(components, themes, strict=True):
        for rank, word in enumerate([*theme, *rng.permutation(FILLER)]):
            row[vocabulary.index(word)] += 0.3 / (rank + 2.5) * rng.uniform(0.7, 1.3)
    gap = np.abs(np.subtract.outer(np.arange(len(themes)), np.arange(len(themes))))
    components = np.exp(-1.2 * gap) @ components
    return vocabulary, components / components.sum(axis=1, keepdims=True)


def make_run(folder, n_words=20, n_points=40, words=None):
    """Write a run folder as ``dpsvi fit lda`` leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    vocabulary, components = distributions()
    weights = rng.dirichlet(np.full(len(components), 2.0))
    with (folder / "topics.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["topic", "rank", "word", "probability", "weight"])
        for topic, row in enumerate(components):
            for rank, index in enumerate(np.argsort(-row)[:n_words], start=1):
                word = vocabulary[index]
                if words and rank <= len(words) and topic == 0:
                    word = words[rank - 1]
                writer.writerow([topic, rank, word, f"{row[index]:.6f}", f"{weights[topic]:.6f}"])
    places = topic_map(components, weights)
    (folder / "topic_map.json").write_text(
        json.dumps([{"topic": k, "x": x, "y": y} for k, (x, y) in enumerate(places.tolist())])
    )
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model": "lda",
                "n_components": 20,
                "batch_size": 256,
                "learning_decay": 0.7,
                "doc_topic_prior": "auto",
                "engine": {"name": "threads", "n_jobs": 4},
                "tol": None,
            }
        )
    )
    (folder / "env.json").write_text(
        json.dumps(
            {
                "versions": {"dpsvi": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"},
                "host": "node07",
                "cores": 16,
                "seed": 0,
            }
        )
    )
    rows = [row_of(0, 0, 0.0, "unigram_perplexity", 2143.7)]
    for i in range(n_points):
        docs, seconds = 8192 * i, round(9.6 * i + 0.4 * math.sin(i), 3)
        value = 1180 * (1 + 1.3 * math.exp(-i / 5) + 0.004 * rng.standard_normal())
        rows.append(row_of(32 * i, docs, seconds, "perplexity", value))
        if i:
            rows.append(
                row_of(
                    32 * i,
                    docs,
                    seconds,
                    "tokens_per_second",
                    151_000 + 4000 * rng.standard_normal(),
                    split="train",
                )
            )
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def row_of(step, docs, seconds, metric, value, split="heldout", rank=0):
    return {
        "step": step,
        "docs": docs,
        "seconds": seconds,
        "metric": metric,
        "value": float(value),
        "split": split,
        "rank": rank,
    }


def append(folder, text):
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(text)


def data_of(page):
    """Return the JSON that the page's script reads, cut out the way a browser does."""
    start = page.index('id="run-data">') + len('id="run-data">')
    return json.loads(page[start : page.index("</script", start)])


def tiles_of(page):
    found = re.findall(r"<dt>(.*?)</dt><dd><b>(.*?)</b><small>(.*?)</small>", page)
    return {html.unescape(label): (value, detail) for label, value, detail in found}


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "newsgroups-k20")


# Topic map


def test_distances_equal_scipy():
    _, components = distributions()
    reference = [[jensenshannon(p, q, base=2) for q in components] for p in components]
    np.testing.assert_allclose(js_distances(components * 7), reference, atol=1e-7)


def test_distances_do_not_depend_on_blocks(monkeypatch):
    _, components = distributions()
    expected = js_distances(components)
    monkeypatch.setattr("dpsvi.report.layout.BLOCK_ENTRIES", 60)
    np.testing.assert_allclose(js_distances(components), expected, atol=1e-12)


@pytest.mark.parametrize("weights", [None, [1, 1, 1], [5, 1, 2]])
def test_three_topics_keep_their_distances(weights):
    # Three points always fit in a plane, so the map is exact whatever the weights.
    components = np.random.default_rng(3).dirichlet(np.ones(30), size=3)
    positions = topic_map(components, weights)
    np.testing.assert_allclose(squareform(pdist(positions)), js_distances(components), atol=1e-7)
    mass = np.ones(3) if weights is None else np.asarray(weights)
    np.testing.assert_allclose(mass @ positions, 0, atol=1e-12)


def test_weights_move_the_origin_only():
    components = np.random.default_rng(4).dirichlet(np.ones(30), size=6)
    plain, weighted = topic_map(components), topic_map(components, [0, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(pdist(weighted), pdist(plain))
    np.testing.assert_allclose(weighted[2], 0, atol=1e-12)


def test_map_equals_scikit_learn():
    _, components = distributions()
    positions = topic_map(components)
    centred = -0.5 * js_distances(components) ** 2
    reference = KernelPCA(2, kernel="precomputed", eigen_solver="dense").fit_transform(centred)
    np.testing.assert_allclose(np.abs(positions), np.abs(reference), atol=1e-6)


def test_disjoint_topics_form_an_equilateral_triangle():
    np.testing.assert_allclose(pdist(topic_map(np.eye(3))), 1)


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        ([[1, 2, 3]], [[0, 0]]),
        (np.eye(2), [[0.5, 0], [-0.5, 0]]),
        (np.ones((4, 5)), np.zeros((4, 2))),
        ([[1, 0], [1, 0], [0, 2], [0, 2]], [[0.5, 0], [0.5, 0], [-0.5, 0], [-0.5, 0]]),
    ],
    ids=["one", "two", "equal", "pairs"],
)
def test_map_of_degenerate_topics(components, expected):
    # The sign of a symmetric axis is arbitrary, so compare with both.
    positions = topic_map(components)
    np.testing.assert_allclose(np.abs(positions), np.abs(expected), atol=1e-7)
    np.testing.assert_allclose(pdist(positions), pdist(np.asarray(expected, float)), atol=1e-7)


def test_map_separates_groups_of_topics():
    rng = np.random.default_rng(0)
    bases = np.kron(np.eye(3), np.ones(20))
    components = np.repeat(bases, 5, axis=0) + rng.uniform(0, 0.1, (15, 60))
    distances = squareform(pdist(topic_map(components)))
    same = np.kron(np.eye(3, dtype=bool), np.ones((5, 5), dtype=bool))
    assert distances[same].max() < 0.2 * distances[~same].min()


@pytest.mark.parametrize(
    ("components", "weights", "message"),
    [
        ([1, 2], None, "shape (2,)"),
        (np.empty((0, 3)), None, "shape (0, 3)"),
        ([[1, -2]], None, "components[0, 1] is -2.0"),
        ([[1, 2], [np.nan, 1]], None, "components[1, 0] is nan"),
        ([[1, 2], [0, 0]], None, "components[1] sums to 0"),
        (np.eye(2), [1], "shape (2,), got (1,)"),
        (np.eye(2), [1, -1], "weights must be finite"),
        (np.eye(2), [0, 0], "weights must be finite"),
    ],
)
def test_map_refuses(components, weights, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        topic_map(components, weights)


# Run folder


def test_key_numbers(run):
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = [row["value"] for row in rows if row["metric"] == "perplexity"][-1]
    speeds = [row["value"] for row in rows if row["metric"] == "tokens_per_second"]
    tiles = tiles_of(write_report(run).read_text())
    assert tiles["Held-out perplexity"][0] == f"{last:,.0f}"
    assert f"−{math.log(last):.3f} nats" in tiles["Held-out perplexity"][1]
    assert tiles["Unigram baseline"][0] == "2,144"
    assert tiles["Improvement"][0] == f"{1 - last / 2143.7:.1%}"
    assert tiles["Topics"][0] == "20"
    assert tiles["Documents"][0] == f"{8192 * 39:,}"
    assert tiles["Tokens per second"][0] == f"{np.median(speeds):,.0f}"
    assert tiles["Seconds"] == ("374.8", "6 min 15 s")


def test_worse_than_the_baseline_is_shown_as_negative(run):
    append(run, json.dumps(row_of(9999, 9e5, 400, "perplexity", 2 * 2143.7)))
    tiles = tiles_of(write_report(run).read_text())
    assert tiles["Improvement"][0] == "−100.0%"
    assert "; best 1,1" in tiles["Held-out perplexity"][1]


def test_speed_is_summed_over_ranks(run):
    append(run, json.dumps(row_of(5, 5, 5, "tokens_per_second", 1e6, rank=1)) + "\n")
    value, detail = tiles_of(write_report(run).read_text())["Tokens per second"]
    assert value == "1.15 M"
    assert "sum over 2 ranks" in detail


def test_resumed_run_replaces_repeated_steps(run):
    before = data_of(write_report(run).read_text())["curves"][0]["points"]
    append(run, json.dumps(row_of(960, 245760, 500.0, "perplexity", 1500)) + "\n")
    after = data_of(write_report(run).read_text())["curves"][0]["points"]
    assert after == [p for p in before if p[0] < 960] + [[960, 245760, 500.0, 1500]]


def test_topics_come_heaviest_first(run):
    topics = data_of(write_report(run).read_text())["topics"]
    weights = [topic["weight"] for topic in topics]
    assert weights == sorted(weights, reverse=True)
    assert sorted(topic["topic"] for topic in topics) == list(range(20))


def test_long_curves_are_thinned_and_say_so(run):
    append(
        run,
        "".join(
            json.dumps(row_of(10_000 + i, i, i, "perplexity", 900 + i)) + "\n" for i in range(5000)
        ),
    )
    page = write_report(run).read_text()
    points = data_of(page)["curves"][0]["points"]
    assert points[-1][0] == 14_999
    assert points[0][0] == 0
    assert f"The held-out curve shows {len(points):,} of 5,040 points." in page


BROKEN_LINES = {
    '{"step": 3, "do': "the last line, cut short",
    "[1, 2]\n": "a list, not an object",
    "\xff\n": "left out",
    '{"step": 1}\n': "no field docs, seconds, metric, value, split, rank",
    json.dumps(row_of(1, 1, 1, "perplexity", math.nan)) + "\n": "value: nan is not a finite",
    json.dumps(row_of(1, 1, 1, "perplexity", 0.5)) + "\n": "value: 0.5 is not a finite",
    json.dumps(row_of(1, -1, 1, "perplexity", 9)) + "\n": "docs: -1 is not a finite",
    json.dumps(row_of(1, 1, 1, "perplexity", 9) | {"value": "9"}) + "\n": "'9' is not a number",
    json.dumps(row_of(1, 1, 1, "perplexity", 9) | {"split": 4}) + "\n": "split is 4",
    "[" * 100_000 + "\n": "left out",
}


@pytest.mark.parametrize(("line", "note"), BROKEN_LINES.items(), ids=range(len(BROKEN_LINES)))
def test_broken_metrics_line_is_named_and_left_out(run, line, note):
    sound = data_of(write_report(run).read_text())
    number = len((run / "metrics.jsonl").read_text().splitlines()) + 1
    append(run, line)
    page = write_report(run).read_text()
    assert data_of(page) == sound
    (notes,) = re.findall(r'<aside class="notes".*?</aside>', page)
    assert f"metrics.jsonl:{number} left out" in notes
    assert note in html.unescape(notes)


def test_many_broken_lines_are_counted(run):
    append(run, "{\n" * 30)
    assert "25 more broken lines" in write_report(run).read_text()


@pytest.mark.parametrize("name", ["config.json", "env.json", "metrics.jsonl", "topics.csv"])
def test_absent_file_is_named(run, name):
    (run / name).unlink()
    if name == "topics.csv":
        (run / "topic_map.json").unlink()
    assert f"{name} is not in the run folder." in write_report(run).read_text()


def test_topic_map_is_optional(run):
    (run / "topic_map.json").unlink()
    page = write_report(run).read_text()
    assert {topic["at"] for topic in data_of(page)["topics"]} == {None}
    assert '<aside class="notes"' not in page


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", "{", "config.json: not valid JSON"),
        ("config.json", "[]", "config.json: holds a list"),
        ("env.json", '{"a": \xff}', "env.json: not valid JSON"),
        ("topics.csv", "", "topics.csv:0: header []"),
        ("topics.csv", "a,b\n", "topics.csv:1: header ['a', 'b']"),
        ("topics.csv", "+0,1,cat,0.5\n", "topics.csv:2: 4 fields"),
        ("topics.csv", "+0,1,cat,1.5,0.1\n", "topics.csv:2: 1.5 is not a finite number in [0, 1]"),
        ("topics.csv", "+0,1,cat,nan,0.1\n", "topics.csv:2: nan is not a finite number"),
        ("topics.csv", "+x,1,cat,0.5,0.1\n", "topics.csv:2: invalid literal"),
        ("topics.csv", "+0,1,cat,.5,.1\n0,2,dog,.4,.2\n", "topics.csv:3: weight 0.2 of topic 0"),
        ("topic_map.json", "{}", "topic_map.json: holds a dict"),
        ("topic_map.json", '[{"topic": 0, "x": 1}]', "entry 0: KeyError('y')"),
        ("topic_map.json", '[{"topic": 99, "x": 1, "y": 1}]', "topic 99 is not in topics.csv"),
        ("topic_map.json", '[{"topic": 0, "x": NaN, "y": 1}]', "nan is not a finite number"),
        ("topic_map.json", "[]", "places 0 of 20 topics"),
    ],
)
def test_malformed_file_is_refused(run, name, content, message):
    header = "topic,rank,word,probability,weight\n"
    text = header + content[1:] if content.startswith("+") else content
    (run / name).write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=re.escape(message)):
        write_report(run)
    assert not (run / "report.html").exists()


def test_not_a_run_folder(tmp_path):
    with pytest.raises(NotADirectoryError):
        write_report(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="is not a run folder"):
        write_report(tmp_path)


# Page


def test_page_is_the_same_for_the_same_files(run):
    first = write_report(run).read_bytes()
    assert write_report(run).read_bytes() == first


def test_user_text_is_escaped(tmp_path):
    run = make_run(tmp_path / "<b>run</b>", words=HOSTILE)
    (run / "config.json").write_text(json.dumps(dict.fromkeys(HOSTILE, HOSTILE) | {"x": "\ud800"}))
    page = write_report(run).read_text()
    for text in ("<script>alert", "<img", "<b>run", "\ud800"):
        assert text not in page
    assert page.count("<script") == page.count("</script>") == 2
    (first,) = (topic for topic in data_of(page)["topics"] if topic["topic"] == 0)
    assert [word for word, _ in first["words"][: len(HOSTILE)]] == HOSTILE
    start = page.index("run-data")
    assert page[start : page.index("</script>", start)].isascii()


def test_title_from_the_settings(run):
    (run / "config.json").write_text('{"title": "NIPS & friends"}')
    assert '<h1 dir="auto">NIPS &amp; friends</h1>' in write_report(run).read_text()


def test_page_names_nothing_external(run):
    page = write_report(run).read_text()
    assert not re.search(r"(src|href|action)\s*=\s*[\"']?\s*(\w+:)?//", page)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(", page)
    assert "default-src 'none'" in page


def test_page_is_replaced_not_overwritten(run):
    # A reader that opened the old page, here through a second name, still sees the whole of it.
    page = write_report(run)
    old = page.read_bytes()
    os.link(page, run / "old.html")
    append(run, json.dumps(row_of(9999, 9e5, 400, "perplexity", 5000)) + "\n")
    assert write_report(run).read_bytes() != old
    assert (run / "old.html").read_bytes() == old


def test_failed_write_keeps_the_old_page(run, monkeypatch):
    old = write_report(run).read_bytes()
    names = sorted(os.listdir(run))
    append(run, json.dumps(row_of(9999, 9e5, 400, "perplexity", 5000)) + "\n")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(run)
    assert (run / "report.html").read_bytes() == old
    assert sorted(os.listdir(run)) == names


# Browser


def chromium():
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


needs_chromium = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")


def browse(page, profile):
    """Open a page in headless Chromium; returns its final DOM and what it logged."""
    done = subprocess.run(
        [
            chromium(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            f"--user-data-dir={profile}",
            "--window-size=1280,1600",
            "--virtual-time-budget=2000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def probe(page, profile, script):
    """Run `script` in a copy of the page without its security policy; returns its `seen`."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text())
    copy = page.with_name("probe.html")
    copy.write_text(
        text.replace(
            "</body>",
            f"""<script>{{
        const seen = {{}};
        const all = (selector) => [...document.querySelectorAll(selector)];
        {script}
        document.body.append(html("pre", {{ id: "seen" }}, JSON.stringify(seen)));
        }}</script></body>""",
        )
    )
    dom, logged = browse(copy, profile)
    assert logged == []
    (seen,) = re.findall(r'<pre id="seen">(.*?)</pre>', dom)
    return json.loads(html.unescape(seen))


@needs_chromium
def test_page_runs_in_a_browser(run, tmp_path):
    dom, logged = browse(write_report(run), tmp_path / "profile")
    assert logged == []
    assert 'data-ready="yes"' in dom
    assert dom.count('<li class="word">') == 20 * 20
    assert dom.count('class="bubble"') == 20
    assert dom.count('class="line main"') == 1
    assert "unigram baseline 2,144" in dom


@needs_chromium
def test_hostile_words_stay_text_in_a_browser(tmp_path):
    dom, logged = browse(write_report(make_run(tmp_path / "run", words=HOSTILE)), tmp_path / "p")
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
    dom, logged = browse(write_report(run), tmp_path / "profile")
    assert logged == []
    assert 'data-ready="yes"' in dom


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
