"""Write what the stores in results/ say to the report pages beside them and into the README: ``python benchmarks/result_tables.py``.

The README has two tables between marks such as ``<!-- results: paper -->`` and ``<!-- end of results -->``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from treegram.experiments import Store, Summary, summarise, write_report
from treegram.experiments.report import accuracy_table, render_block, render_compact_table
from treegram.experiments.report.document import Bullets

ROOT = Path(__file__).parents[1]
STUDIES = ("paper", "beyond", "other_folds")


def summary_of(path: Path) -> Summary:
    with Store.open(path, create=False) as store:
        return summarise(store)


def readme_part(studies: str, results: Path) -> str:
    """The accuracies of some studies over the same data sets in one table, and what a reader should know about them."""
    summaries = [summary_of(results / f"{name}.sqlite") for name in studies.split(", ")]
    tables = [accuracy_table(summary, decimals=1, deviations=False) for summary in summaries]
    first, *others = tables
    # The largest class heads each table, and is shown once.
    table = replace(first, rows=first.rows + tuple(row for other in others for row in other.rows[1:]))
    return f"{render_compact_table(table)}\n{render_block(Bullets(summaries[0].remarks))}\n"


def updated(readme: str, results: Path) -> str:
    """The README with the tables that the stores give."""

    def part(found: re.Match[str]) -> str:
        return f"{found[1]}\n\n{readme_part(found[2], results)}\n{found[3]}"

    return re.sub(r"(<!-- results: (.*?) -->)\n.*?(<!-- end of results -->)", part, readme, flags=re.DOTALL)


def minutes(name: str, kernel: str, results: Path) -> float:
    """Processor time of all folds of a kernel, on all data sets together."""
    return sum(cell.cpu_seconds for cell in summary_of(results / f"{name}.sqlite").row(kernel)) / 60


if __name__ == "__main__":
    for study in STUDIES:
        for ending in (".html", ".md"):
            write_report(
                summary_of(ROOT / "results" / f"{study}.sqlite"), ROOT / "results" / f"{study}{ending}", overwrite=True
            )
    readme = ROOT / "README.md"
    readme.write_text(updated(readme.read_text(), ROOT / "results"))
    print(f"ODDCL_ST: {minutes('paper', 'ODDCL_ST', ROOT / 'results'):.1f} minutes of processor time")
