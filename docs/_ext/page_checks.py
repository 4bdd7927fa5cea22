"""Looks at the pages that were built: a link that leads nowhere is a warning, so an error.

So is a picture without a text for those who cannot see it (an empty one says that it only repeats
what stands beside it), and a script, a style or a picture that comes from another machine.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.util import logging

_LOG = logging.getLogger(__name__)


class Page(HTMLParser):
    """What a page links to, what it loads, where it can be linked to."""

    def __init__(self, text: str):
        super().__init__()
        self.names, self.links, self.loaded, self.silent = set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """HTMLParser calls this."""
        found = dict(attrs)
        self.names.add(found.get("id"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        self.loaded += [found["src"]] if "src" in found else []
        self.loaded += [found["href"]] if tag == "link" and "href" in found else []
        if tag == "img" and "alt" not in found:
            self.silent.append(found.get("src"))


def flaws(folder: Path) -> list[str]:
    """A sentence for each flaw of the pages in a folder."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        found += [f"{name}: picture {source} has no alt" for source in page.silent]
        found += [f"{name}: {one} is on another machine" for one in page.loaded if _remote(one)]
        for link in filter(lambda link: not _remote(link), page.links + page.loaded):
            parts = urlsplit(link)
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            named = not parts.fragment or to not in pages or (
                unquote(parts.fragment) in pages[to].names
            )
            if parts.scheme == "" and not (to.is_file() and named):
                found.append(f"{name}: {link} leads nowhere")
    return found


def _remote(link: str) -> bool:
    return bool(urlsplit(link).netloc)


def _look(app, error):
    if error is None and app.builder.format == "html":
        for flaw in flaws(Path(app.outdir).resolve()):
            _LOG.warning(flaw)


def setup(app):
    """Sphinx calls this."""
    app.connect("build-finished", _look)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
