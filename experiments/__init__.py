"""Experiments: commands that measure, and write what they measured with its provenance."""
