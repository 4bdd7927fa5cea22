"""The hidden Markov model: one part of it a file."""
