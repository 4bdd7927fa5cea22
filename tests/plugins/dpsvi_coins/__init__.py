"""A package that adds a model, an engine and a strategy to dpsvi, each in one file."""
