"""How messages get from one rank to another."""
