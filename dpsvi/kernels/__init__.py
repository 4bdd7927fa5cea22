"""Compiled inner loops that topic models and their evaluation share."""
