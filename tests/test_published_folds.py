"""A run of benchmarks/published_folds.py on generated graphs with two folds."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import treegram as tg

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
if not BENCHMARKS.is_dir():
    pytest.skip("no benchmarks/ here", allow_module_level=True)


@pytest.fixture
def published_folds(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import published_folds

    monkeypatch.setattr(published_folds, "DATA_DIR", None)
    return published_folds


def test_each_fold_is_predicted_by_a_model_of_all_other_graphs(published_folds, tmp_path, monkeypatch):
    """The vectors of nodes tell the classes apart; ENZYMES is run with them, and NCI1 without."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    edges = [[(0, 1), (1, 2), (2, 3)]] * len(y)
    vectors = [np.full((4, 1), 10.0 * target) + rng.normal(size=(4, 1)) for target in y]
    graphs = tg.Graphs.from_edges(edges, labels=[[0] * 4] * len(y), attributes=vectors, targets=y)
    (tmp_path / "data").mkdir()
    for name in ("ENZYMES", "NCI1"):
        tg.save_tu(graphs, tmp_path / "data" / name, name)
        tests = [list(range(12)), list(range(12, 24))]
        (tmp_path / f"{name}_splits.json").write_text(json.dumps([{"test": test} for test in tests]))
    trained = []
    fit = tg.GraphClassifier.fit

    def recording_fit(model, X, y):
        trained.append(len(y))
        return fit(model, X, y)

    monkeypatch.setattr(tg.GraphClassifier, "fit", recording_fit)
    monkeypatch.setattr(sys, "argv", ["published_folds.py", str(tmp_path), "-o", str(tmp_path / "out.md")])
    published_folds.main()
    text = (tmp_path / "out.md").read_text()
    assert trained == [12, 12, 12, 12]
    accuracies = dict(re.findall(r"^\| (\w+) \| .*? \| \*\*([\d.]+) ± [\d.]+\*\* \|", text, re.MULTILINE))
    assert float(accuracies["ENZYMES"]) > 90
    assert float(accuracies["NCI1"]) <= 60  # the graphs do not differ without their vectors
    assert "lack of their graphs: PROTEINS_full, IMDB-BINARY" in text
