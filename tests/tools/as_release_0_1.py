"""``python as_release_0_1.py FOLDER``: go on from a checkpoint as release 0.1.0 would have.

That release gave every document seven iterations, left all tokens of a word out of its document and
had no SHARP.  The latter two are compiled in, so the process wants a folder of its own for compiled
code.  Prints how far the topics of the fit that goes on are from those of one that was never
interrupted.
"""

import json
import sys

import numpy as np
from reference.lda import TopicCorpus

from dpsvi import DPSVILDA
from dpsvi.kernels import collapsed
from dpsvi.kernels.jit import kernel
from dpsvi.models.lda import estimator


@kernel
def _all(count, repeats):
    return count


if __name__ == "__main__":
    collapsed.tokens_left_out, collapsed.SHARP = _all, 0.0
    estimator.DEFAULTS["collapsed"] = estimator.DEFAULTS["collapsed"]._replace(more_sweeps=1.0)
    corpus = TopicCorpus(3, n_words=40, n_documents=60, n_tokens=30, alpha=0.1, seed=0).corpus()
    settings = dict(
        n_components=3, topic_word_prior=None, batch_size=10, max_iter=4, random_state=0
    )  # fmt: skip
    again = DPSVILDA(**settings, checkpoint_dir=sys.argv[1]).resume(corpus)
    whole = DPSVILDA(**settings).fit(corpus).components_
    found = {
        "steps": again.n_batch_iter_, "items": [entry["items"] for entry in again.history_],
        "close": bool(np.allclose(again.components_, whole, rtol=1e-2, atol=1e-2)),
    }  # fmt: skip
    print(json.dumps(found))
