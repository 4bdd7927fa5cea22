"""The hidden Markov model behind :mod:`dpsvi.models.hmm`: one part of it a file."""
