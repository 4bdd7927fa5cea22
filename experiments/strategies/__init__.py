"""Every strategy beside every other, on several models, SIMULATED: ``python -m`` this package."""
