"""The page of a run that goes on: it follows its files, and nobody else's are served."""

import http.client
import json
import os
import re
import threading
import time
from contextlib import contextmanager

import pytest
from tools.browser import browse, needs_chromium
from tools.run_folders import append, data_of, make_run, row_of, tiles_of

from dpsvi.commands.run_folder import RunFolder
from dpsvi.report import write_report
from dpsvi.report.live import USED, LivePage, Server


@contextmanager
def served(page):
    """The server of a page, while it runs."""
    with Server(page) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def get(server, path="/", host=None):
    """Status, headers and text of an answer; the path is sent as it stands here."""
    connection = http.client.HTTPConnection(*server.server_address, timeout=30)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read().decode()
    connection.close()
    return found


def test_the_page_follows_the_run(tmp_path):
    """Its files are those that a fit writes while it runs."""
    with RunFolder(tmp_path / "run") as folder, served(LivePage(folder.path)) as server:
        folder.write_settings({"topics": 5}, "documents", seed=3, threads=1)
        status, headers, page = get(server)
        assert status == 200 and headers["Cache-Control"] == "no-store"
        assert data_of(page)["curves"] == [] and not data_of(page)["ended"]
        assert "is not in the run folder" not in page
        for n in range(1, 4):
            folder.metric(n, 100 * n, 0.5 * n, "perplexity", 900 / n, "heldout")
            page = get(server)[2]
            (curve,) = data_of(page)["curves"]
            assert curve["points"][-1] == [n, 100 * n, 0.5 * n, 900 / n]
            assert len(curve["points"]) == n
            assert tiles_of(page)["Held-out perplexity"][0] == f"{900 // n}"
        (folder.path / "model.json").write_text("{}")
        assert data_of(get(server)[2])["ended"]


def test_a_run_with_checkpoints_has_not_ended(run):
    page = LivePage(run)
    (run / "model.json").write_text("{}")
    (run / "checkpoints").mkdir()
    assert not data_of(page.content().decode())["ended"]
    (run / "checkpoints").rmdir()
    assert data_of(page.content().decode())["ended"]


def test_a_page_is_made_once_for_the_same_files(run, monkeypatch):
    page = LivePage(run)
    first = page.content()
    assert page.content() is first
    append(run, json.dumps(row_of(9999, 9e5, 400, "perplexity", 700)) + "\n")
    assert page.content() != first


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt", "/%2e%2e/secret.txt", "../secret.txt", "//secret.txt", "/secret.txt",
        "/metrics.jsonl", "/config.json", "/./", "/?../secret.txt", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_nothing_else_is_served(path, run):
    (run.parent / "secret.txt").write_text("secret")
    with served(LivePage(run)) as server:
        assert get(server, path)[::2] == (404, "there is one page here, /")


def test_only_this_machine_is_answered(run):
    with served(LivePage(run)) as server:
        port = server.server_address[1]
        assert server.server_address[0] == "127.0.0.1"
        assert server.address == f"http://127.0.0.1:{port}/"
        for host in (f"127.0.0.1:{port}", "localhost:9000", "localhost"):
            assert get(server, host=host)[0] == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "["):
            assert get(server, host=host)[::2] == (403, "this page is for browsers of this machine")


def test_the_page_is_told_when_the_run_last_wrote(run):
    for name in USED:
        if (run / name).exists():
            os.utime(run / name, (10_000, 10_000))
    os.utime(run / "metrics.jsonl", (2_000_000, 2_000_000))
    with served(LivePage(run)) as server:
        assert get(server)[1]["Last-Modified"] == "Sat, 24 Jan 1970 03:33:20 GMT"


@needs_chromium
@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "live"), (240, "nothing new for 4 min"), (9000, "nothing new for 2 h")],
)
def test_a_run_that_writes_nothing_is_not_called_live(seconds, said, run, tmp_path):
    for name in USED:
        if (run / name).exists():
            os.utime(run / name, (time.time() - seconds,) * 2)
    with served(LivePage(run)) as server:
        dom, logged = browse(server.address, tmp_path / "profile", milliseconds=1500)
    assert logged == []
    assert re.search(r'role="status">(.*?)</span>', dom)[1] == said


def test_a_file_that_cannot_be_read_now(run):
    """While it is written, as the folder of another program may be; then the page goes on."""
    whole = (run / "config.json").read_text()
    with served(LivePage(run)) as server:
        (run / "config.json").write_text("{")
        status, headers, text = get(server)
        assert status == 503 and headers["Refresh"] == "2"
        assert text.startswith("cannot be read now: ") and "config.json: not valid JSON" in text
        (run / "config.json").write_text(whole)
        assert get(server)[0] == 200


def test_a_live_page_asks_its_own_address_alone(run):
    live, still = LivePage(run).content().decode(), write_report(run).read_text()
    policy = re.search('Security-Policy" content="(.*?)"', live)[1]
    assert policy.endswith("connect-src 'self'") and "default-src 'none'" in policy
    assert re.findall(r"fetch\((.*?),", live) == ["window.location.href"]
    assert "connect-src" not in still and "class Live" not in still


def scores(folder, metric="score", split="heldout", values=(-9.5, -7.25, -8.0), **config):
    """A run folder without topics."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    rows = [row_of(n, 100 * n, n, metric, v, split) for n, v in enumerate(values, 1)]
    rows += [row_of(3, 300, 3, "items_per_second", 125, "train")] * (metric == "score")
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_run_with_scores(tmp_path):
    page = LivePage(scores(tmp_path / "run")).content().decode()
    data, tiles = data_of(page), tiles_of(page)
    assert data["measure"] == {"name": "score", "log": False} and data["items"] == "items"
    (curve,) = data["curves"]
    assert [point[3] for point in curve["points"]] == [-9.5, -7.25, -8.0]
    assert tiles["Held-out score"] == ("−8", "best −7.25 at 2 s")
    assert list(tiles) == ["Held-out score", "Items", "Items per second", "Seconds"]
    assert tiles["Items"][0] == "300" and tiles["Items per second"][0] == "125"
    assert '<section aria-labelledby="topics-title" hidden>' in page
    (tmp_path / "run" / "metrics.jsonl").write_text("")
    (tmp_path / "run" / "config.json").write_text('{"data": "points.npy"}')  # as it begins
    page = LivePage(tmp_path / "run").content().decode()
    assert list(tiles_of(page)) == ["Items", "Seconds"]


def test_a_run_says_what_it_goes_through(tmp_path):
    folder = scores(tmp_path / "run")
    (folder / "env.json").write_text('{"items": "sequences"}')
    page = LivePage(folder).content().decode()
    assert data_of(page)["items"] == "sequences"
    assert list(tiles_of(page)) == [
        "Held-out score", "Sequences", "Sequences per second", "Seconds",
    ]  # fmt: skip
    rows = [row_of(1, 100, 1, "items_per_second", 120, "train")]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = LivePage(folder).content().decode()
    assert data_of(page)["measure"]["name"] == "sequences per second"
    assert "Sequences per second. The run holds no sequences out" in page


def test_a_run_without_a_score(tmp_path):
    folder = scores(tmp_path / "run", "items_per_second", "train", (100, 120))
    page = LivePage(folder).content().decode()
    assert data_of(page)["measure"]["name"] == "items per second"
    assert [point[3] for point in data_of(page)["curves"][0]["points"]] == [100, 120]
    assert list(tiles_of(page)) == ["Items", "Items per second", "Seconds"]


def test_a_game(tmp_path):
    folder = scores(tmp_path / "run", split="evaluation", command="play")
    (folder / "env.json").write_text('{"items": "moves"}')
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    unmeasured = [line for line in lines if "items_per_second" not in line]
    (folder / "metrics.jsonl").write_text("".join(unmeasured))
    found = LivePage(folder).content().decode()
    assert list(tiles_of(found)) == ["Evaluation score", "Moves", "Seconds"]
    assert data_of(found)["items"] == "moves"


class Growing(LivePage):
    """A run that writes a line each time when somebody looks."""

    looks = 0

    def content(self):
        self.looks += 1
        append(self.folder, json.dumps(row_of(9000 + self.looks, 9e5, 400, *self.row())) + "\n")
        return super().content()

    def row(self):
        return "perplexity", 700 + self.looks


@needs_chromium
def test_a_browser_follows_the_run(tmp_path):
    """Numbers and curve are those of the last look, and the page was not loaded anew for them."""
    page = Growing(make_run(tmp_path / "run"))
    with served(page) as server:
        dom, logged = browse(server.address, tmp_path / "profile", milliseconds=7000)
    assert logged == []
    assert page.looks >= 3  # when it was loaded, and every 2 seconds
    (shown,) = re.findall(r"held-out (\d+)</text>", dom)
    assert int(shown) - 700 in (page.looks, page.looks - 1)  # the last answer may be on its way
    assert tiles_of(dom)["Held-out perplexity"][0] == shown
    assert '<span class="live going" role="status">live</span>' in dom
    data = data_of(dom)  # of the page as it was loaded
    assert data["curves"][0]["points"][-1][3] == 701


class Begun(Growing):
    """A run that has recorded nothing yet, and then a score."""

    def row(self):
        return ("score", -1.0 - self.looks) if self.looks > 2 else ("other", 1.0)


@needs_chromium
def test_a_browser_sees_a_run_begin(tmp_path):
    page = Begun(scores(tmp_path / "run", values=()))
    (page.folder / "metrics.jsonl").write_text("")
    with served(page) as server:
        dom, logged = browse(server.address, tmp_path / "profile", milliseconds=12000)
    assert logged == []
    assert page.looks > 4 and "Nothing recorded.</p></figure>" not in dom
    (shown,) = re.findall(r"held-out −(\d+)</text>", dom)
    assert int(shown) - 1 in (page.looks, page.looks - 1)  # the last answer may be on its way
    assert dom.count('class="line main"') == 1


@needs_chromium
def test_a_browser_whose_server_has_ended(run, tmp_path):
    class Once(LivePage):
        looks = 0

        def content(self):
            self.looks += 1
            if self.looks > 1:
                raise OSError("the folder is gone")
            return super().content()

    with served(Once(run)) as server:
        dom, _ = browse(server.address, tmp_path / "profile", milliseconds=5000)
    assert 'role="status">cannot be read now: the folder is gone</span>' in dom
    assert dom.count('class="line main"') == 1
