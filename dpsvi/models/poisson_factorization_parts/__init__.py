"""What :mod:`dpsvi.models.poisson_factorization` is made of."""
