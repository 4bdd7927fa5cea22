"""What docstrings need to become pages: ``lambda_`` is no link, scikit-learn documents its own."""

from __future__ import annotations

import re

_LITERAL = re.compile(r"(`[^`]*`)")
_FITTED = re.compile(r"\b([A-Za-z]\w*)_(?![\w`])")
_OF_SKLEARN = ("set_output", "get_metadata_routing")


def escape(lines: list[str]) -> None:
    """Escape names that end in an underscore, which reStructuredText would take for links."""
    for number, line in enumerate(lines):
        if line.strip() == "Examples":
            return
        parts = _LITERAL.split(line)
        parts[::2] = [_FITTED.sub(r"\1\\_", part) for part in parts[::2]]
        lines[number] = "".join(parts)


def setup(app):
    """Sphinx calls this."""
    # Before numpydoc, whose priority is the default, 500.
    app.connect("autodoc-process-docstring", lambda *event: escape(event[-1]), priority=400)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _skip(app, what, name, member, skip, options):
    inherited = (getattr(member, "__module__", None) or "").startswith("sklearn")
    return True if inherited or name in _OF_SKLEARN or re.match(r"set_\w+_request", name) else None
