"""What every room needs: errors, parameter checks, parallel tasks, progress, files and compilation.

Nothing here knows about graphs.
"""
