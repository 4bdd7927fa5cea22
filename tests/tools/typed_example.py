"""What a user with a type checker writes; `mypy --strict` reads it, nobody runs it."""

from typing import assert_type

import numpy as np

from dpsvi import DPSGD, DPSVIHMM, DPSVILDA, Cluster, DPSVIDPMixture, load, select_components
from dpsvi.rl import ActorCritic

texts = ["the cat sat", "the dog ran"]
lda = DPSVILDA(n_components=2, n_jobs=2, random_state=0).fit(texts)
words: list[list[str]] = lda.top_words(5)
perplexity: float = lda.perplexity(texts)
n_passes: int = lda.n_iter_
lda.save("model")
assert_type(DPSVILDA.load("model"), DPSVILDA)
assert_type(lda.components_, np.ndarray)
assert_type(lda.transform(texts), np.ndarray)

hmm = DPSVIHMM(2, emission="categorical", batch_size=8, n_init=3)
assert_type(hmm.fit([[0], [1], [0]], lengths=[3]), DPSVIHMM)
assert_type(hmm.transmat_, np.ndarray)
assert_type(DPSVIDPMixture(20, cluster=Cluster(strategy="pvi")).n_components_active_, int)
chosen = select_components(DPSVIHMM(), [[0.0], [1.0], [0.5]], range(1, 3), lengths=[1, 2])
n_states: int = chosen.n_components
score: float = chosen.scores[n_states]
for drawn in DPSVILDA(forgetting=1000).partial_fit(texts).posterior_predictive(texts, 2):
    drawn.sum()
agent = ActorCritic("cartpole", algorithm="paac", callbacks=[lambda entry, agent: False])
assert_type(agent.fit(1000).evaluate(3), np.ndarray)
optimizer = DPSGD(learning_rate=0.1)
anything = load("model")

DPSVILDA(n_componentz=3)  # wrong: no such parameter
DPSVILDA(n_components="3")  # wrong: not a number
DPSVILDA(n_init=2)  # wrong: topic models begin once
DPSVIHMM(2, emission="poisson")  # wrong: no such emission
ActorCritic(algorithm="a3c")  # wrong: no such algorithm
DPSVIHMM(2, verbos=1)  # wrong: no such parameter
