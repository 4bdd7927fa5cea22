"""What others found for their strategies, tried on this program's: ``python -m`` this package."""
