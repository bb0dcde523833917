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
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

import treegram as tg

CLASSES = (
    *("bbb_martins", "herg", "pgp_broccatelli", "dili", "ames"),
    *("cyp2d6_veith", "cyp2c9_veith", "cyp3a4_veith", "bioavailability_ma", "hia_hou"),
    *("cyp2c9_substrate_carbonmangels", "cyp2d6_substrate_carbonmangels", "cyp3a4_substrate_carbonmangels"),
)
NUMBERS = (
    *("caco2_wang", "lipophilicity_astrazeneca", "vdss_lombardo", "half_life_obach", "clearance_hepatocyte_az"),
    *("solubility_aqsoldb", "ppbr_az", "ld50_zhu", "clearance_microsome_az"),
)
STARRED = {*CLASSES[10:], *NUMBERS[5:]}  # not looked at before the rules were chosen
VERDICTS = ("inside", "at the edge", "outside")
N_MOLECULES, N_FOLDS = 1200, 4
STORE = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[1] / "docs" / "new_graphs.md"
MARKS = "<!-- applicability -->", "<!-- end of applicability -->"


def measure(path: Path, *, is_class: bool) -> dict[str, list[float]]:
    """Return for each verdict the number of molecules, the mean error and, for classes, the AUC (0.5 if it is not defined)."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    ids = np.sort(np.random.default_rng(0).permutation(len(rows))[:N_MOLECULES])
    smiles = [rows[i]["Drug"] for i in ids]
    invalid = tg.invalid_molecules(smiles)
    kept = [i for i in range(len(smiles)) if i not in invalid]
    smiles, y = [smiles[i] for i in kept], np.array([float(rows[ids[i]]["Y"]) for i in kept])
    y = y.astype(int) if is_class else norm.ppf((rankdata(y) - 0.5) / len(y))
    graphs, groups = tg.Graphs.from_smiles(smiles, descriptors="rdkit2d"), tg.scaffold_groups(smiles)
    errors, scores, verdicts = np.zeros(len(y)), np.zeros(len(y)), np.empty(len(y), dtype=object)
    for train, test in GroupKFold(N_FOLDS).split(smiles, groups=groups):
        model = (tg.GraphClassifier() if is_class else tg.GraphRegressor()).fit(graphs[train], y[train])
        predicted = model.predict(graphs[test])
        errors[test] = predicted != y[test] if is_class else np.abs(predicted - y[test])
        scores[test] = model.decision_function(graphs[test]) if is_class else 0.0
        verdicts[test] = model.applicability(graphs[test]).verdict
    found: dict[str, list[float]] = {}
    for verdict in VERDICTS:
        at = verdicts == verdict
        found[verdict] = [int(at.sum()), float(errors[at].mean()) if at.any() else 0.0]
        if is_class:
            found[verdict].append(float(roc_auc_score(y[at], scores[at])) if len(set(y[at])) == 2 else 0.5)
    return found


def mean(tables: list[dict[str, list[float]]], verdict: str, of: str, column: int) -> float:
    """Return the mean over tables, weighted by their numbers of molecules of this verdict, of a column ``of`` a verdict."""
    return float(np.average([table[of][column] for table in tables], weights=[table[verdict][0] for table in tables]))


def ratio(tables: list[dict[str, list[float]]], verdict: str) -> float:
    """Return how many times as large the errors of this verdict are as those of as many molecules inside."""
    return mean(tables, verdict, verdict, 1) / mean(tables, verdict, "inside", 1)


def render(stored: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    """Return two tables as Markdown, each with sentences below."""
    heads = {
        "classes": "wrong classes, AUC and share of the molecules",
        "numbers": "mean error and share of the molecules",
    }
    lines: list[str] = []
    for kind, tables in stored.items():
        lines += [f"| {heads[kind]} | inside | at the edge | outside |", "|---|---|---|---|"]
        for name, counts in tables.items():
            total = sum(cell[0] for cell in counts.values())
            cells = [_cell(counts[verdict], total) for verdict in VERDICTS]
            lines.append(" | ".join(["", f"{name} \\*" if name in STARRED else name, *cells, ""]).strip())
        lines.append("")
        starred = {name: table for name, table in tables.items() if name in STARRED}
        for words, used in ((f"On all tables of {kind}", tables), ("On those with a star alone", starred)):
            edge, outside = (_compare(list(used.values()), verdict, kind) for verdict in VERDICTS[1:])
            lines.append(f"{words}, errors at the edge are {edge} as large as inside; outside, {outside}.")
        lines.append("")
    return "\n".join(lines).rstrip()


def _cell(counts: list[float], total: float) -> str:
    share = f"{100 * counts[0] / total:.0f} %"
    if len(counts) == 2:
        return f"{counts[1]:.2f} ({share})"
    return f"{100 * counts[1]:.0f} %, {counts[2]:.2f} ({share})"


def _compare(tables: list[dict[str, list[float]]], verdict: str, kind: str) -> str:
    text = f"{ratio(tables, verdict):.1f} times"
    if kind == "numbers":
        return text
    return f"{text} (AUC {mean(tables, verdict, verdict, 2):.2f}, inside {mean(tables, verdict, 'inside', 2):.2f})"


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
