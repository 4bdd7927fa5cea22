"""Every page of the gallery is short, asks a question and draws what it says."""

from pathlib import Path

import numpy as np
import pytest

from dpsvi import models
from experiments import gallery


def test_every_model_has_a_page():
    assert gallery.names() == models.names()


@pytest.mark.parametrize("name", gallery.names())
def test_page(name):
    page = gallery.get(name)
    assert page.__doc__.splitlines()[0].endswith("?"), "a page asks one question"
    text = Path(page.__file__).read_text("utf-8")
    assert len(text.splitlines()) < 60
    if "load_lee" in text:
        pytest.importorskip("gensim")  # which holds these articles
    figure, answer = page.picture(small=True)
    assert answer and np.isfinite(list(answer.values())).all()
    drawn = [axes for axes in figure.axes if axes.has_data()]
    assert drawn and len(drawn) == len(figure.axes), "an empty picture"
