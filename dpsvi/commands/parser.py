"""The parser of commands: what is wrong is said in a line or two, not below a page of options."""

from __future__ import annotations

import argparse
from difflib import get_close_matches

from dpsvi.errors import USAGE


class CommandParser(argparse.ArgumentParser):
    """As the parser of Python, but for how it refuses."""

    def parse_known_args(self, args=None, namespace=None):
        """Parse; what this parser does not know no other will, so it ends here."""
        known, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}{self._meant(rest)}")
        return known, rest

    def _meant(self, words) -> str:
        """The options that are like those among `words`."""
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        near = [get_close_matches(one, self._option_string_actions, 1, 0.75) for one in options]
        return "".join(f"; did you mean {one[0]}?" for one in near if one)

    def error(self, message: str):
        """End with what is wrong and where the options are listed."""
        self.exit(USAGE, f"{self.prog}: {message}\n{self.prog} --help lists what there is\n")
