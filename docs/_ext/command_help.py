"""Directive ``command-help``: what ``dpsvi COMMAND --help`` prints, from the parser itself."""

from __future__ import annotations

import os
import shlex
from unittest import mock

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def help_of(words: list[str]) -> str:
    """The help of ``dpsvi`` followed by these words."""
    from dpsvi.__main__ import make_parser

    parser = make_parser()
    for word in words:
        commands = next(a for a in parser._actions if isinstance(a.choices, dict))
        parser = commands.choices[word]
    with mock.patch.dict(os.environ, COLUMNS="90", NO_COLOR="1"):
        return parser.format_help()


class CommandHelp(SphinxDirective):
    """Show the help of a command as a block of text."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """Sphinx calls this."""
        text = help_of(shlex.split("".join(self.arguments)))
        return [nodes.literal_block(text, text, language="text")]


def setup(app):
    """Sphinx calls this."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
