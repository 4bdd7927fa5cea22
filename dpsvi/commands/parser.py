"""The parser of commands: what is wrong is said in a line or two, not below a page of options."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches

from dpsvi.errors import USAGE


class CommandParser(argparse.ArgumentParser):
    """As the parser of Python, but for how it refuses."""

    _words = ()  # those that are being parsed

    def parse_known_args(self, args=None, namespace=None):
        """Parse; what this parser does not know no other will, so it ends here."""
        self._words = sys.argv[1:] if args is None else args
        known, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(self._unknown(rest))
        return known, rest

    def _unknown(self, words) -> str:
        """That `words` are not known, and the options that are like those among them."""
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        near = [get_close_matches(one, self._option_string_actions, 1, 0.75) for one in options]
        meant = "".join(f"; did you mean {one[0]}?" for one in near if one)
        return f"unrecognized arguments: {' '.join(words)}{meant}"

    def error(self, message: str):
        """End with what is wrong and where the options are listed."""
        if message.startswith("the following arguments are required"):
            # Python ends here before it says which options it does not know.
            options = [word for word in self._words if word.startswith("--") and word != "--"]
            known = self._option_string_actions
            if wrong := [word for word in options if word.partition("=")[0] not in known]:
                message = f"{message}; {self._unknown(wrong)}"
        self.exit(USAGE, f"{self.prog}: {message}\n{self.prog} --help lists what there is\n")
