import os
import re
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir():
    """The folder with the real data sets, which are not part of the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("TREEGRAM_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not here: TREEGRAM_DATA names no folder, and there is no {beside}")
    return folder


def pytest_collection_modifyitems(items):
    """Take addresses in memory out of the names of tests: processes that share the tests must agree on them."""
    for item in items:
        item._nodeid = re.sub(r" at 0x[0-9a-f]+", "", item.nodeid)
