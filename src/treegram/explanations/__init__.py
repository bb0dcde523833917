"""Explanations of predictions: contributions of nodes, features and training graphs, plots, and an HTML page.

The package is not called ``explain`` because :func:`treegram.explain` is the function.
"""
