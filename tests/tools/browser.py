"""Pages in headless Chromium, where it is installed."""

import html
import json
import re
import shutil
import subprocess

import pytest


def chromium():
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


needs_chromium = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")


def browse(address, profile, milliseconds=2000):
    """Open a page in headless Chromium for so long; returns its final DOM and what it logged."""
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
            f"--virtual-time-budget={milliseconds}",
            "--dump-dom",
            address,
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
    dom, logged = browse(copy.as_uri(), profile)
    assert logged == []
    (seen,) = re.findall(r'<pre id="seen">(.*?)</pre>', dom)
    return json.loads(html.unescape(seen))
