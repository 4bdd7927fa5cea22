"""Writes ``docs/_models.rst``, the models in the API reference, as the package names them.

It is written before autosummary looks for what it has to document.
"""

from __future__ import annotations

from pathlib import Path

from dpsvi import models

NAME = "_models.rst"
_KINDS = {"corpus": "Fitted to documents", "arrays": "Fitted to arrays"}


def text() -> str:
    """The estimators of all models of the package, by the kind of their data."""
    lines = [".. currentmodule:: dpsvi", ""]
    for kind, title in _KINDS.items():
        declared = [models.declared(name) for name in models.names()]
        found = sorted(each["ESTIMATOR"] for each in declared if each["FITTED_TO"] == kind)
        lines += [f".. rubric:: {title}", "", ".. autosummary::", "   :toctree: generated"]
        lines += ["   :nosignatures:", ""]
        lines += [*(f"   {estimator}" for estimator in found), ""]
    return "\n".join(lines)


def _write(app, config):
    path = Path(app.srcdir) / NAME
    if not path.exists() or path.read_text("utf-8") != text():
        path.write_text(text(), "utf-8")


def setup(app):
    """Sphinx calls this."""
    app.connect("config-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
