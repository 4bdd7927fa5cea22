"""Local steps of LDA: one kernel a file, all with the signature of ``Model.local``.

``hyper`` holds alpha (one entry a column), then eta, the tolerance and the most sweeps.
"""
