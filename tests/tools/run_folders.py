"""Run folders as a fit leaves them, and what a page that reports on one holds."""

import csv
import html
import json
import math
import re

import numpy as np

from dpsvi.report import topic_map

THEMES = """
gene protein cell sequence dna expression genome mutation rna binding enzyme transcription
cell tumor cancer patient tissue growth receptor therapy breast disease clinical survival
patient treatment trial clinical drug dose therapy placebo risk outcome hospital randomized
neuron brain cortex response stimulus visual synaptic activity memory firing motor spike
network learning training layer model neural input weight error gradient output classifier
model bayesian prior posterior distribution inference likelihood latent variable sampling
algorithm problem bound optimal convergence theorem function set proof complexity graph
graph node edge network vertex community path degree random cluster tree link
image object feature pixel segmentation detection camera video scene texture shape depth
word language text sentence document translation parsing corpus grammar topic semantic speech
query database index search user web data page retrieval server storage information
system software code program memory thread cache processor compiler parallel performance kernel
robot control state policy action reward agent motion environment plan trajectory sensor
star galaxy mass telescope redshift luminosity cluster stellar solar orbit planet emission
energy particle quantum field decay state spin electron mass collision photon detector
magnetic temperature phase lattice spin superconductor transition electron crystal band film
water climate ocean temperature carbon surface soil ice rainfall atmosphere sea forest
species population habitat evolution selection plant bird diversity predator fish ecology forest
market price trade firm cost risk stock bank investor tax policy growth
school student teacher education social child family community survey university women health
"""
FILLER = "method result analysis value number effect increase large time data rate level".split()
HOSTILE = [
    "<script>alert(1)</script>",
    "</script>",
    "<img src=x onerror=alert(1)>",
    "a&amp;b",
    "\u2028",
    "'\"`${x}",
    "\u05e9\u05dc\u05d5\u05dd",
    "naïve",
    'comma, "quoted"',
]


def distributions(seed=0):
    """Topic-word matrix of the themes: 20 topics, each leaning to its neighbours in the list."""
    rng = np.random.default_rng(seed)
    themes = [line.split() for line in THEMES.strip().splitlines()]
    vocabulary = sorted({word for theme in themes for word in theme} | set(FILLER))
    components = rng.gamma(0.3, 0.004, (len(themes), len(vocabulary)))
    for row, theme in zip(components, themes, strict=True):
        for rank, word in enumerate([*theme, *rng.permutation(FILLER)]):
            row[vocabulary.index(word)] += 0.3 / (rank + 2.5) * rng.uniform(0.7, 1.3)
    gap = np.abs(np.subtract.outer(np.arange(len(themes)), np.arange(len(themes))))
    components = np.exp(-1.2 * gap) @ components
    return vocabulary, components / components.sum(axis=1, keepdims=True)


def make_run(folder, n_words=20, n_points=40, words=None):
    """Write a run folder as ``dpsvi fit lda`` leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    vocabulary, components = distributions()
    weights = rng.dirichlet(np.full(len(components), 2.0))
    with (folder / "topics.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["topic", "rank", "word", "probability", "weight"])
        for topic, row in enumerate(components):
            for rank, index in enumerate(np.argsort(-row)[:n_words], start=1):
                word = vocabulary[index]
                if words and rank <= len(words) and topic == 0:
                    word = words[rank - 1]
                writer.writerow([topic, rank, word, f"{row[index]:.6f}", f"{weights[topic]:.6f}"])
    places = topic_map(components, weights)
    (folder / "topic_map.json").write_text(
        json.dumps([{"topic": k, "x": x, "y": y} for k, (x, y) in enumerate(places.tolist())])
    )
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model": "lda",
                "n_components": 20,
                "batch_size": 256,
                "learning_decay": 0.7,
                "doc_topic_prior": "auto",
                "engine": {"name": "threads", "n_jobs": 4},
                "tol": None,
            }
        )
    )
    (folder / "env.json").write_text(
        json.dumps(
            {
                "versions": {"dpsvi": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"},
                "host": "node07",
                "cores": 16,
                "seed": 0,
            }
        )
    )
    rows = [row_of(0, 0, 0.0, "unigram_perplexity", 2143.7)]
    for i in range(n_points):
        items, seconds = 8192 * i, round(9.6 * i + 0.4 * math.sin(i), 3)
        value = 1180 * (1 + 1.3 * math.exp(-i / 5) + 0.004 * rng.standard_normal())
        rows.append(row_of(32 * i, items, seconds, "perplexity", value))
        if i:
            rows.append(
                row_of(
                    32 * i,
                    items,
                    seconds,
                    "tokens_per_second",
                    151_000 + 4000 * rng.standard_normal(),
                    split="train",
                )
            )
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def row_of(step, items, seconds, metric, value, split="heldout", rank=0):
    return {
        "step": step,
        "items": items,
        "seconds": seconds,
        "metric": metric,
        "value": float(value),
        "split": split,
        "rank": rank,
    }


def append(folder, text):
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(text)


def data_of(page):
    """Return the JSON that the page's script reads, cut out the way a browser does."""
    start = page.index('id="run-data">') + len('id="run-data">')
    return json.loads(page[start : page.index("</script", start)])


def tiles_of(page):
    found = re.findall(r"<dt>(.*?)</dt><dd><b>(.*?)</b><small>(.*?)</small>", page)
    return {html.unescape(label): (value, detail) for label, value, detail in found}
