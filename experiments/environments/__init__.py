"""Environments beside those that they are compared with: the same moves, and the rate of moves."""
