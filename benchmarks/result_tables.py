"""Print the README's tables of accuracies, and the time they took, from the stores in results/: ``python benchmarks/result_tables.py``."""

from __future__ import annotations

from pathlib import Path

from treegram.experiments.store import Store
from treegram.experiments.study import parse_study
from treegram.experiments.summary import Cell, Summary, summarise

RESULTS = Path(__file__).parents[1] / "results"


def table(*names: str, results: Path = RESULTS) -> str:
    """The accuracies in the stores of these names, all of the same data sets, in Markdown."""
    summaries = [_summary(results / f"{name}.sqlite") for name in names]
    datasets = [dataset.name for dataset in summaries[0].datasets]
    lines = [f"| kernel | {' | '.join(datasets)} |", "|---" * (len(datasets) + 1) + "|"]
    lines += [
        f"| {kernel.name} | {' | '.join(_text(cell, summary) for cell in summary.row(kernel.name))} |"
        for summary in summaries
        for kernel in summary.kernels
    ]
    return "\n".join(lines) + "\n"


def minutes(name: str, kernel: str, results: Path = RESULTS) -> float:
    """Processor time of all folds of a kernel, on all data sets together."""
    return sum(cell.cpu_seconds for cell in _summary(results / f"{name}.sqlite").row(kernel)) / 60


def _summary(path: Path) -> Summary:
    with Store.open(path, create=False) as store:
        study = parse_study(store.study_name() or "", (store.study_text() or "").encode(), f"the study in {path}")
        return summarise(study, store)


def _text(cell: Cell, summary: Summary) -> str:
    if cell.mean is None:
        return "-"
    words = [f"{cell.mean:.1f}"]
    if len(cell.repeats) < summary.protocol.repeats:
        words.append(f"[{len(cell.repeats)}]")
    if cell.published is not None:
        words.append(f"({cell.published:.1f})")
    if cell.is_marked:
        words.append("▲" if (cell.difference or 0) > 0 else "▼")
    return " ".join(words)


if __name__ == "__main__":
    print(table("paper"))
    print(table("beyond", "other_folds"))
    print(f"ODDCL_ST: {minutes('paper', 'ODDCL_ST'):.1f} minutes of processor time")
