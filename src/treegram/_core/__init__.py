"""Errors, parameter checks, parallel tasks, progress, files and compilation: what all rooms use. Nothing here knows graphs."""
