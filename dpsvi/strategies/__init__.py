"""Aggregation strategies: how updates of several workers become one; one file each."""
