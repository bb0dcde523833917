"""Tests of study files: errors name the key, and the identity covers everything that determines a result."""

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from treegram import WL, DropAttributes, GraphSVC
from treegram.exceptions import StudyError, TreegramError
from treegram.study.protocol import (
    Comparison,
    KernelSpec,
    Pair,
    Protocol,
    Published,
    Study,
    StudyEntry,
    entry_key,
    shipped_studies,
)
from treegram.study.run import build_kernel
from treegram.study.study_file import check_study, parse_study, read_study

BASE = """\
title = "A small study"
about = '''
Two lines with a [bracket], "quotes" and a # sign,
kernel = "not a key".
'''
reference = "None"
datasets = ["MUTAG", "mine"]

[dataset_notes]
MUTAG = "small"

[protocol]
repeats = 2
outer_folds = 5
inner_folds = 3
seed = 7
C = [1, 10.0]
fitted_on = "all"

[[kernels]]
name = "first"
kernel = "oddcl" # the tree kernel
parameters = { counting = "visits" }
param_grid = { depth = [0, 1], lam = [
    0.5,
    1,
] }
attributes = ["robust", "neighbors"]
timed = { depth = 1 }
note = "A note."
[kernels.published]
accuracy = { MUTAG = 81, "mine" = "out of time" }
deviation = { MUTAG = 1.5 }
seconds = { MUTAG = 60 }

[[kernels]]
name = "second"
sum = [
    { kernel = "wlcl" },
    { kernel = "wlcl", parameters = { gamma = 0.5 }, attributes = ["standard"] },
]
param_grid = { n_iterations = [0, 2] }
timed = { n_iterations = 2 }

[[kernels]]
name = "third"
[[kernels.choices]]
kernel = "wl"
param_grid.n_iterations = [1]
[[kernels.choices]]
kernel = "oddcl-approx"
[kernels.choices.parameters]
random_state = 3
method = "rff"

[[comparisons]]
name = "all"
kernels = ["first", "second", "third"]
datasets = ["MUTAG", "mine"]

[[pairs]]
kernel = "first"
baseline = "third"
datasets = ["MUTAG"]
"""


@pytest.fixture
def write(tmp_path):
    def write_study(content):
        path = tmp_path / "mine.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_study


def whole_study():
    """Return the study of BASE, built in Python."""
    terms = (KernelSpec("wlcl"), KernelSpec("wlcl", {"gamma": 0.5}, attributes=("standard",)))
    grid = {"depth": (0, 1), "lam": (0.5, 1)}
    first = StudyEntry(
        "first",
        (KernelSpec("oddcl", {"counting": "visits"}, grid, ("robust", "neighbors")),),
        timed={"depth": 1},
        note="A note.",
        published=Published({"MUTAG": 81.0, "mine": "out of time"}, {"MUTAG": 1.5}, {"MUTAG": 60.0}),
    )
    second = StudyEntry("second", (KernelSpec(param_grid={"n_iterations": (0, 2)}, sum=terms),), {"n_iterations": 2})
    approximate = KernelSpec("oddcl-approx", {"random_state": 3, "method": "rff"})
    third = StudyEntry("third", (KernelSpec("wl", param_grid={"n_iterations": (1,)}), approximate))
    return Study(
        "mine",
        ("MUTAG", "mine"),
        (first, second, third),
        Protocol(2, 5, 3, 7, (1.0, 10.0), "all"),
        title="A small study",
        about='Two lines with a [bracket], "quotes" and a # sign,\nkernel = "not a key".',
        reference="None",
        dataset_notes={"MUTAG": "small"},
        comparisons=(Comparison("all", ("first", "second", "third"), ("MUTAG", "mine")),),
        pairs=(Pair("first", "third", ("MUTAG",)),),
    )


def test_whole_study_file_is_read(write):
    assert read_study(write(BASE)) == whole_study()


def test_study_built_in_python_is_checked_and_round_trips():
    study = whole_study()
    assert check_study(study) == study
    assert parse_study("mine", study.text.encode(), "stored") == study
    listed = Study("mine", ["MUTAG"], [StudyEntry("k", [KernelSpec("wl", param_grid={"n_iterations": [0, 1]})])])
    assert check_study(listed) == Study(
        "mine", ("MUTAG",), (StudyEntry("k", (KernelSpec("wl", param_grid={"n_iterations": (0, 1)}),)),)
    )
    wrong = replace(listed, kernels=[StudyEntry("k", [KernelSpec("wl", {"depth": 1})])])
    with pytest.raises(StudyError, match=r"the study mine: kernels\[0\].*depth: the kernel 'wl' has no parameter"):
        check_study(wrong)


def test_entry_can_have_its_own_data_sets(write):
    text = 'datasets = ["A", "B"]\n[[kernels]]\nname = "k"\nkernel = "csm"\ndatasets = ["{}"]\n'
    (entry,) = read_study(write(text.format("B"))).kernels
    assert (entry.is_for("A"), entry.is_for("B")) == (False, True)
    with pytest.raises(StudyError, match=r"mine.toml: kernels\[0\].datasets: unknown data set 'C'"):
        read_study(write(text.format("C")))


def test_defaults_are_those_of_the_paper(write):
    study = read_study(write('datasets = ["A"]\n[[kernels]]\nname = "k"\nkernel = "csm"\n'))
    assert study.protocol == Protocol() == read_study("paper").protocol
    assert study == Study("mine", ("A",), (StudyEntry("k", (KernelSpec("csm"),)),))


# Old text, new text, and the message after the name of the file.
NEW_ENTRY = ("[[comparisons]]", '[[kernels]]\nname = "x"\n{}\n[[comparisons]]')


def entry(text):
    return NEW_ENTRY[0], NEW_ENTRY[1].format(text)


WRONG = [
    # keys
    ('note = "A note."', 'nota = "A note."', "kernels[0].nota: unknown key; did you mean note?"),
    ("seed = 7", "seeds = 7", "protocol.seeds: unknown key; did you mean seed?"),
    ("[dataset_notes]", "[datasetnotes]", "datasetnotes: unknown key; did you mean dataset_notes or datasets?"),
    ("seconds = {", "time = {", "kernels[0].published.time: unknown key"),
    ("param_grid.n_iterations = [1]", "grids.n_iterations = [1]", "kernels[2].choices[0].grids: unknown key"),
    ('baseline = "third"', 'base = "third"', "pairs[0].base: unknown key; did you mean baseline?"),
    ('datasets = ["MUTAG", "mine"]\n\n', "", "the key 'datasets' is missing"),
    ('name = "second"', "", "kernels[1]: the key 'name' is missing"),
    # types
    ('title = "A small study"', "title = 3", "title: must be a text, got 3"),
    ('datasets = ["MUTAG", "mine"]\n\n', 'datasets = "MUTAG"\n', "datasets: must be a list of at least one element"),
    ('"MUTAG", "mine"]\n\n', '"MUTAG", "MUTAG"]\n', "datasets[1]: duplicate 'MUTAG'"),
    ('["MUTAG", "mine"]\n\n', '["MUTAG", "data/mine"]\n', "datasets[1]: 'data/mine' is not the name of a data set"),
    ("[protocol]", "[[protocol]]", "protocol: must be a table, got a list"),
    ("param_grid = { n_iterations = [0, 2] }", "param_grid = [0]", "kernels[1].param_grid: must be a table"),
    (
        "random_state = 3",
        "random_state = 2020-01-01",
        "kernels[2].choices[1].parameters.random_state: must be a text or a number",
    ),
    # protocol
    ("repeats = 2", "repeats = 0", "protocol.repeats: must be a whole number of at least 1 and at most 10000, got 0"),
    (
        "repeats = 2",
        "repeats = 1000000000",
        "protocol.repeats: must be a whole number of at least 1 and at most 10000, got 1000000000",
    ),
    (
        "repeats = 2",
        "repeats = true",
        "protocol.repeats: must be a whole number of at least 1 and at most 10000, got True",
    ),
    ("inner_folds = 3", "inner_folds = 2.5", "protocol.inner_folds: must be a whole number of at least 2, got 2.5"),
    ("seed = 7", "seed = -1", "protocol.seed: must be a whole number of at least 0 and at most 4294967295, got -1"),
    ("C = [1, 10.0]", "C = [1, 0]", "protocol.C[1]: must be a number greater than 0, got 0"),
    ("C = [1, 10.0]", "C = [1, inf]", "protocol.C[1]: must be a number greater than 0, got inf"),
    ('"all"\n\n', '"train"\n', "protocol.fitted_on: must be one of 'all', 'training', got 'train'"),
    ("C = [1, 10.0]", "alpha = [1.0]", 'protocol.alpha: cannot be combined with task = "classification"'),
    ("seed = 7", 'split = "turned"', "protocol.split: must be one of 'groups', 'scaffold', got 'turned'"),
    # kernels
    ('"oddcl" # the tree kernel', '"odcl"', "kernels[0].kernel: unknown kernel 'odcl'; did you mean oddcl?"),
    ('{ kernel = "wlcl" },', '{ kernel = "wcl" },', "kernels[1].sum[0].kernel: unknown kernel 'wcl'"),
    (
        '{ counting = "visits" }',
        "{ countings = 1 }",
        "kernels[0].parameters.countings: the kernel 'oddcl' has no parameter",
    ),
    (
        '{ counting = "visits" }',
        '{ counting = "visit" }',
        "kernels[0].parameters.counting: counting of ODDCL must be one of",
    ),
    (
        '{ counting = "visits" }',
        "{ n_jobs = 2 }",
        "kernels[0].parameters.n_jobs: the kernel 'oddcl' has no parameter 'n_jobs'",
    ),
    ('name = "second"', 'name = "first"', "kernels[1]: duplicate 'first'"),
    ('name = "second"', 'name = "a\\nb"', "kernels[1]: a name must be one line of printable characters"),
    (*entry(""), "kernels[3]: give exactly one of 'kernel', 'sum', 'choices' and 'estimator'"),
    ('name = "second"', 'name = "second"\nkernel = "wl"', "kernels[1]: give either 'kernel', 'parameters' and"),
    ('name = "third"', 'name = "third"\nkernel = "wl"', "kernels[2]: give exactly one of"),
    (
        *entry('kernel = "auto"\nparameters = { depth = 1 }'),
        "kernels[3]: an estimator or the kernel 'auto' cannot be combined",
    ),
    # grids
    ("n_iterations = [0, 2]", "n_iteration = [0, 2]", "kernels[1].param_grid.n_iteration[0]: the kernel 'wlcl' has no"),
    (
        "param_grid.n_iterations = [1]",
        "param_grid.n_iterations = []",
        "kernels[2].choices[0].param_grid.n_iterations: must",
    ),
    ("    1,\n]", "    -1,\n]", "kernels[0].param_grid.lam[1]: lam of ODDCL must be a number greater than 0; got -1"),
    ("    1,\n]", "    nan,\n]", "kernels[0].param_grid.lam[1]: must be a text or a number"),
    (
        "depth = [0, 1]",
        "depth = [0, true]",
        "kernels[0].param_grid.depth[1]: depth of ODDCL must be a whole number",
    ),
    ("n_iterations = [0, 2] }", "gamma = [1] }", "kernels[1].param_grid.gamma: also fixed in 'parameters'"),
    ("timed = { depth = 1 }", "timed = { deep = 1 }", "kernels[0].timed: the kernel 'oddcl' has no parameter"),
    (
        '"standard"',
        '"standart"',
        "kernels[1].sum[1].attributes: unknown transformation 'standart'; did you mean standard?",
    ),
    # published
    ("seconds = { MUTAG", "seconds = { MUTAC", "kernels[0].published.seconds: unknown data set 'MUTAC'; did you"),
    (
        "MUTAG = 81,",
        "MUTAG = 101,",
        "kernels[0].published.accuracy.MUTAG: must be a number of at least 0 and at most 100 or a text, got 101",
    ),
    ("MUTAG = 1.5", "MUTAG = -1.5", "kernels[0].published.deviation.MUTAG: must be a number of at least 0, got -1.5"),
    ('MUTAG = "small"', 'MUTAGEN = "small"', "dataset_notes: unknown data set 'MUTAGEN'; did you mean MUTAG?"),
    # comparisons and pairs
    ('["first", "second", "third"]', '["first", "second", "tird"]', "comparisons[0].kernels: unknown kernel 'tird'"),
    ('["first", "second", "third"]', '["first", "second"]', "comparisons[0]: a Friedman test needs at least 3"),
    ('"mine"]\n\n[[pairs]]', '"x"]\n\n[[pairs]]', "comparisons[0].datasets: unknown data set 'x'"),
    ('baseline = "third"', 'baseline = "fourth"', "pairs[0].baseline: unknown kernel 'fourth'"),
    ('baseline = "third"', 'baseline = ["third", "first"]', "pairs[0].baseline: 'first' is compared with itself"),
    # baselines, draws and repeats
    (
        *entry("estimator = 1"),
        "kernels[3].estimator: must be the name of an estimator, or in Python an estimator of graphs, got 1",
    ),
    (
        *entry('estimator = ["gin"]'),
        "kernels[3].estimator: must be the name of an estimator, or in Python an estimator of graphs, got a list",
    ),
    (*entry('baseline = "gin"\nkernel = "wl"'), "kernels[3]: give exactly one of"),
    (*entry('kernel = "p2k"\nparameters.random_state = 1\nreseed = true'), "kernels[3].reseed: sets random_state"),
    (*entry('baseline = "gin"\nreseed = true'), "kernels[3]: an estimator or the kernel 'auto' cannot be combined"),
    ('note = "A note."', "reseed = true", "kernels[0].reseed: the kernel 'oddcl' has no parameter 'random_state'"),
    ("seed = 7", "repeats_on = { MUTAGG = 1 }", "protocol.repeats_on: unknown data set 'MUTAGG'"),
    # syntax
    ('reference = "None"', 'reference = "None', "not valid TOML in UTF-8: "),
    ("seed = 7", "seed = 7\nseed = 8", "not valid TOML in UTF-8: Cannot overwrite a value (at line 17"),
]


def test_invalid_files_raise_and_name_the_key(write):
    for old, new, message in WRONG:
        assert old in BASE, old
        path = write(BASE.replace(old, new, 1))
        with pytest.raises(StudyError) as caught:
            read_study(path)
        assert str(caught.value).startswith(f"{path}: {message}"), (old, new)
        assert isinstance(caught.value, TreegramError)
        assert isinstance(caught.value, ValueError)


def test_baselines_reseed_pairs_and_repeats_are_read(write):
    more = """[[kernels]]
name = "net"
baseline = "gin"
repeats = 1
[[kernels]]
name = "drawn"
kernel = "p2k"
reseed = true
[[pairs]]
kernel = "first"
baseline = ["second", "net"]
datasets = ["mine"]
"""
    study = read_study(write(BASE.replace("seed = 7", "seed = 7\nrepeats_on = { mine = 1 }") + more))
    net, drawn = study.kernels[3:]
    assert net == StudyEntry("net", estimator="gin", repeats=1)
    assert drawn == StudyEntry("drawn", (KernelSpec("p2k"),), reseed=True)
    assert study.pairs[1] == Pair("first", ("second", "net"), ("mine",))
    planned = [[study.repeats_of(entry, name) for name in study.datasets] for entry in study.kernels[2:]]
    assert planned == [[2, 1], [1, 1], [2, 1]]
    assert study.digest == hashlib.sha256(study.text.encode()).hexdigest()


def test_published_accuracies_raise_in_regression(write):
    text = 'datasets = ["A"]\n[protocol]\ntask = "regression"\n[[kernels]]\nname = "k"\n'
    with pytest.raises(StudyError, match=r"kernels\[0\].published: accuracies cannot be combined with another metric"):
        read_study(write(text + 'kernel = "wl"\npublished.accuracy.A = 80\n'))


def test_files_that_are_not_studies_raise(write):
    wrong = {
        b"": ": the key 'datasets' is missing",
        b"datasets = ['b']\nkernels = []": ": kernels: must be a list of at least one element, got an empty list",
        b"datasets = ['b']\n[kernels]": ": kernels: must be a list of at least one element, got a table",
        b"title = 'a'\nabout = '\xe9'": ": not valid TOML in UTF-8: 'utf-8' codec can't decode byte 0xe9",
        b"x = " + b"[" * 50_000: ": not valid TOML",
        b"x = " + b"9" * 10_000: ": not valid TOML in UTF-8: Exceeds the limit",
        b"\0" * 100: ": not valid TOML",
    }
    for content, words in wrong.items():
        path = write(content)
        with pytest.raises(StudyError) as caught:
            read_study(path)
        assert str(caught.value).startswith(f"{path}{words}"), content[:20]


def test_line_endings_and_a_byte_order_mark_are_accepted(write):
    assert read_study(write(b"\xef\xbb\xbf" + BASE.replace("\n", "\r\n").encode())) == whole_study()


def test_shipped_names_come_before_paths_and_missing_studies_raise(write, tmp_path, monkeypatch):
    assert {"beyond", "paper"} <= set(shipped_studies())
    assert read_study("paper").name == "paper"
    monkeypatch.chdir(tmp_path)
    write(BASE).rename("paper")
    assert read_study("paper").title != "A small study"
    assert read_study("./paper").title == "A small study"
    for missing in ("papre", tmp_path, "a\0b", tmp_path / "none.toml"):
        with pytest.raises(StudyError, match=r"the study cannot be read .* beyond, paper, wide"):
            read_study(missing)
    with pytest.raises(StudyError, match="did you mean paper"):
        read_study("papre")


@given(st.integers(0, len(BASE) - 1), st.integers(0, 12), st.text("[]{}\"'=,.#\n\\ a1é", max_size=6))
@settings(max_examples=120, deadline=None)
def test_damaged_study_is_read_or_raises_study_error(tmp_path_factory, start, length, inserted):
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_text(BASE[:start] + inserted + BASE[start + length :], encoding="utf-8")
    try:
        assert len(read_study(path).kernels) >= 1
    except StudyError as error:
        message = str(error)
    else:
        message = str(path)
    assert message.startswith(str(path))


# -------------------------------------------------------------------- identity

values = st.sampled_from([0, 1, 1.0, 0.5, "a", True, (1, 2.0)])
names = st.sampled_from(["depth", "lam", "gamma"])
choices = st.builds(
    KernelSpec,
    kernel=st.sampled_from(["oddcl", "wl"]),
    parameters=st.dictionaries(names, values, max_size=2),
    param_grid=st.dictionaries(names, st.lists(values, min_size=1, max_size=2).map(tuple), max_size=2),
    attributes=st.lists(st.sampled_from(["robust", "none"]), max_size=2).map(tuple),
)
choices |= st.builds(KernelSpec, sum=st.tuples(choices, choices))
protocols = st.builds(
    Protocol,
    repeats=st.integers(1, 3),
    outer_folds=st.integers(2, 3),
    inner_folds=st.integers(2, 3),
    seed=st.integers(0, 1),
    C=st.sampled_from([(1.0,), (1, 10), (10.0, 1.0)]),
    fitted_on=st.sampled_from(["training", "all"]),
)
rows = st.builds(
    StudyEntry,
    name=st.text(max_size=3),
    choices=st.lists(choices, min_size=1, max_size=2).map(tuple),
    note=st.text(max_size=3),
)
studies = st.builds(Study, st.text(), st.just(("A", "B")), st.lists(rows, min_size=1, max_size=2).map(tuple), protocols)


def exactly(value):
    """Return the value with differences that Python's equality ignores: True is not 1, and the order matters."""
    if isinstance(value, KernelSpec):
        grid = tuple((name, exactly(listed)) for name, listed in value.param_grid.items())
        fixed = frozenset((name, exactly(one)) for name, one in value.parameters.items())
        return value.kernel, fixed, grid, value.attributes, tuple(map(exactly, value.sum))
    if isinstance(value, tuple):
        return tuple(map(exactly, value))
    return isinstance(value, bool), value


def relevant_fields(study, entry, dataset):
    return dataset, exactly(entry.choices), replace(study.protocol, repeats=1, C=tuple(sorted(study.protocol.C)))


@given(studies, studies, st.sampled_from("AB"), st.sampled_from("AB"))
@settings(max_examples=60, deadline=None)
def test_keys_are_equal_if_and_only_if_the_relevant_fields_are(one, two, first, second):
    whole = [relevant_fields(study, study.kernels[0], name) for study, name in ((one, first), (two, second))]
    keys = [entry_key(study, study.kernels[0], name) for study, name in ((one, first), (two, second))]
    assert (keys[0] == keys[1]) == (whole[0] == whole[1])


@given(studies, rows, st.integers(1, 100))
@settings(max_examples=60, deadline=None)
def test_additions_do_not_change_the_key(study, new, repeats):
    entry = study.kernels[0]
    larger = replace(
        study,
        datasets=(*study.datasets, "C"),
        kernels=(new, *study.kernels),
        protocol=replace(study.protocol, repeats=repeats),
        title="another",
    )
    renamed = replace(entry, name="another", note="new", timed={"depth": 1}, published=Published({"A": 1.0}))
    assert entry_key(larger, renamed, "A") == entry_key(study, entry, "A")
    assert entry_key(study, entry, "A") != entry_key(study, entry, "B")


@given(studies, st.data())
@settings(max_examples=60, deadline=None)
def test_any_relevant_change_changes_the_key(study, data):
    entry = study.kernels[0]
    protocol, choice = study.protocol, entry.choices[0]
    changed = data.draw(
        st.sampled_from(
            [
                (replace(study, protocol=replace(protocol, seed=9)), entry),
                (replace(study, protocol=replace(protocol, outer_folds=9)), entry),
                (replace(study, protocol=replace(protocol, inner_folds=9)), entry),
                (replace(study, protocol=replace(protocol, C=(*protocol.C, 7.0))), entry),
                (replace(study, protocol=replace(protocol, fitted_on="another")), entry),
                (study, replace(entry, choices=(*entry.choices, choice))),
                (study, replace(entry, choices=(replace(choice, parameters={"other": 1}),))),
                (study, replace(entry, choices=(replace(choice, param_grid={**choice.param_grid, "other": (1,)}),))),
                (study, replace(entry, choices=(replace(choice, attributes=(*choice.attributes, "standard")),))),
                (study, replace(entry, choices=(replace(choice, sum=(*choice.sum, KernelSpec("sp"))),))),
            ]
        )
    )
    assert entry_key(*changed, "A") != entry_key(study, entry, "A")


@given(studies, st.sampled_from(["training", "all"]))
@settings(max_examples=60, deadline=None)
def test_key_of_an_entry_that_overrides_the_protocol_is_that_of_such_a_protocol(study, fitted_on):
    entry = study.kernels[0]
    such = replace(study, protocol=replace(study.protocol, fitted_on=fitted_on))
    assert entry_key(study, replace(entry, fitted_on=fitted_on), "A") == entry_key(such, entry, "A")


def test_number_of_jobs_is_the_only_parameter_that_does_not_change_the_key():
    def key(estimator):
        study = Study("s", ("A",), (StudyEntry("e", estimator=estimator),))
        return entry_key(study, study.kernels[0], "A")

    plain = key(GraphSVC(WL()))
    assert key(GraphSVC(WL(n_jobs=2), n_jobs=2)) == plain
    assert key(make_pipeline(DropAttributes(), GraphSVC(WL(n_jobs=2)))) == key(
        make_pipeline(DropAttributes(), GraphSVC(WL()))
    )
    others = [GraphSVC(WL(n_iterations=9)), GraphSVC(WL(), C=3), GraphSVC(WL(normalize=False)), GraphSVC(WL(), cv=7)]
    assert len({plain, *map(key, others)}) == 5


def test_key_depends_on_the_order_of_values_but_not_on_their_spelling():
    def key(choice, penalties=(1.0, 10.0)):
        study = Study("s", ("A",), (StudyEntry("e", (choice,)),), Protocol(C=penalties))
        return entry_key(study, study.kernels[0], "A")

    plain = key(KernelSpec("csm", {"gamma": 1, "weights": (1, 2)}, {"max_size": (2, 3), "threshold": (0, 1)}))
    assert plain == key(
        KernelSpec("csm", {"weights": [1, 2.0], "gamma": 1.0}, {"max_size": (2, 3), "threshold": (0.0, 1)})
    )
    assert plain == key(
        KernelSpec("csm", {"gamma": 1, "weights": (1, 2)}, {"max_size": (2, 3), "threshold": (0, 1)}), (1, 10)
    )
    assert plain != key(KernelSpec("csm", {"gamma": 1, "weights": (1, 2)}, {"max_size": (3, 2), "threshold": (0, 1)}))
    assert plain != key(KernelSpec("csm", {"gamma": 1, "weights": (1, 2)}, {"threshold": (0, 1), "max_size": (2, 3)}))


def test_key_matches_the_recorded_value():
    study = Study("s", ("A",), (StudyEntry("e", (KernelSpec("oddcl", {"counting": "visits"}, {"lam": (0.5, 1)}),)),))
    assert entry_key(study, study.kernels[0], "A") == "57eff0b9ac0560e5"


def test_class_weight_is_validated_and_changes_the_key(write):
    text = 'datasets = ["A"]\nkernels = [{ name = "k", kernel = "wl" }]\n[protocol]\n'
    plain, weighted = read_study(write(text)), read_study(write(text + 'class_weight = "balanced"\n'))
    assert (plain.protocol.class_weight, weighted.protocol.class_weight) == ("", "balanced")
    keys = {entry_key(study, study.kernels[0], study.datasets[0]) for study in (plain, weighted)}
    assert len(keys) == 2
    with pytest.raises(StudyError, match=r"protocol.class_weight: unknown class weight 'equal'"):
        read_study(write(text + 'class_weight = "equal"\n'))
    with pytest.raises(StudyError, match=r"protocol.class_weight: only classes can be weighted"):
        read_study(write(text + 'task = "regression"\nclass_weight = "balanced"\n'))


def test_metric_must_belong_to_the_task(write):
    text = 'datasets = ["A"]\nkernels = [{ name = "k", kernel = "wl" }]\n[protocol]\n'
    assert read_study(write(text + 'metric = "ROC AUC"\n')).protocol.metric == "ROC AUC"
    with pytest.raises(StudyError, match=r"protocol.metric: unknown classification metric 'RMSE'"):
        read_study(write(text + 'metric = "RMSE"\n'))
    with pytest.raises(StudyError, match=r"unknown classification metric 'auc'"):
        read_study(write(text + 'metric = "auc"\n'))


def test_kernel_of_another_package_is_found_by_name(write, monkeypatch):
    """The entry point is found before anything has loaded it; the kernel is built, and its parameters are checked."""
    from treegram import WL
    from treegram.kernels import registry

    class Mine(WL):
        name = "mine"

    def entry_points(name, **_):
        return [SimpleNamespace(value="mine:Mine", load=lambda: Mine)] if name == "mine" else []

    monkeypatch.setattr(registry, "entry_points", entry_points)
    text = 'datasets = ["A"]\nkernels = [{ name = "k", kernel = "mine", param_grid = { n_iterations = [0, 1] } }]\n'
    try:
        study = read_study(write(text))
        assert type(build_kernel(study.kernels[0].choices[0])) is Mine
        with pytest.raises(StudyError, match="the kernel 'mine' has no parameter 'depth'"):
            read_study(write(text.replace("n_iterations", "depth")))
        with pytest.raises(StudyError, match="unknown kernel 'mime'; did you mean mine"):
            read_study(write(text.replace('"mine"', '"mime"')))
    finally:
        registry.KERNELS.pop("mine", None)
