"""What estimators of several models share: scikit-learn's conventions, once."""
