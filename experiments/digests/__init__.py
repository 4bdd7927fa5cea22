"""Fits whose numbers a move of files must not change, and their comparison across revisions."""
