"""The paper's Figures 1 to 4, its theory on trial, and larger clusters than the paper's.

::

    runs      one run: what it is, how it is made
    store     results kept as lines of JSON, under a hash of the code that made them
    plan      which runs each figure needs of the paper's step
    default_step  and of the program's own
    outcome   speed-ups and tables, from the kept results alone
    findings  sentences about them
    draw      the figures
    report    the page
    theory    the bounds of the paper against runs
    validate  simulated against measured time
    python_step  a local step in Python against ours, measured
"""
