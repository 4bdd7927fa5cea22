"""Hierarchical models: groups that share a population."""
