"""The page that is written from Python, and what it shows of a topic model."""

import numpy as np
import pytest
from tools.run_folders import data_of

from dpsvi import DPSVIHDP, DPSVILDA
from dpsvi.corpus import as_corpus
from dpsvi.families.topics import page

WORDS = "cat dog horse cow sheep one two three four five".split()


@pytest.fixture(scope="module")
def texts():
    """Texts of animals and of numbers, by turns."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS[5 * (i % 2) :][:5], 12)) for i in range(80)]


@pytest.fixture(scope="module")
def lda(texts):
    return DPSVILDA(n_components=2, max_iter=20, validation_size=10, random_state=0).fit(texts)


def test_words_of_every_relevance_are_there():
    rng = np.random.default_rng(0)
    components = rng.gamma(0.1, 1.0, size=(4, 300)) + 1e-3
    p = components / components.sum(axis=1, keepdims=True)
    overall = components.sum(axis=0) / components.sum()
    for k, words in enumerate(page.ranked_words(components, range(300))):
        held = {int(word) for word, _, _ in words}
        for r in page.RELEVANCES:
            relevance = r * np.log(p[k]) + (1 - r) * np.log(p[k] / overall)
            assert held >= set(np.argsort(-relevance)[: page.WORDS].tolist())
        assert [q for _, q, _ in words] == sorted((q for _, q, _ in words), reverse=True)
        for word, q, of_all in words:
            assert q == pytest.approx(p[k, int(word)]) and of_all == pytest.approx(
                overall[int(word)]
            )


def test_a_report_from_python(lda, texts, tmp_path):
    path = lda.report(tmp_path / "topics.html", texts)
    assert path == tmp_path / "topics.html"
    text = path.read_text("utf-8")
    for fact in ("documents <b>70<", "words <b>10<", "date <b>20", "model <b>DPSVILDA<"):
        assert fact in text
    assert '<h1 dir="auto">topics</h1>' in text and "Held-out perplexity" in text
    topics = {topic["topic"]: topic for topic in data_of(text)["topics"]}
    theta = lda.transform(texts)
    for k, topic in topics.items():
        assert [word for word, _ in topic["words"]] == lda.top_words(20)[k]
        number, share, quoted = topic["documents"][0]
        assert share == pytest.approx(theta[:, k].max(), abs=1e-6)
        assert quoted == texts[number]
    assert sum(topic["weight"] for topic in topics.values()) == pytest.approx(1)


def test_a_page_of_very_many_topics_has_no_map(lda, texts, tmp_path, monkeypatch):
    """A map costs the square of their number."""
    monkeypatch.setattr(page, "MOST_TOPICS", 1)
    topics = data_of(lda.report(tmp_path / "topics.html", texts).read_text("utf-8"))["topics"]
    assert [topic["at"] for topic in topics] == [None, None]


def test_long_texts_are_cut_and_counts_are_shown_by_their_words(lda, texts, tmp_path):
    path = lda.report(tmp_path / "long.html", [" \n ".join(texts[::2]), texts[1]])
    quotes = [t["documents"][0][2] for t in data_of(path.read_text("utf-8"))["topics"]]
    assert max(map(len, quotes)) <= 241 and any(quote.endswith("…") for quote in quotes)
    words = ["cow", "cat", "dog", "horse", *WORDS[4:]]
    counts = as_corpus([[5, 0, 9, 0, 0, 0, 0, 0, 0, 0]], words)
    quote = data_of(lda.report(tmp_path / "c.html", counts).read_text())["topics"][0]["documents"]
    assert quote[0][2] == "dog, cow"


def test_a_report_of_a_model_from_a_file(lda, texts, tmp_path):
    """It has no history, so no curve, and without documents no examples."""
    lda.save(tmp_path / "model")
    text = DPSVILDA.load(tmp_path / "model").report(tmp_path / "page.html").read_text("utf-8")
    assert '<section aria-labelledby="curve-title" hidden>' in text
    assert all(not topic["documents"] for topic in data_of(text)["topics"])


def test_words_of_a_model_of_numbers(texts, tmp_path):
    counts = as_corpus(texts)
    hdp = DPSVIHDP(n_components=3, max_iter=2, random_state=0).fit(counts.to_csr())
    plain = data_of(hdp.report(tmp_path / "p.html").read_text())["topics"]
    named = data_of(hdp.report(tmp_path / "p.html", words=counts.vocabulary).read_text())["topics"]
    for one, other in zip(plain, named, strict=True):
        words = [counts.vocabulary[int(w)] for w, _ in one["words"]]
        assert words == [w for w, _ in other["words"]]
    with pytest.raises(ValueError, match="there are 1 words, the model has 10"):
        hdp.report(tmp_path / "p.html", words=["cat"])
