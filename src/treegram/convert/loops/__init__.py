"""What numba compiles for the ways in."""
