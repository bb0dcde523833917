"""Studies that show which kernel is best on which data, and whether the difference is more than chance.

A study is a TOML file that :func:`read_study` reads. :func:`run_study` runs it and keeps every finished fold in a
:class:`Store`, :func:`summarize` computes all tables and tests from the store, and :func:`write_report` writes them as a page.
Names are imported when they are first used: reading results needs neither the kernels nor what compiles them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treegram.study.protocol import Study
    from treegram.study.report import write_report
    from treegram.study.run import run_study
    from treegram.study.store import Store
    from treegram.study.study_file import read_study
    from treegram.study.summary import Summary, summarize

__all__ = ["Store", "Study", "Summary", "read_study", "run_study", "summarize", "write_report"]

_HOMES = {
    "Store": "store",
    "Study": "protocol",
    "Summary": "summary",
    "read_study": "study_file",
    "run_study": "run",
    "summarize": "summary",
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
