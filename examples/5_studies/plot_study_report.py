"""
A study and its report
======================

Which kernel is best, and is the difference more than chance? A study compares kernels by nested cross-validation: inner
folds choose parameters, outer folds test them. All kernels see the same folds. Every finished fold is stored in a file, so an
interrupted study can be resumed.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import treegram as tg
from treegram.study import Store, read_study, run_study, summarize, write_report

folder = Path(tempfile.mkdtemp())
(folder / "study.toml").write_text("""
title = "Trees, colors or paths?"
datasets = ["digits", "houses", "copies"]

[protocol]
repeats = 3
outer_folds = 4
inner_folds = 3
C = [1, 10, 100]

[[kernels]]
name = "ODDCL"
kernel = "oddcl"
param_grid = { depth = [1, 2] }

[[kernels]]
name = "WLCL"
kernel = "wlcl"
param_grid = { n_iterations = [1, 2] }

[[kernels]]
name = "WL"
kernel = "wl"
param_grid = { n_iterations = [1, 2] }

[[comparisons]]
name = "all"
kernels = ["ODDCL", "WLCL", "WL"]
datasets = ["digits", "houses", "copies"]

[[pairs]]
kernel = "WLCL"
baseline = "WL"
datasets = ["digits", "houses", "copies"]
""")

digits, y = tg.load_digits_graphs()
motifs = tg.make_motifs(
    90, motifs=["house", "cycle"], n_attributes=1, shift=0.5, random_state=0
)
data = {
    "digits": (digits[:150], y[:150]),
    "houses": motifs[:2],
    "copies": tg.make_synthetic(90, n_nodes=40, n_edges=70, random_state=0),
}

with Store.open(folder / "study.sqlite") as store:
    run_study(read_study(folder / "study.toml"), store, data)
    summary = summarize(store)
# One page with tables, statistics and plots
write_report(summary, folder / "report.html")

# %%
# The summary has every number of the report. Here are the accuracies with the deviation over repeats, and the difference
# between two kernels with the corrected resampled t-test, which allows for overlapping training sets.

fig, (above, below) = plt.subplots(2, 1, figsize=(6.4, 7.4), layout="constrained")
for shift, kernel in zip((-0.2, 0, 0.2), ("ODDCL", "WLCL", "WL"), strict=True):
    cells = summary.row(kernel)
    positions = [i + shift for i in range(len(cells))]
    above.errorbar(
        positions,
        [cell.mean for cell in cells],
        [cell.deviation for cell in cells],
        fmt="o",
        label=kernel,
    )
above.set_xticks(range(3), [cell.dataset for cell in cells])
above.set(
    ylabel="accuracy, %",
    title="Three repeats of nested cross-validation",
    ylim=(None, 105),
)
above.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)

for i, test in enumerate(summary.pairs[0].tests):
    chances = {
        "WLCL is better": (test.posterior.first_better, "C1"),
        "equal within 1 point": (test.posterior.practically_equal, "0.6"),
        "WL is better": (test.posterior.second_better, "C2"),
    }
    start = 0.0
    for name, (chance, color) in chances.items():
        below.barh(
            i,
            chance,
            left=start,
            height=0.5,
            color=color,
            label=name if i == 0 else None,
        )
        start += chance
    below.text(1.02, i, f"p = {test.corrected.p_value:.2g}", va="center")
below.set_yticks(range(3), [test.dataset for test in summary.pairs[0].tests])
below.set(xlim=(0, 1), title="How probable is it?  WLCL, with vectors, against WL")
below.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)
plt.show()
