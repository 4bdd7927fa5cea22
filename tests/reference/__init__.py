"""Slow, plain versions of the equations, written from the papers: what the tests compare with."""
