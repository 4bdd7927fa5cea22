"""A package that adds a model, an engine, a learner and a strategy to dpsvi, each in one file."""
