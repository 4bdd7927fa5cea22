"""Topic models: how they are fitted, kept and asked."""
