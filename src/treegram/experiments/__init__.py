"""Studies as data, runs that survive, statistics and reports."""
