"""dpsvi and its peers on every corpus of a folder.

All get the same documents, test documents and clock; one evaluator, which is none of theirs, judges
the topics that each arrives at.

* ``corpora``: the corpora of a folder, and the split that a run is given.
* ``cells``: which numbers of topics matter most, and which of them are fitted with five seeds.
* ``settings``, ``store``: what one run is; the records of those done, so that none is done twice.
* ``plan``: all runs, in the order in which they are done.
* ``libraries``: one file for each library and its entrants.
* ``recorder``: the clock, and the copies of the topics taken while it stands still.
* ``run_one``: one run, alone in a process of its own.
* ``reading``, ``losses``, ``table``, ``files``, ``plot``: from records to the table, the list of
  losses, CSV and the picture.
"""
