"""The run folder that tests of the report share."""

import pytest
from tools.run_folders import make_run


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "newsgroups-k20")
