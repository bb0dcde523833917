"""Print the totals of ``coverage json``, and fail if less than 95 % of the branches were taken."""

import json
import sys
from pathlib import Path

LEAST = 95.0  # percent

totals = json.loads(Path(sys.argv[1]).read_text())["totals"]
statements = 100 * totals["covered_lines"] / totals["num_statements"]
branches = 100 * totals["covered_branches"] / totals["num_branches"]
print(f"Python code, without compiled loops: {statements:.1f} % of the statements, {branches:.1f} % of the branches")
if branches < LEAST:
    sys.exit(f"At least {LEAST:g} % of the branches must be covered.")
