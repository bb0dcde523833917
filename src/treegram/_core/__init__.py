"""Errors, parameter checks, parallel tasks, progress, files and compilation, for all rooms.

Nothing here knows about graphs.
"""
