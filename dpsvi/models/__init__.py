"""Models: each module here is one member of the family and defines ``ESTIMATOR``."""
