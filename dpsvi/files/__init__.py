"""What is read and written: models, run folders, data files."""
