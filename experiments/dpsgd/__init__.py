"""DPSGD beside scikit-learn, and Theorem 3.1 of the paper on trial; see ``__main__``."""
