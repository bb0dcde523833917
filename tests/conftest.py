import os
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
