"""Tests of seams: names, positions and units stay with their numbers on the way from files to answers."""

import csv
from pathlib import Path

import numpy as np

from treegram import WL, GraphClassifier, make_motifs, save_model, save_parquet


def test_predicted_probabilities_stand_below_the_names_of_their_classes(run, tmp_path, monkeypatch):
    """Class 10 comes after class 2, but before it in the order of texts."""
    monkeypatch.chdir(tmp_path)
    graphs, y, _ = make_motifs(30, motifs=("house", "cycle", "clique"), random_state=0)
    model = GraphClassifier([WL(1)]).fit(graphs, np.array([2, 10, 1])[y])
    save_model(model, "model.tgm")
    save_parquet(graphs[::3].assign(targets=None), "new.parquet")
    code, _, err = run("predict model.tgm new.parquet -o predicted.csv")
    assert code == 0, err
    with Path("predicted.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = model.predict_proba(graphs[::3])
    for i, name in enumerate(model.classes_):
        (column,) = [column for column in rows[0] if column.startswith("probability") and column.endswith(f" {name}")]
        np.testing.assert_allclose([float(row[column]) for row in rows], expected[:, i], rtol=1e-6)
