"""The tests that other packages have of their classes, run with ours in their place."""

import importlib.util
from pathlib import Path

import pytest

from experiments import peer_tests

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"


@pytest.mark.parametrize("name", peer_tests.names())
def test_others_tests_pass_but_for_known_differences(name):
    package = name.partition("_")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    outcome, different = peer_tests.run(name), peer_tests.get(name).DIFFERENT
    assert outcome.failed.keys() == different.keys(), outcome.output
    assert outcome.passed


@pytest.mark.parametrize("name", peer_tests.names())
def test_the_page_names_every_difference(name):
    differences = peer_tests.get(name).DIFFERENT.values()
    page = " ".join(PAGE.read_text("utf-8").split())
    assert all(why in page for why in differences)
