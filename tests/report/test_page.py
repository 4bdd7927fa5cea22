"""The page as a file: the same for the same files, escaped, whole, nothing external."""

import json
import os
import re

import pytest
from tools.run_folders import HOSTILE, append, data_of, make_run, row_of

from dpsvi.report import write_report


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


def test_the_model_of_a_command_is_named(run):
    (run / "config.json").write_text('{"name": "gaussian_mixture", "data": "points.npy"}')
    page = write_report(run).read_text()
    assert "model <b>gaussian_mixture<" in page and "data <b>points.npy<" in page


def test_parts_that_are_linked_are_there(run):
    page = write_report(run).read_text()
    links = re.findall('<a href="#([^"]+)"', page)
    assert len(links) == 3 and all(f'<h2 id="{link}">' in page for link in links)


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
