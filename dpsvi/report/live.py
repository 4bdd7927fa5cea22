"""The page of a run that goes on, for browsers of this machine and nobody else."""

from __future__ import annotations

import sys
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from threading import Lock

from .page import render
from .run_files import FILES, read_run

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")  # also of the other end of a tunnel
USED = (*FILES, "topic_map.json", "topic_words.json", "model.json", "checkpoints")
EXPECTED = tuple(name for name in FILES if name != "topics.csv")  # written when the run has ended


class LivePage:
    """The page of the run folder `folder`, made anew when a file of it has changed.

    Parameters
    ----------
    folder : path-like
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self._lock = Lock()
        self._seen = self._page = None

    def content(self) -> bytes:
        """The page as it is now.

        Raises
        ------
        OSError, ValueError
            As `dpsvi.report.run_files.read_run`; while a run begins, its files may be absent.
        """
        with self._lock:
            seen = [self._state(name) for name in USED]
            if self._page is None or seen != self._seen:
                page = render(read_run(self.folder, EXPECTED), live=True)
                self._page, self._seen = page.encode("utf-8", "xmlcharrefreplace"), seen
            return self._page

    def changed(self) -> float:
        """When a file of the run was last written, in seconds of Unix time."""
        return max(found.st_mtime for found in map(self._stat, USED) if found)

    def _stat(self, name):
        try:
            return (self.folder / name).stat()
        except OSError:
            return None

    def _state(self, name):
        found = self._stat(name)
        return found and (found.st_size, found.st_mtime_ns, found.st_ino)


class Server(ThreadingTCPServer):
    """Serves one page, under the address ``/``, and no other file.

    It listens on 127.0.0.1 and answers requests for that name and localhost: a page of the
    network that gives itself another name for this machine gets nothing.

    Parameters
    ----------
    page : LivePage
    port : int
        0 for any that is free.

    Raises
    ------
    OSError
        The port cannot be used.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, page: LivePage, port: int = 0):
        self.page = page
        super().__init__((HOST, port), _Handler)

    def handle_error(self, request, client_address):
        """Report what goes wrong; a browser that has gone away is nothing of it."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        """Answer a browser."""
        if self.headers.get("Host", "").partition(":")[0] not in NAMES:
            self._answer(403, b"this page is for browsers of this machine")
        elif self.path != "/":
            self._answer(404, b"there is one page here, /")
        else:
            try:
                content = self.server.page.content()
                changed = formatdate(self.server.page.changed(), usegmt=True)
                self._answer(200, content, ("Last-Modified", changed))
            except (OSError, ValueError) as error:
                self._answer(503, f"cannot be read now: {error}".encode())

    def _answer(self, code: int, content: bytes, *more: tuple[str, str]):
        self.send_response(code)
        kind = "html" if code == 200 else "plain"
        for name, value in (
            ("Content-Type", f"text/{kind}; charset=utf-8"), ("Content-Length", str(len(content))),
            ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), *more,
        ):  # fmt: skip
            self.send_header(name, value)
        if code == 503:
            self.send_header("Refresh", "2")  # a browser that shows this asks again
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format, *args):
        """Say nothing: a browser asks every two seconds."""
