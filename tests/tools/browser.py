"""Pages in headless Chromium, where it is installed."""

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
