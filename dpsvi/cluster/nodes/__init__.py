"""The master and its workers: plain objects without a clock and without MPI."""
