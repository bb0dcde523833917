"""Studies that show which kernel is best on which data, and whether the difference is more than chance.

:func:`evaluate` compares kernels on data in one call. A study is a TOML file that :func:`read_study` reads; :func:`run_study` runs
it and stores every finished fold in a :class:`Store`, :func:`summarize` computes all tables and tests from the store, and :func:`write_report` writes them as a page;
:func:`write_latex`, :func:`write_figures` and :func:`write_folds` write files for a paper. Names are imported when they are
first used: reading results needs neither the kernels nor their compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treegram.study.plots import plot_ranks as plot_ranks
    from treegram.study.plots import plot_scores as plot_scores
    from treegram.study.plots import plot_times as plot_times
    from treegram.study.protocol import Study as Study
    from treegram.study.report import write_figures as write_figures
    from treegram.study.report import write_folds as write_folds
    from treegram.study.report import write_latex as write_latex
    from treegram.study.report import write_report as write_report
    from treegram.study.run import evaluate as evaluate
    from treegram.study.run import run_study as run_study
    from treegram.study.selection import register_estimator as register_estimator
    from treegram.study.store import Store as Store
    from treegram.study.study_file import read_study as read_study
    from treegram.study.summary import Summary as Summary
    from treegram.study.summary import summarize as summarize

_HOMES = {
    "plots": ("plot_ranks", "plot_scores", "plot_times"),
    "protocol": ("Study",),
    "report": ("write_figures", "write_folds", "write_latex", "write_report"),
    "run": ("evaluate", "run_study"),
    "selection": ("register_estimator",),
    "store": ("Store",),
    "study_file": ("read_study",),
    "summary": ("Summary", "summarize"),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)


if not TYPE_CHECKING:  # to type checkers, a module with this function has every name

    def __getattr__(name: str) -> Any:
        for module, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"treegram.study.{module}"), name)
        raise AttributeError(f"module 'treegram.study' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
