"""What people read of topics: coherence, diversity, fit to labels, stability over seeds.

By the protocols of BERTopic's paper and of the toolkit TopMost, with the entrants of
:mod:`experiments.panel`, whose clock, store of records and processes are used.

* ``documents``: the documents and labels that a run is given.
* ``plan``: all runs, in the order in which they are done.
* ``run_one``: one run, alone in a process of its own.
* ``measures``: of words and of clusters; ``theta``: topic proportions, and a classifier on them.
* ``published``: rows of others, as they printed them.
* ``table``: from records to the page for the reader.
"""
