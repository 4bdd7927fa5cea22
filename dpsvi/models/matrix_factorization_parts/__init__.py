"""What :mod:`dpsvi.models.matrix_factorization` is made of."""
