"""kernel "auto" in the command and in study files."""

import pytest

from test_cli_models import folder, run  # noqa: F401 (fixtures)
from treegram import load_model
from treegram.study import Store
from treegram.study.study_file import parse_study


def test_fit_tells_what_was_tried(run):  # noqa: F811
    code, out, err = run("fit TRAIN --kernel auto --folds 3 -o m.tgm")
    assert (code, err) == (0, "")
    model = load_model("m.tgm")
    assert out.startswith(model.search_summary())
    assert model.best_params_["kernel"] in out.splitlines()[-1]


def test_fit_within_a_time_limit(run):  # noqa: F811
    code, out, _ = run("fit NUMBERS --kernel auto --max-seconds 0 -o n.tgm")
    assert code == 0
    n_left_out = sum(record["score"] is None for record in load_model("n.tgm").search_results_)
    assert out.count("left out: time was up") == n_left_out > 5


def test_auto_goes_alone(run):  # noqa: F811
    code, out, err = run("fit TRAIN --kernel auto --kernel wl -o m.tgm")
    assert (code, out) == (2, "")
    assert "--kernel auto cannot be combined" in err


def test_gram_has_no_auto(run):  # noqa: F811
    code, _, err = run("gram TRAIN --kernel auto -o K.npz")
    assert code == 2
    assert "unknown kernel 'auto'" in err


def test_evaluate_compares_it_with_kernels(run):  # noqa: F811
    code, out, _ = run("evaluate TRAIN --kernel auto --kernel wl --folds 2 --repeats 1 --jobs 1")
    assert code == 0
    assert "auto " in out
    with Store.open("TRAIN.sqlite") as store:
        rows = [row for row in store.rows() if row.kernel == "auto"]
    assert [row.fold for row in rows] == [0, 1]
    for row in rows:
        assert row.chosen.keys() == {"kernel", "C"}
        assert row.n_fits > 10
        assert len(row.predicted) == len(row.actual) == 10


STUDY = """
title = "a study"
datasets = ["TRAIN"]
[[kernels]]
name = "ours"
kernel = "auto"
"""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("grid = { depth = [1] }", "no parameters"),
        ("parameters = { depth = 1 }", "no parameters"),
        ('attributes = ["robust"]', "goes alone"),
        ('fitted_on = "all"', "goes alone"),
    ],
)
def test_studies_leave_the_choice_to_it(more, message):
    assert parse_study("s", STUDY.encode(), "s.toml").entries[0].candidates[0].kernel == "auto"
    with pytest.raises(ValueError, match=message):
        parse_study("s", (STUDY + more).encode(), "s.toml")


def test_studies_cannot_add_it_to_a_sum():
    text = STUDY.replace('kernel = "auto"', 'sum = [{ kernel = "wl" }, { kernel = "auto" }]')
    with pytest.raises(ValueError, match="goes alone"):
        parse_study("s", text.encode(), "s.toml")
