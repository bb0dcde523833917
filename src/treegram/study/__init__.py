"""Studies that show which kernel is best on which data, and whether the difference is more than chance.

A study is a TOML file that :func:`read_study` reads. :func:`run_study` runs it and keeps every finished fold in a
:class:`Store`, :func:`summarize` computes all tables and tests from the store, and :func:`write_report` writes them as a page; :func:`write_latex`, :func:`write_figures` and :func:`write_folds` write what a
paper needs.
Names are imported when they are first used: reading results needs neither the kernels nor what compiles them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treegram.study.plots import plot_ranks, plot_scores, plot_times
    from treegram.study.protocol import Study
    from treegram.study.report import write_figures, write_folds, write_latex, write_report
    from treegram.study.run import run_study
    from treegram.study.store import Store
    from treegram.study.study_file import read_study
    from treegram.study.summary import Summary, summarize

__all__ = [
    "Store",
    "Study",
    "Summary",
    "plot_ranks",
    "plot_scores",
    "plot_times",
    "read_study",
    "run_study",
    "summarize",
    "write_figures",
    "write_folds",
    "write_latex",
    "write_report",
]

_HOMES = {
    "Store": "store",
    "Study": "protocol",
    "Summary": "summary",
    "plot_ranks": "plots",
    "plot_scores": "plots",
    "plot_times": "plots",
    "read_study": "study_file",
    "run_study": "run",
    "summarize": "summary",
    "write_figures": "report",
    "write_folds": "report",
    "write_latex": "report",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'treegram.study' has no attribute {name!r}")
    value = getattr(import_module(f"treegram.study.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
