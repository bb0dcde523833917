"""Check the verdicts of ``applicability``: are errors larger outside? On new scaffolds, with training tables of the TDC ADMET group.

    python benchmarks/applicability.py ../shared/tdc     # the folder with one CSV file per table; a few minutes

At most 1,200 molecules of each table are drawn, with descriptors, in 4 folds of scaffolds. Numbers are replaced by their normal
scores, on which errors of tables can be compared. Test tables are not read. Writes applicability.json beside this file and the table in docs/new_graphs.md;
tests/models/test_applicability.py checks that they agree.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm, rankdata
from sklearn.model_selection import GroupKFold

import treegram as tg

CLASSES = (
    *("bbb_martins", "herg", "pgp_broccatelli", "dili", "ames"),
    *("cyp2d6_veith", "cyp2c9_veith", "cyp3a4_veith", "bioavailability_ma", "hia_hou"),
)
NUMBERS = (
    *("caco2_wang", "lipophilicity_astrazeneca", "vdss_lombardo", "half_life_obach", "clearance_hepatocyte_az"),
    *("solubility_aqsoldb", "ppbr_az", "ld50_zhu", "clearance_microsome_az"),
)
STARRED = {*CLASSES[5:], *NUMBERS[5:]}  # not looked at before thresholds were chosen
VERDICTS = ("inside", "at the edge", "outside")
N_MOLECULES, N_FOLDS = 1200, 4
STORE = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[1] / "docs" / "new_graphs.md"
MARKS = "<!-- applicability -->", "<!-- end of applicability -->"


def measure(path: Path, *, is_class: bool) -> dict[str, list[float]]:
    """Return, for each verdict, the number of molecules and the mean error: wrong classes, or distances in normal scores."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    ids = np.sort(np.random.default_rng(0).permutation(len(rows))[:N_MOLECULES])
    smiles = [rows[i]["Drug"] for i in ids]
    invalid = tg.invalid_molecules(smiles)
    kept = [i for i in range(len(smiles)) if i not in invalid]
    smiles, y = [smiles[i] for i in kept], np.array([float(rows[ids[i]]["Y"]) for i in kept])
    y = y.astype(int) if is_class else norm.ppf((rankdata(y) - 0.5) / len(y))
    graphs, groups = tg.Graphs.from_smiles(smiles, descriptors="rdkit2d"), tg.scaffold_groups(smiles)
    errors: dict[str, list[float]] = {verdict: [] for verdict in VERDICTS}
    for train, test in GroupKFold(N_FOLDS).split(smiles, groups=groups):
        model = (tg.GraphClassifier() if is_class else tg.GraphRegressor()).fit(graphs[train], y[train])
        predicted = model.predict(graphs[test])
        of_test = predicted != y[test] if is_class else np.abs(predicted - y[test])
        for verdict, error in zip(model.applicability(graphs[test]).verdict, of_test, strict=True):
            errors[str(verdict)].append(float(error))
    return {verdict: [len(values), float(np.mean(values or [0.0]))] for verdict, values in errors.items()}


def ratio(tables: list[dict[str, list[float]]], verdict: str) -> float:
    """Return how many times as large errors are as inside: the mean over tables, weighted by their numbers of such molecules."""
    counts = [table[verdict][0] for table in tables]
    return float(np.average([table[verdict][1] / table["inside"][1] for table in tables], weights=counts))


def render(stored: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    """Return the table as Markdown, with a sentence below."""
    lines = ["| table | error | inside | at the edge | outside |", "|---|---|---|---|---|"]
    words = {"classes": "wrong classes", "numbers": "mean error"}
    sentences = []
    for kind, tables in stored.items():
        for name, counts in tables.items():
            total = sum(n for n, _ in counts.values())
            cells = [
                f"{100 * error:.0f} % ({100 * n / total:.0f} %)"
                if kind == "classes"
                else f"{error:.2f} ({100 * n / total:.0f} %)"
                for n, error in (counts[verdict] for verdict in VERDICTS)
            ]
            lines.append(" | ".join(["", name + " *" * (name in STARRED), words[kind], *cells, ""]).strip())
        for words_of, used in ((kind, tables), ("the tables with a star alone", _starred(tables))):
            edge, outside = (ratio(list(used.values()), verdict) for verdict in VERDICTS[1:])
            sentences.append(
                f"For {words_of}, errors at the edge are {edge:.1f} times and outside {outside:.1f} times as large as inside."
            )
    return "\n".join([*lines, "", *sentences])


def _starred(tables: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, list[float]]]:
    return {name: table for name, table in tables.items() if name in STARRED}


def main(folder: Path) -> None:
    """Measure all tables, and write the store and the page."""
    warnings.simplefilter("ignore")
    stored: dict[str, dict[str, dict[str, list[float]]]] = {"classes": {}, "numbers": {}}
    for kind, names in (("classes", CLASSES), ("numbers", NUMBERS)):
        for name in names:
            stored[kind][name] = measure(folder / f"{name}.csv", is_class=kind == "classes")
            print(name, stored[kind][name], flush=True)
    STORE.write_text(json.dumps(stored, indent=1) + "\n")
    page = PAGE.read_text(encoding="utf-8")
    body = f"{MARKS[0]}\n{render(stored)}\n{MARKS[1]}"
    PAGE.write_text(re.sub(f"{MARKS[0]}.*{MARKS[1]}", lambda _: body, page, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
