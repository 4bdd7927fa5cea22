"""Side by side: each member of the model family beside the best tool for the same model.

A module here compares one model.  It defines ``run(seed, quick, corpus) -> list of dict``, a list
of points, each with

* ``problem``: what was fitted to what, ``tool``: by whom, ``settings``: how, in a few words;
* ``seconds``: of training, without loading, compiling and evaluating;
* ``score``: on held-out data by one and the same code for all tools, larger is better.

Points of one tool are a curve; the last one is its result.  `corpus` is the path of a bag of words
or None; a module that needs one returns nothing without.
"""
