"""Gaussian matrix factorization."""
