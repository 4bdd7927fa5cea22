"""Mixtures: components, their merging, the estimator."""
