import os
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True)  # runs of the same commit give the same result
if os.environ.get("CI"):
    settings.load_profile("ci")

# Data sets of the TU collection that tests read; they are not part of the repository.
DATA_SETS = ("BZR", "COX2", "Cuneiform", "DHFR", "ENZYMES", "MUTAG", "PROTEINS", "SYNTHETICnew")


def find_data():
    """Return the folder from TREEGRAM_DATA, or ../shared/data next to the checkout, and the names of missing data sets."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    given = os.environ.get("TREEGRAM_DATA") or (str(beside) if beside.is_dir() else None)
    folder = Path(given) if given else None
    return folder, [name for name in DATA_SETS if folder is None or not (folder / name).is_dir()]


def describe_data():
    """Return one line that says which data sets are available, and what is skipped."""
    folder, missing = find_data()
    if not missing:
        return f"data sets: all that the tests read are in {folder}"
    where = (
        "TREEGRAM_DATA is not set, and there is no ../shared/data"
        if folder is None
        else f"{folder} lacks {', '.join(missing)}"
    )
    return f"data sets: {where}; tests that use the fixture data_dir are skipped"


def pytest_sessionstart(session):
    # Not pytest_report_header: -q hides that.
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(session.config, "workerinput"):
        reporter.write_line(describe_data())


# Variants of a parametrized test in the fast tier, evenly spaced; "make test-all" runs the rest. Comparisons with an oracle
# keep at least one variant for each value of each parameter.
VARIANTS = 6


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(items):
    groups = defaultdict(list)
    for item in items:
        if "test_common.py" not in item.nodeid:  # has its own rule: every kernel with every law
            groups[item.nodeid.partition("[")[0]].append(item)
    for name, group in groups.items():
        if len(group) > VARIANTS:
            kept = (
                cover_values(group)
                if "oracle" in name
                else {round(i * (len(group) - 1) / (VARIANTS - 1)) for i in range(VARIANTS)}
            )
            for i, item in enumerate(group):
                if i not in kept:
                    item.add_marker("slow")


def cover_values(group):
    """Return positions of variants, few but such that each value of each parameter occurs."""
    kept, covered = set(), set()
    for i in Random(0).sample(range(len(group)), len(group)):
        values = set(enumerate(group[i].callspec.id.split("-")))  # ids join the values
        if not values <= covered:
            kept.add(i)
            covered |= values
    return kept


@pytest.fixture(scope="session")
def data_dir():
    """Return the folder with the real data sets."""
    folder, missing = find_data()
    if missing:
        pytest.skip(describe_data())
    return folder


@pytest.fixture
def run(capsys):
    """Run the command with a line or separate arguments; return its exit code, stdout and stderr."""
    from treegram.cli import main

    def run_command(*words):
        code = main(words[0].split() if len(words) == 1 else [str(word) for word in words])
        return code, *capsys.readouterr()

    return run_command
