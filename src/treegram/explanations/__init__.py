"""Explanations of predictions: contributions of nodes, features and training graphs, plots, and an HTML page.

The folder is not called ``explain`` because :func:`treegram.explain` is the function.
"""
