"""What every room needs: errors, checks of parameters, parallel tasks, progress, files, and compilation. Nothing here knows graphs."""
