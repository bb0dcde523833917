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


# Variants in the fast tier, evenly spaced, of a test marked "sampled", whose variants together take seconds; "make test-all" runs
# the rest. All variants of other tests are in the fast tier: oracles, and tables of cases.
VARIANTS = 6


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(config, items):
    groups, left_out = defaultdict(list), set()
    for item in items:
        if "test_common.py" not in item.nodeid:  # has its own rule: every kernel with every law
            groups[item.nodeid.partition("[")[0]].append(item)
    for group in groups.values():
        covering = cover_values(group) if len(group) > VARIANTS else group
        left_out |= set(group) - set(covering)
        if len(covering) > VARIANTS and group[0].get_closest_marker("sampled"):
            fast = {round(i * (len(covering) - 1) / (VARIANTS - 1)) for i in range(VARIANTS)}
            for i, item in enumerate(covering):
                if i not in fast:
                    item.add_marker("slow")
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def cover_values(group):
    """Return the variants of a test to run at all: each value of each parameter occurs, but not all combinations do."""
    covering, covered = [], set()
    for item in Random(0).sample(group, len(group)):
        values = set(enumerate(item.callspec.id.split("-")))  # ids join the values
        if not values <= covered:
            covering.append(item)
            covered |= values
    return sorted(covering, key=group.index)


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
