"""How good a fitted model is: document completion, ranking."""
