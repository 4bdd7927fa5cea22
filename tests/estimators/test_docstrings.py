"""Texts that docstrings share come to their places, with a margin and without one."""

import inspect
import re

import pytest

import dpsvi
from dpsvi.estimators.docstrings import fill

SHARED = """\
    beta : float
        Of the second kind.

        It has two paragraphs."""
# As Python 3.12 keeps it; from 3.13 on the compiler takes the margin away.
MARGIN = """A model.

    Parameters
    ----------
    alpha : float
        A {shared} thing.
    {shared}
    gamma : float
    """
FILLED = """A model.

Parameters
----------
alpha : float
    A {shared} thing.
beta : float
    Of the second kind.

    It has two paragraphs.
gamma : float"""
EXPORTED = [getattr(dpsvi, name) for name in dpsvi.__all__]
ESTIMATORS = [kind for kind in EXPORTED if hasattr(kind, "get_params")]


@pytest.mark.parametrize("docstring", [MARGIN, inspect.cleandoc(MARGIN)])
def test_a_text_takes_the_margin_of_its_place(docstring):
    assert inspect.cleandoc(fill(docstring, "shared", SHARED)) == FILLED
    assert fill(docstring, "absent", SHARED) == docstring


def test_without_docstrings_there_is_nothing_to_fill():
    assert fill(None, "shared", SHARED) == ""


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_parameter_is_described_and_no_place_is_left(kind):
    text = inspect.getdoc(kind)
    assert not re.search(r"^ *\{\w+\}$", text, re.M)
    described = re.findall(r"^(\w[\w, ]*) :", text, re.M)
    found = {name for names in described for name in names.split(", ")}
    assert set(inspect.signature(kind).parameters) <= found
