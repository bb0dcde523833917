"""Data sets: the TU text format, downloads, generators."""
