"""Exponential families: one file for each, with what the models need of it."""
