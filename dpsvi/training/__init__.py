"""How a fit runs: steps, their sizes, the ledger of what is done, checkpoints."""
