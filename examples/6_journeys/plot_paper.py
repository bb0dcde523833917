"""
A paper: from data to LaTeX
===========================

Two commands compare kernels by nested cross-validation and write what a paper needs: LaTeX tables, figures as PDF and SVG, a
BibTeX file with the references of kernels, data and software, and the scores of every fold. The data are built in.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from treegram.cli import main
from treegram.study import Store, plot_scores, summarize

folder = Path(tempfile.mkdtemp())

# %%
# The whole journey
# -----------------
#
# In a shell, leave out ``main`` and write ``treegram`` before the words. ``--folds 3 --repeats 2`` keeps this example short; ten
# of each are usual. A run that was interrupted resumes where it stopped.

store, protocol = folder / "paper.sqlite", "--folds 3 --repeats 2"
kernels = "--kernel wl --kernel wlcl --kernel oddst"
main(f"evaluate synthetic {kernels} {protocol} --store {store}".split())
main(f"report {store} --paper {folder}/files".split())

# %%
# The table, ready for ``\input``:

print((folder / "files" / "scores.tex").read_text())
print(", ".join(sorted(path.name for path in folder.glob("*/*"))))

# %%
# The same numbers from Python, with one of the figures:

with Store.open(store) as results:
    summary = summarize(results)
fig, ax = plt.subplots(figsize=(7, 3), facecolor="white", layout="constrained")
plot_scores(summary, "synthetic", ax=ax)
plt.show()
