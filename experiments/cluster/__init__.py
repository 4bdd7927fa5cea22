"""Measurements on several hosts, and templates for clusters."""
