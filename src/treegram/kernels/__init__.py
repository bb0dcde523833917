"""scikit-learn estimators, one published kernel per file."""
