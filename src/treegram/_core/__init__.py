"""Errors, parameter checks, parallel tasks, progress, files and compilation; nothing here knows about graphs."""
