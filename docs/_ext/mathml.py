"""Equations as MathML: browsers draw it themselves, so pages can be read without a network."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import latex2mathml

# "ln x" has a thin space, as in TeX, "ln(x)" has none; browsers draw none at all.
_FUNCTION = re.compile(r"(<mo>&ApplyFunction;</mo>)(?!\s*(?:<mspace|<mo[^>]*>[(\[]))")


def draw(translator, node):
    """Write one equation."""
    block = isinstance(node, nodes.math_block)
    found = latex2mathml.tex2mathml(node.astext(), as_block=block)
    found = _FUNCTION.sub(r'\1<mspace width="0.17em"></mspace>', found)
    if block:
        found = f'<div class="equation">{found}</div>'
    translator.body.append(found)
    raise nodes.SkipNode


def setup(app):
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (draw, None), (draw, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
