"""What the report reads in a run folder, and says of files that are broken or absent."""

import html
import json
import math
import re

import numpy as np
import pytest
from tools.run_folders import (
    append,
    data_of,
    row_of,
    tiles_of,
)

from dpsvi.report import write_report


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


def test_lines_of_earlier_versions_count_items_as_docs(run):
    now, path = data_of(write_report(run).read_text()), run / "metrics.jsonl"
    path.write_text(path.read_text().replace('"items"', '"docs"'))
    assert data_of(write_report(run).read_text()) == now


BROKEN_LINES = {
    '{"step": 3, "do': "the last line, cut short",
    "[1, 2]\n": "a list, not an object",
    "\xff\n": "left out",
    '{"step": 1}\n': "no field items, seconds, metric, value, split, rank",
    json.dumps(row_of(1, 1, 1, "perplexity", math.nan)) + "\n": "value: nan is not a finite",
    json.dumps(row_of(1, 1, 1, "perplexity", 0.5)) + "\n": "value: 0.5 is not a finite",
    json.dumps(row_of(1, -1, 1, "perplexity", 9)) + "\n": "items: -1 is not a finite",
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


WORDS = """{"corpus": {"words": 9}, "topics": [
    {"topic": %s, "words": [["cat", %s, 0.1]], "documents": [[7, 0.9, "a cat"]]}]}"""


def test_more_words_and_documents_are_optional(run):
    (run / "topic_words.json").write_text(WORDS % (0, 0.5))
    page = write_report(run).read_text()
    found = {topic["topic"]: topic for topic in data_of(page)["topics"]}
    assert found[0]["ranked"] == [["cat", 0.5, 0.1]]
    assert found[0]["documents"] == [[7, 0.9, "a cat"]]
    assert found[1]["ranked"] == found[1]["documents"] == []
    assert "<li>words <b>9</b></li>" in page


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
        ("topic_words.json", "[]", "topic_words.json: no corpus or no topics"),
        ("topic_words.json", '{"corpus": {"words": "x"}}', "'x' is not a number"),
        ("topic_words.json", WORDS % (99, 0.5), "topic 99 is not in topics.csv"),
        ("topic_words.json", WORDS % (0, 1.5), "1.5 is not a finite number in [0, 1]"),
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
