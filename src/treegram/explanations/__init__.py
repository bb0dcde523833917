"""Explanations of predictions, and pictures: contributions of nodes, features and graphs, plots, and the HTML page.

The folder is not called ``explain`` because :func:`treegram.explain` is the function.
"""
