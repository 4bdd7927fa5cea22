"""Texts that the docstrings of several classes share, each written once."""

from __future__ import annotations

import re
from textwrap import dedent, indent


def fill(docstring: str | None, name: str, text: str) -> str:
    r"""Put a text where a docstring has the line ``{name}``.

    The text gets the margin of that line: from Python 3.13 on the compiler takes the margin of
    docstrings away, so that it is four spaces before and none since.

    Parameters
    ----------
    docstring : str or None
        None, as where Python runs without docstrings, is an empty one.
    name : str
    text : str
        With any margin of its own.

    Returns
    -------
    str

    Examples
    --------
    >>> print(fill("A model.\n\n    {shared}", "shared", "alpha : float"))
    A model.
    <BLANKLINE>
        alpha : float
    """
    place = re.compile(rf"^( *)\{{{name}\}}", re.M)
    return place.sub(lambda line: indent(dedent(text), line[1]), docstring or "")
