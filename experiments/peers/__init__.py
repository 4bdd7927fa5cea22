"""dpsvi against scikit-learn, gensim and tomotopy: held-out perplexity over seconds of training.

Every competitor gets the same documents, held-out documents, alpha, thread count and clock; one
evaluator, which is none of theirs, judges the word distributions that each arrives at.

* ``problem``: what a run is given; the split of the corpus.
* ``recorder``: the clock, and the copies of the parameters taken while it stands still.
* ``libraries``: one file for each library, which trains until the clock says stop.
* ``run_one``: one run, alone in a process of its own.
* ``tuning``, ``summary``, ``plot``: eta for each competitor, the table, the figure.
"""
