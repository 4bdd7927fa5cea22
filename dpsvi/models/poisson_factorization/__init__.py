"""Poisson factorization."""
