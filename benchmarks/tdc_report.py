"""What TDC's tasks are, what a run says about them beside the published board, and which molecules they share; see tdc.py."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem

from common import table

Numbers = NDArray[np.float64]
Results = dict[str, dict[str, dict[str, Any]]]  # a line of a run for each task and model
TASKS = {
    "caco2_wang": "MAE",
    "hia_hou": "AUROC",
    "pgp_broccatelli": "AUROC",
    "bioavailability_ma": "AUROC",
    "lipophilicity_astrazeneca": "MAE",
    "solubility_aqsoldb": "MAE",
    "bbb_martins": "AUROC",
    "ppbr_az": "MAE",
    "vdss_lombardo": "Spearman",
    "cyp2c9_veith": "AUPRC",
    "cyp2d6_veith": "AUPRC",
    "cyp3a4_veith": "AUPRC",
    "cyp2c9_substrate_carbonmangels": "AUPRC",
    "cyp2d6_substrate_carbonmangels": "AUPRC",
    "cyp3a4_substrate_carbonmangels": "AUROC",
    "half_life_obach": "Spearman",
    "clearance_hepatocyte_az": "Spearman",
    "clearance_microsome_az": "Spearman",
    "ld50_zhu": "MAE",
    "herg": "AUROC",
    "ames": "AUROC",
    "dili": "AUROC",
}
MOLHIV = "molhiv"  # a table of its own, outside the group and its criteria
METRIC_OF = TASKS | {MOLHIV: "AUROC"}


def sign(metric: str) -> int:
    """Return 1 if larger values of the metric are better, otherwise -1."""
    return -1 if metric == "MAE" else 1


def read_table(path: Path) -> tuple[list[str], Numbers]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or not {"Drug", "Y"} <= rows[0].keys():
        raise ValueError(f"{path} must be a table of molecules with the columns Drug and Y.")
    return [row["Drug"] for row in rows], np.array([float(row["Y"]) for row in rows])


def read_molhiv(path: Path, split: str) -> tuple[list[str], Numbers]:
    """Return the molecules of a part of the table: "train", "valid" or "test"."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == split]
    return [row["smiles"] for row in rows], np.array([float(row["HIV_active"]) for row in rows])


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a run; a last line that was cut off is not one."""
    if not path.exists():
        return []
    *lines, _ = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines]


# -------------------------------------------------------------------- the report


def read_board(path: Path) -> list[dict[str, str]]:
    """Return the published entries, each with its task, value and source."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rank(value: float, published: Sequence[float], metric: str) -> int:
    return 1 + sum(sign(metric) * (other - value) > 0 for other in published)


def report(lines: Sequence[dict[str, Any]], board: Sequence[dict[str, str]]) -> str:
    """Return tables of a run and what became of the criteria; only the official test is compared with the board."""
    results: Results = {}
    for line in lines:
        results.setdefault(line["task"], {})[line["model"]] = line
    molhiv = results.pop(MOLHIV, {})
    results = {task: results[task] for task in TASKS if "treegram" in results.get(task, {})}
    names = [
        name for name in dict.fromkeys(line["model"] for line in lines) if any(name in m for m in results.values())
    ]
    names = ["treegram", *(name for name in names if name != "treegram")]
    header = ["task", "metric", *names]
    rows = {}
    for task, models in results.items():
        cells = [f"{models[name]['value']:.3f}" if name in models else "" for name in names]
        cells[0] = f"**{cells[0]}** ± {models['treegram']['standard_error']:.3f}"
        rows[task] = [task, f"{TASKS[task]} {'↑' if sign(TASKS[task]) > 0 else '↓'}", *cells]
    note = "± is a standard error over resamples of the test rows; that of a difference is over the same resamples for both.\n"
    criteria = []
    if "boosting" in names:
        header.append("better than boosting by")
        for task, row in rows.items():
            row.append("{:+.3f} ± {:.3f}".format(*lead(results[task])) if "boosting" in results[task] else "")
        criteria = [against_boosting(results)]
    run = lines[0]["run"]
    if run["test"] == "official":
        board_cells, board_criteria = against_board(results, board)
        rows = {task: [*row, *board_cells[task]] for task, row in rows.items()}
        header += ["board's best", "median", "rank"]
        criteria = [*board_criteria, *criteria, "\n" + in_short(results, board)]
        n_remembered = sum("memory" in entry["source"] for entry in board)
        note += f"""The rank is one among {len(board)} values as they were published, from second-hand copies of the board of 2023 and 2026 and entries' own
pages, {n_remembered} of them from memory. Entries may have been tuned on the test table or pre-trained on molecules that are in it, and
are means of five seeds. Ours is one deterministic fit.
"""
    else:
        note += "A rehearsal: the test part is the last fifth of a scaffold split of the training table"
        note += f", cut to at most {run['most']} molecules.\n" if run["most"] else ".\n"
        note += "Its values are not those of the official test table, so the board is not beside them.\n"
    title = f"TDC ADMET, {run['test']} test"
    parts = [table(title, header, list(rows.values())), note, "".join(criteria), costs(results, names)]
    if molhiv:
        parts.append(molhiv_table(molhiv))
    return "\n".join([*parts, lines[0]["measured"] + ".\n"])


def processor_time(line: dict[str, Any]) -> float:
    return line["reading_seconds"] + line["fit_and_predict_seconds"]


def costs(results: Results, names: Sequence[str]) -> str:
    """Return a table of the processor time and memory of each task and model; boosting reads the columns for the forest too."""
    rows = [
        [task, str(models["treegram"]["n_train"])]
        + [
            f"{processor_time(models[name]):.0f} / {models[name]['peak_mb']}" if name in models else ""
            for name in names
        ]
        for task, models in results.items()
    ]
    totals = [
        f"{sum(processor_time(models[name]) for models in results.values() if name in models) / 60:.1f} min"
        for name in names
    ]
    header = ["CPU s / MB", "training rows", *names]
    return table("", header, [*rows, ["all", "", *totals]])


def molhiv_table(models: dict[str, dict[str, Any]]) -> str:
    """Return a table of the models of molhiv; a rehearsal predicts the validation part alone."""
    rows = []
    for name, line in models.items():
        cells = [f"{line['value']:.3f} ± {line['standard_error']:.3f}"]
        cells = [f"{line['valid']:.3f}", *cells] if "valid" in line else [*cells, ""]
        rows.append([name, *cells, f"{processor_time(line):.0f} / {line['peak_mb']}"])
    return table("", ["molhiv, AUROC ↑", "valid", "test", "CPU s / MB"], rows)


def against_board(results: Results, board: Sequence[dict[str, str]]) -> tuple[dict[str, list[str]], list[str]]:
    """Return for each task the board's best and median value and our rank among its entries, and the criteria about these."""
    cells, ranks, below = {}, [], []
    for task, models in results.items():
        metric, value = TASKS[task], models["treegram"]["value"]
        published = [float(entry["value"]) for entry in board if entry["task"] == task]
        best, median = max(published, key=lambda other: sign(metric) * other), float(np.median(published))
        ranks.append(rank(value, published, metric))
        if sign(metric) * (value - median) < 0:
            below.append(task)
        cells[task] = [f"{best:.3f}", f"{median:.3f}", f"{ranks[-1]} of {len(published) + 1}"]
    is_complete = len(results) == len(TASKS)
    n_first, middle = ranks.count(1), float(np.median(ranks))
    return cells, [
        criterion(
            "no task below the board's median", is_complete and not below, f"{len(below)} below {' '.join(below)}"
        ),
        criterion("median rank at most 3", is_complete and middle <= 3, f"{middle:g}"),
        criterion("first on six tasks", n_first >= 6, f"on {n_first}"),
        "" if is_complete else f"- Only {len(results)} of {len(TASKS)} tasks have run.\n",
    ]


def in_short(results: Results, board: Sequence[dict[str, str]]) -> str:
    """Return the sentence that pages quote."""
    ranks, n_above = [], 0
    for task, models in results.items():
        published = [float(entry["value"]) for entry in board if entry["task"] == task]
        ranks.append(rank(models["treegram"]["value"], published, TASKS[task]))
        n_above += sign(TASKS[task]) * (models["treegram"]["value"] - float(np.median(published))) >= 0
    text = f"At or above the board's median on {n_above} of {len(ranks)} tasks, first on {ranks.count(1)}, "
    text += f"median rank {np.median(ranks):g}"
    leads = [lead(models) for models in results.values() if "boosting" in models]
    n_ahead, n_behind = sum(gain > error for gain, error in leads), sum(gain < -error for gain, error in leads)
    text += f"; better than boosting by more than a standard error on {n_ahead}, within one on "
    return text + f"{len(leads) - n_ahead - n_behind}, behind by more on {n_behind}.\n"


def lead(models: dict[str, dict[str, Any]]) -> tuple[float, float]:
    """Return by how much treegram is better than boosting, and the standard error of that."""
    ours, theirs, metric = models["treegram"], models["boosting"], TASKS[models["treegram"]["task"]]
    error = np.subtract(ours["resampled"], theirs["resampled"]).std(ddof=1)
    return sign(metric) * (ours["value"] - theirs["value"]), float(error)


def against_boosting(results: Results) -> str:
    """Return on which tasks boosting is better by more than a standard error of the difference."""
    leads = {task: lead(models) for task, models in results.items() if "boosting" in models}
    behind = [f"{task} ({gain:+.3f} ± {error:.3f})" for task, (gain, error) in leads.items() if gain < -error]
    words = "better than boosting, or within one standard error of the difference, on every task"
    is_met = not behind and len(leads) == len(TASKS)
    return criterion(words, is_met, f"behind on {len(behind)} {', '.join(behind)}")


def criterion(words: str, is_met: bool, details: str) -> str:
    return f"- {words}: **{'met' if is_met else 'missed'}** ({details.strip()})\n"


# -------------------------------------------------------------------- the overlap


def identities(smiles: Iterable[str]) -> list[tuple[str, str]]:
    """Return the canonical SMILES without stereo and the first block of the InChIKey of the molecules that can be read."""
    molecules = [molecule for text in smiles if (molecule := Chem.MolFromSmiles(text)) is not None]
    return [
        (Chem.MolToSmiles(molecule, isomericSmiles=False), Chem.MolToInchiKey(molecule)[:14]) for molecule in molecules
    ]


def design_smiles(path: Path) -> list[str]:
    """Return the molecules of a table for design; its rows for the test of another run are none."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        names = [name for name in reader.fieldnames or () if name.lower() in ("drug", "smiles")]
        return [row[names[0]] for row in reader if row.get("split") != "test"] if names else []


def overlap(tasks: Sequence[str], train_folder: Path, test_folder: Path, design: Sequence[Path]) -> str:
    """Return how many test molecules of each task are in its training table, other training tables and tables for design."""
    paths = {task: path for task in TASKS if (path := train_folder / f"{task}.csv").exists()}
    training = {task: identities(read_table(path)[0]) for task, path in paths.items()}
    design_paths = [path for folder in design for path in sorted(folder.glob("*.csv"))]
    designed = [identity for path in design_paths for identity in identities(design_smiles(path))]
    rows = []
    for task in tasks:
        test = identities(read_table(test_folder / f"{task}.csv")[0])
        others = [identity for other, molecules in training.items() if other != task for identity in molecules]
        counts = [n_shared(test, known) for known in (training[task], others, designed, others + designed)]
        rows.append([task, str(len(test)), *counts])
    header = [
        "task",
        "readable test molecules",
        "in its training table",
        "in others",
        "in design tables",
        "in these two",
    ]
    return table("Test molecules that are also elsewhere", header, rows) + (
        "\nBy canonical SMILES without stereo / by the first block of the InChIKey.\n"
    )


def n_shared(test: Sequence[tuple[str, str]], known: Sequence[tuple[str, str]]) -> str:
    """Return the number of test molecules that are known by their SMILES, and by their InChIKey."""
    smiles, keys = {smiles for smiles, _ in known}, {key for _, key in known if key}  # some molecules have no InChIKey
    return f"{sum(flat in smiles for flat, _ in test)} / {sum(key in keys for _, key in test)}"
