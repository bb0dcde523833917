"""Tests of the fuzzer, and a short run: every mutant is rejected or passes its check."""

import json
import random
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SEEDS = json.loads((BENCHMARKS / "fuzz_seeds.json").read_text())  # past findings, by kind
QUICK = (
    "folders",
    "zips",
    "studies",
    "stores",
    "numbers",
    "arrays",
    "edges",
    "networkx",
    "grakel",
    "smiles",
    "parquet",
)
NEEDS = {"networkx": "networkx", "igraph": "igraph", "proteins": "gemmi", "gram stores": "zarr"}
NEEDS |= {"smiles": "rdkit", "parquet": "pyarrow"}


@pytest.fixture(scope="module")
def fuzz():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import fuzz  # type: ignore[import-not-found, unused-ignore]

        yield fuzz
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [*QUICK, *SEEDS])
def test_mutants_are_accepted_or_raise_properly(fuzz, tmp_path, kind):
    pytest.importorskip(NEEDS.get(kind, "numpy"))
    fuzz._quieten_rdkit()
    make, _ = fuzz.KINDS[kind]
    make(tmp_path)
    found = [fuzz.try_one(kind, tmp_path, seed) for seed in (*range(60), *map(int, SEEDS.get(kind, ())))]
    assert [outcome for outcome in found if outcome.startswith("BAD")] == []
    assert {"accepted", "refused"} <= set(found)  # mutants are neither all broken nor all valid


def test_every_reader_is_fuzzed(fuzz):
    from treegram import Graphs

    # Models take long to build; tests/models/test_model_files.py has mutants of some.
    assert set(fuzz.KINDS) == {*QUICK, *SEEDS, "models"}
    readers = {name.removeprefix("from_") for name in dir(Graphs) if name.startswith("from_")}
    assert readers - {"pdb", "rdkit"} <= set(fuzz.KINDS)  # these are "proteins" and "smiles"


def test_numbers_are_compared_with_the_text(fuzz, tmp_path, monkeypatch):
    from treegram.datasets.tu import TextTable

    read = TextTable.read
    monkeypatch.setattr(TextTable, "read", lambda *args: read(*args) + 1)
    found = {fuzz.try_one("numbers", tmp_path, seed) for seed in range(20)}
    assert "BAD: wrong numbers" in found


def test_different_readers_are_reported(fuzz, tmp_path, monkeypatch):
    import treegram

    monkeypatch.setattr(treegram, "load_tu", lambda folder: (fuzz.some_graphs(), None))
    fuzz.make_folders(tmp_path)
    found = {fuzz.try_folder(tmp_path, tmp_path / "mutant", random.Random(seed)) for seed in range(20)}
    assert "BAD: the readers differ" in found


def test_unexpected_errors_are_reported(fuzz, tmp_path, monkeypatch):
    def fail(*_):
        raise KeyError("graph")

    monkeypatch.setitem(fuzz.KINDS, "arrays", (None, fail))
    assert fuzz.try_one("arrays", tmp_path, 0).startswith("BAD: KeyError")
