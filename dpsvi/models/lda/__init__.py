"""Latent Dirichlet allocation: its estimator, its model, and one file for each local step."""
