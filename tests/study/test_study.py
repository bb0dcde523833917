"""Study files: every mistake is an error with its line, and identity covers what determines a result."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram import StudyError, TreegramError
from treegram.study.protocol import Candidate, Comparison, Pair, Protocol, Published, Study, StudyEntry, entry_key
from treegram.study.study_file import read_study, shipped_studies
from treegram.study.toml import MAX_BYTES

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
grid = { depth = [0, 1], lam = [
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
grid = { n_iterations = [0, 2] }
timed = { n_iterations = 2 }

[[kernels]]
name = "third"
[[kernels.choices]]
kernel = "wl"
grid.n_iterations = [1]
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


def test_all_of_a_file_is_read(write):
    study = read_study(write(BASE))
    parts = (Candidate("wlcl"), Candidate("wlcl", {"gamma": 0.5}, attributes=("standard",)))
    assert study == Study(
        name="mine",
        title="A small study",
        about='Two lines with a [bracket], "quotes" and a # sign,\nkernel = "not a key".',
        reference="None",
        datasets=("MUTAG", "mine"),
        dataset_notes={"MUTAG": "small"},
        protocol=Protocol(2, 5, 3, 7, (1.0, 10.0), "all"),
        entries=(
            StudyEntry(
                "first",
                (
                    Candidate(
                        "oddcl", {"counting": "visits"}, {"depth": (0, 1), "lam": (0.5, 1)}, ("robust", "neighbors")
                    ),
                ),
                timed={"depth": 1},
                note="A note.",
                published=Published({"MUTAG": 81.0, "mine": "out of time"}, {"MUTAG": 1.5}, {"MUTAG": 60.0}),
            ),
            StudyEntry(
                "second", (Candidate("sum", grid={"n_iterations": (0, 2)}, summands=parts),), timed={"n_iterations": 2}
            ),
            StudyEntry(
                "third",
                (
                    Candidate("wl", grid={"n_iterations": (1,)}),
                    Candidate("oddcl-approx", {"random_state": 3, "method": "rff"}),
                ),
            ),
        ),
        comparisons=(Comparison("all", ("first", "second", "third"), ("MUTAG", "mine")),),
        pairs=(Pair("first", ("third",), ("MUTAG",)),),
    )


def test_an_entry_may_have_data_sets_of_its_own(write):
    text = 'title = "t"\ndatasets = ["A", "B"]\n[[kernels]]\nname = "k"\nkernel = "csm"\ndatasets = ["{}"]\n'
    (entry,) = read_study(write(text.format("B"))).entries
    assert (entry.is_for("A"), entry.is_for("B")) == (False, True)
    with pytest.raises(StudyError, match=r"mine.toml:6: .*unknown data set 'C'"):
        read_study(write(text.format("C")))


def test_what_is_left_out_has_the_defaults_of_the_paper(write):
    study = read_study(write('title = "t"\ndatasets = ["A"]\n[[kernels]]\nname = "k"\nkernel = "csm"\n'))
    assert study.protocol == Protocol() == read_study("paper").protocol
    assert study == Study("mine", "t", ("A",), (StudyEntry("k", (Candidate("csm"),)),))


# Old text, new text, words of the message. The error must name the line that ends with #!, or, where no comment can stand,
# the first line that begins with the fourth.
WRONG = {
    # keys
    "unknown key": ('note = "A note."', 'nota = "A note." #!', "unknown key 'nota'; did you mean note?"),
    "unknown key, far from all": ("reference =", "zzz = 1 #!\nreference =", "unknown key 'zzz' (known here: title"),
    "unknown key of the protocol": ("seed = 7", "seeds = 7 #!", "unknown key 'seeds'; did you mean seed?"),
    "unknown table": ("[dataset_notes]", "[datasetnotes] #!", "did you mean dataset_notes or datasets?"),
    "unknown key in one line": (
        '    { kernel = "wlcl" },',
        '    { kernel = "wlcl", grid = { gamma = [1] } }, #!',
        "unknown key 'grid'",
    ),
    "unknown published kind": ("seconds = { MUTAG = 60 }", "time = { MUTAG = 60 } #!", "unknown key 'time'"),
    "unknown key of a choice": ("grid.n_iterations = [1]", "grids.n_iterations = [1] #!", "did you mean grid?"),
    "unknown key of a pair": ('baseline = "third"', 'base = "third" #!', "did you mean baseline?"),
    "missing title": ('title = "A small study"', "#!", "the key 'title' is missing"),
    "missing name": ('[[kernels]]\nname = "second"', "[[kernels]] #!", "the key 'name' of 'kernels' is missing"),
    "missing kernels of a comparison": (
        '[[comparisons]]\nname = "all"\nkernels = ["first", "second", "third"]',
        '[[comparisons]] #!\nname = "all"',
        "the key 'kernels' of 'comparisons' is missing",
    ),
    # types
    "title is a number": ('title = "A small study"', "title = 3 #!", "'title' must be a text in quotes, got 3"),
    "title is blank": ('title = "A small study"', 'title = " " #!', "'title' is empty"),
    "datasets is a text": ('datasets = ["MUTAG", "mine"]\n\n', 'datasets = "MUTAG" #!\n', "must be a list"),
    "datasets is empty": ('datasets = ["MUTAG", "mine"]\n\n', "datasets = [] #!\n", "'datasets' is empty"),
    "a data set twice": ('"MUTAG", "mine"]\n\n', '"MUTAG",\n"MUTAG", #!\n]\n', "data set 'MUTAG' is here twice"),
    "a data set is a path": (
        '["MUTAG", "mine"]\n\n',
        '["MUTAG", "data/mine"] #!\n',
        "'data/mine' is not the name of a",
    ),
    "a data set is a folder above": ('["MUTAG", "mine"]\n\n', '["MUTAG", ".."] #!\n', "'..' is not the name of a data"),
    "a data set is a number": ('["MUTAG", "mine"]\n\n', '["MUTAG",\n 5] #!\n', "'datasets' must be a text"),
    "protocol is a list": ("[protocol]", "[[protocol]] #!", "'protocol' must be a table, got a list"),
    "grid is a list": ("grid = { n_iterations = [0, 2] }", "grid = [0, 2] #!", "'grid' must be a table, got a list"),
    "parameters is a text": ('{ counting = "visits" }', '"visits" #!', "'parameters' must be a table, got 'visits'"),
    "a parameter is a date": ("random_state = 3", "random_state = 2020-01-01 #!", "must be a text, a finite number"),
    "a parameter is a table": (
        "random_state = 3",
        "random_state = {a = 1} #!",
        "true, false, or a list of these, got a table",
    ),
    # protocol
    "no repeats": ("repeats = 2", "repeats = 0 #!", "'repeats' must be a whole number of at least 1, got 0"),
    "repeats is true": ("repeats = 2", "repeats = true #!", "a whole number of at least 1, got true"),
    "one outer fold": ("outer_folds = 5", "outer_folds = 1 #!", "'outer_folds' must be a whole number of at least 2"),
    "two and a half folds": ("inner_folds = 3", "inner_folds = 2.5 #!", "at least 2, got 2.5"),
    "a negative seed": ("seed = 7", "seed = -1 #!", "at least 0 and at most 4294967295, got -1"),
    "a seed beyond 64 bits": ("seed = 7", f"seed = {10**30} #!", "got a number of more than 64 bits"),
    "C is zero": ("C = [1, 10.0]", "C = [1, 0] #!", "'C' must be a finite number above 0, got 0"),
    "C is infinite": ("C = [1, 10.0]", "C = [1,\n  inf] #!", "'C' must be a finite number above 0, got inf"),
    "C is beyond 64 bits": ("C = [1, 10.0]", f"C = [{10**400}] #!", "got a number of more than 64 bits"),
    "C is empty": ("C = [1, 10.0]", "C = [] #!", "'C' is empty"),
    "C twice": ("C = [1, 10.0]", "C = [10, 10.0] #!", "the value 10.0 is here twice"),
    "fitted on the wrong thing": ('"all"\n\n', '"train" #!\n', "unknown choice 'train'; did you mean training?"),
    # kernels
    "unknown kernel": ('"oddcl" # the tree kernel', '"odcl" #!', "unknown kernel 'odcl'; did you mean oddcl?"),
    "unknown kernel in a sum": ('{ kernel = "wlcl" },', '{ kernel = "wcl" }, #!', "unknown kernel 'wcl'"),
    "kernel is a sum": ('"oddcl" # the tree kernel', '"sum" #!', "unknown kernel 'sum'"),
    "unknown parameter": (
        '{ counting = "visits" }',
        "{ countings = 1 } #!",
        "'oddcl' has no parameter 'countings'; did you mean counting?",
    ),
    "wrong value": (
        '{ counting = "visits" }',
        '{ counting = "visit" } #!',
        "unknown counting 'visit'; did you mean visits? (there are algorithm, capped, visits)",
    ),
    "threads": ('{ counting = "visits" }', "{ n_jobs = 2 } #!", "'n_jobs' changes no result"),
    "names twice": ('name = "second"', 'name = "first" #!', "the name 'first' is here twice"),
    "name of two lines": ('name = "second"', 'name = "a\\nb" #!', "a name is one line"),
    "name with blanks": ('name = "second"', 'name = "second " #!', "without blanks at its ends"),
    "no kernel at all": (
        '[[kernels]]\nname = "third"\n[[kernels.choices]]',
        '[[kernels]] #!\nname = "third"\n[[kernels]]\nname = "x"',
        "one of 'kernel', 'sum', 'choices' and 'baseline'",
    ),
    "kernel and sum": (
        '[[kernels]]\nname = "second"',
        '[[kernels]] #!\nname = "second"\nkernel = "wl"',
        "and only one",
    ),
    "kernel and choices": ('name = "third"', 'name = "third"\nkernel = "wl" #!', "'kernel' does not go with 'choices'"),
    "grid and choices": ('name = "third"', 'name = "third"\ngrid = {} #!', "'grid' does not go with 'choices'"),
    "parameters and sum": (
        'name = "second"',
        'name = "second"\nparameters = {} #!',
        "'parameters' does not go with 'sum'",
    ),
    "a sum of one": ('sum = [\n    { kernel = "wlcl" },', "sum = [ #!", "a sum has at least two parts"),
    # grids
    "plural in a grid": (
        "grid = { n_iterations = [0, 2] }",
        "grid = { n_iteration = [0, 2] } #!",
        "'wlcl' has no parameter 'n_iteration'; did you mean n_iterations?",
    ),
    "an empty grid list": ("grid.n_iterations = [1]", "grid.n_iterations = [] #!", "'n_iterations' is empty"),
    "a grid list is a number": (
        "grid.n_iterations = [1]",
        "grid.n_iterations = 1 #!",
        "'n_iterations' must be a list, got 1",
    ),
    "a wrong value in a grid": (
        "    1,\n]",
        "    -1, #!\n]",
        "lam of ODDCL must be a number greater than 0; got -1",
    ),
    "a value that is not finite": ("    1,\n]", "    nan, #!\n]", "'lam' must be a text, a finite number"),
    "a truth value for a number": (
        "depth = [0, 1]",
        "depth = [0, true]",
        "'depth' of the kernel 'oddcl' cannot be true or false",
        "grid = { depth",
    ),
    "a value twice": ("    1,\n]", "    0.5, #!\n]", "the value 0.5 is here twice"),
    "fixed and listed": (
        "grid.n_iterations = [1]",
        "parameters.n_iterations = 1\ngrid.n_iterations = [1] #!",
        "'n_iterations' is both fixed",
    ),
    "fixed in a part, listed in the sum": (
        "grid = { n_iterations = [0, 2] }",
        "grid = { gamma = [1] } #!",
        "'gamma' is both fixed",
    ),
    "unknown timed": ("timed = { depth = 1 }", "timed = { deep = 1 } #!", "has no parameter 'deep'"),
    "wrong timed": (
        "timed = { n_iterations = 2 }",
        "timed = { n_iterations = 2.0 } #!",
        "n_iterations of WLCL",
    ),
    # attributes
    "unknown transformation": (
        '"standard"',
        '"standart"',
        "unknown transformation of attributes 'standart'; did you mean standard?",
        '    { kernel = "wlcl", parameters',
    ),
    "no transformation": ('["robust", "neighbors"]', "[] #!", "'attributes' is empty"),
    "transformation is a text": ('["robust", "neighbors"]', '"robust" #!', "'attributes' must be a list"),
    # published
    "published for an unknown data set": (
        "seconds = { MUTAG",
        "seconds = { MUTAC",
        "unknown data set 'MUTAC'; did you mean MUTAG?",
        "seconds",
    ),
    "more than all": ("MUTAG = 81,", "MUTAG = 101,", "of at least 0 and of at most 100, got 101", "accuracy"),
    "accuracy is true": ("MUTAG = 81,", "MUTAG = true,", "must be a finite number", "accuracy"),
    "negative deviation": ("MUTAG = 1.5", "MUTAG = -1.5", "of at least 0, got -1.5", "deviation"),
    "deviation of nothing": ("MUTAG = 1.5", '"mine" = 1.5', "a deviation for 'mine', but no accuracy", "deviation"),
    "no time at all": ("MUTAG = 60", "MUTAG = 0.0", "above 0, got 0.0", "seconds"),
    "a note on an unknown data set": (
        'MUTAG = "small"',
        'MUTAGEN = "small" #!',
        "unknown data set 'MUTAGEN'; did you mean MUTAG?",
    ),
    # comparisons and pairs
    "comparison of an unknown kernel": (
        '["first", "second", "third"]',
        '["first", "second",\n"tird"] #!',
        "unknown kernel 'tird'; did you mean third?",
    ),
    "comparison of two": ('["first", "second", "third"]', '["first", "second"] #!', "at least three kernels"),
    "comparison on one": (
        'datasets = ["MUTAG", "mine"]\n\n[[pairs]]',
        'datasets = ["MUTAG"] #!\n[[pairs]]',
        "at least two data sets",
    ),
    "comparison on another data set": (
        'datasets = ["MUTAG", "mine"]\n\n[[pairs]]',
        'datasets = ["MUTAG", "x"] #!\n[[pairs]]',
        "unknown data set 'x'",
    ),
    "comparisons of one name": (
        "[[pairs]]",
        '[[comparisons]]\nname = "all" #!\nkernels = ["third", "first", "second"]\ndatasets = ["MUTAG", "mine"]\n[[pairs]]',
        "the name 'all' is here twice",
    ),
    "pair with an unknown kernel": (
        'baseline = "third"',
        'baseline = "fourth" #!',
        "unknown kernel 'fourth'",
    ),
    "a choice is no rival of itself": (
        'baseline = "third"',
        'baseline = ["third", "first"] #!',
        "'first' is compared with",
    ),
    "an unknown rival": (
        'baseline = "third"',
        'baseline = ["second", "thrid"] #!',
        "unknown kernel 'thrid'; did you mean",
    ),
    # baselines, draws and repeats
    "unknown baseline": (
        "[[comparisons]]",
        '[[kernels]]\nname = "x"\nbaseline = "gni" #!\n[[comparisons]]',
        "unknown baseline 'gni'; did you mean gin?",
    ),
    "baseline and kernel": (
        "[[comparisons]]",
        '[[kernels]]\nname = "x"\nbaseline = "gin"\nkernel = "wl" #!\n[[comparisons]]',
        "'kernel' does not go with 'baseline', which chooses by itself",
    ),
    "redraw what is drawn": (
        "[[comparisons]]",
        '[[kernels]]\nname = "x"\nkernel = "p2k"\nparameters = { random_state = 1 }\nredraw = true #!\n[[comparisons]]',
        "'random_state' is given, and 'redraw' sets it",
    ),
    "redraw what draws nothing": (
        'note = "A note."',
        "redraw = true #!",
        "the kernel 'oddcl' has no parameter 'random_state'",
    ),
    "redraw is false": ('note = "A note."', "redraw = false #!", "'redraw' can only be true, got False"),
    "repeats on another data set": (
        "seed = 7",
        "seed = 7\nrepeats_on = { MUTAGG = 1 } #!",
        "unknown data set 'MUTAGG'",
    ),
    "no repeats on a data set": ("seed = 7", "seed = 7\nrepeats_on = { MUTAG = 0 } #!", "at least 1, got 0"),
    "no repeats of an entry": ('note = "A note."', "repeats = 0 #!", "'repeats' must be a whole number of at least 1"),
    "pair with itself": ('baseline = "third"', 'baseline = "first" #!', "'first' is compared with itself"),
    "pair on nothing": ('datasets = ["MUTAG"]', "datasets = [] #!", "'datasets' is empty"),
    # syntax
    "a missing quote": ('reference = "None"', 'reference = "None #!', "this is not TOML"),
    "a key twice": ("seed = 7", "seed = 7\nseed = 8 #!", "this is not TOML: Cannot overwrite a value"),
    "a key of many parts": ("seed = 7", f"{'a.' * 120}a = 7 #!", "a key of more than 100 parts"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_an_error_with_its_line(write, case):
    old, new, words, *start = WRONG[case]
    assert BASE.count(old) >= 1
    changed = BASE.replace(old, new, 1)
    marked = [
        number
        for number, line in enumerate(changed.splitlines(), start=1)
        if (line.startswith(start[0]) if start else line.endswith("#!"))
    ]
    path = write(changed)
    with pytest.raises(StudyError) as caught:
        read_study(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{marked[0]}: ")
    assert words in message
    assert isinstance(caught.value, TreegramError)
    assert isinstance(caught.value, ValueError)


def test_baselines_draws_rivals_and_fewer_repeats_are_read(write):
    more = """[[kernels]]
name = "net"
baseline = "gin"
repeats = 1
[[kernels]]
name = "drawn"
kernel = "p2k"
redraw = true
[[pairs]]
kernel = "first"
baseline = ["second", "net"]
datasets = ["mine"]
"""
    study = read_study(write(BASE.replace("seed = 7", "seed = 7\nrepeats_on = { mine = 1 }") + more))
    net, drawn = study.entries[3:]
    assert net == StudyEntry("net", (), baseline="gin", repeats=1)
    assert drawn == StudyEntry("drawn", (Candidate("p2k"),), redraw=True)
    assert study.pairs[1] == Pair("first", ("second", "net"), ("mine",))
    planned = [[study.repeats_of(entry, name) for name in study.datasets] for entry in study.entries[2:]]
    assert planned == [[2, 1], [1, 1], [2, 1]]
    assert study.digest == hashlib.sha256(study.text.encode()).hexdigest()


def test_baselines_predict_no_numbers(write):
    content = BASE.replace("C = [1, 10.0]", 'target = "numbers"').replace("MUTAG = 81, ", "").replace("MUTAG = 1.5", "")
    content = content[: content.index("[kernels.published]")] + content[content.index('[[kernels]]\nname = "second"') :]
    with pytest.raises(StudyError, match="baselines predict classes, and do not go with target"):
        read_study(write(content + '[[kernels]]\nname = "x"\nbaseline = "gin"\n'))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", ":1: the key 'title' is missing", id="empty"),
        pytest.param(
            b"title = 'a'\ndatasets = ['b']\nkernels = []", ":3: the list 'kernels' is empty", id="no kernels"
        ),
        pytest.param(b"title = 'a'\ndatasets = ['b']\n[kernels]", ":3: 'kernels' must be a list", id="one kernel"),
        pytest.param(b"title = 'a'\nabout = '\xe9'", ":2: this is not UTF-8", id="latin-1"),
        pytest.param(BASE.encode("utf-16"), ":1: this is not UTF-8", id="utf-16"),
        pytest.param(b"title = 'a'\nx = [1,\n\n", ":2: this is not TOML: Invalid value (at the end", id="cut off"),
        pytest.param(b"x = " + b"[" * 50_000, ": brackets or braces are nested too deeply", id="deep lists"),
        pytest.param(b"x = " + b"{a = " * 40_000, ": brackets or braces are nested too deeply", id="deep tables"),
        pytest.param(b"x = " + b"9" * 10_000, ": this is not TOML: Exceeds the limit", id="a huge number"),
        pytest.param(b"#" * (MAX_BYTES + 1), f": the file has more than {MAX_BYTES} bytes", id="large"),
        pytest.param(b"\0" * 100, ":1: this is not TOML", id="zeros"),
    ],
)
def test_files_that_are_no_study(write, content, words):
    path = write(content)
    with pytest.raises(StudyError) as caught:
        read_study(path)
    assert str(caught.value).startswith(f"{path}{words}")


def test_line_ends_and_a_mark_of_the_encoding_do_not_matter(write):
    expected = read_study(write(BASE))
    assert read_study(write(b"\xef\xbb\xbf" + BASE.replace("\n", "\r\n").encode())) == expected
    with pytest.raises(StudyError, match=r"mine\.toml:16: 'seed'"):
        read_study(write(BASE.replace("\n", "\r\n").replace("seed = 7", "seed = -7")))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file on this system")
def test_an_endless_file_is_not_read_to_its_end():
    with pytest.raises(StudyError, match="the file has more than"):
        read_study("/dev/zero")


def test_names_and_paths(write, tmp_path, monkeypatch):
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


# -------------------------------------------------------------------- hostile and random text


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_a_study_or_a_study_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=r"bytes\.toml:"):
        read_study(path)


@given(st.integers(0, len(BASE) - 1), st.integers(0, 12), st.text("[]{}\"'=,.#\n\\ a1é", max_size=6))
@settings(max_examples=120, deadline=None)
def test_a_damaged_study_is_a_study_or_a_study_error(tmp_path_factory, start, length, inserted):
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_text(BASE[:start] + inserted + BASE[start + length :], encoding="utf-8")
    try:
        study = read_study(path)
    except StudyError as error:
        line = int(str(error).removeprefix(f"{path}:").partition(":")[0])
        assert 1 <= line <= len(path.read_text(encoding="utf-8").splitlines()) + 1
    else:
        assert len(study.entries) >= 1


# -------------------------------------------------------------------- identity

values = st.sampled_from([0, 1, 1.0, 0.5, "a", True, (1, 2.0)])
names = st.sampled_from(["depth", "lam", "gamma"])
candidates = st.builds(
    Candidate,
    kernel=st.sampled_from(["oddcl", "wl"]),
    parameters=st.dictionaries(names, values, max_size=2),
    grid=st.dictionaries(names, st.lists(values, min_size=1, max_size=2).map(tuple), max_size=2),
    attributes=st.lists(st.sampled_from(["robust", "none"]), max_size=2).map(tuple),
)
candidates |= st.builds(Candidate, st.just("sum"), summands=st.tuples(candidates, candidates))
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
    candidates=st.lists(candidates, min_size=1, max_size=2).map(tuple),
    note=st.text(max_size=3),
)
studies = st.builds(
    Study, st.text(), st.text(), st.just(("A", "B")), st.lists(rows, min_size=1, max_size=2).map(tuple), protocols
)


def exactly(value):
    """The value with its types told apart where Python's equality does not: True is not 1, an order is not another."""
    if isinstance(value, Candidate):
        grid = tuple((name, exactly(listed)) for name, listed in value.grid.items())
        fixed = frozenset((name, exactly(one)) for name, one in value.parameters.items())
        return value.kernel, fixed, grid, value.attributes, tuple(map(exactly, value.summands))
    if isinstance(value, tuple):
        return tuple(map(exactly, value))
    return isinstance(value, bool), value


def all_that_counts(study, entry, dataset):
    return dataset, exactly(entry.candidates), replace(study.protocol, repeats=1)


@given(studies, studies, st.sampled_from("AB"), st.sampled_from("AB"))
@settings(max_examples=60, deadline=None)
def test_keys_are_equal_where_all_that_counts_is(one, two, first, second):
    whole = [all_that_counts(study, study.entries[0], name) for study, name in ((one, first), (two, second))]
    keys = [entry_key(study, study.entries[0], name) for study, name in ((one, first), (two, second))]
    assert (keys[0] == keys[1]) == (whole[0] == whole[1])


@given(studies, rows, st.integers(1, 100))
@settings(max_examples=60, deadline=None)
def test_additions_change_no_key(study, new, repeats):
    entry = study.entries[0]
    larger = replace(
        study,
        datasets=(*study.datasets, "C"),
        entries=(new, *study.entries),
        protocol=replace(study.protocol, repeats=repeats),
        title="another",
    )
    renamed = replace(entry, name="another", note="new", timed={"depth": 1}, published=Published({"A": 1.0}))
    assert entry_key(larger, renamed, "A") == entry_key(study, entry, "A")
    assert entry_key(study, entry, "A") != entry_key(study, entry, "B")


@given(studies, st.data())
@settings(max_examples=60, deadline=None)
def test_any_change_of_what_counts_changes_the_key(study, data):
    entry = study.entries[0]
    protocol, choice = study.protocol, entry.candidates[0]
    changed = data.draw(
        st.sampled_from(
            [
                (replace(study, protocol=replace(protocol, seed=9)), entry),
                (replace(study, protocol=replace(protocol, outer_folds=9)), entry),
                (replace(study, protocol=replace(protocol, inner_folds=9)), entry),
                (replace(study, protocol=replace(protocol, C=(*protocol.C, 7.0))), entry),
                (replace(study, protocol=replace(protocol, fitted_on="another")), entry),
                (study, replace(entry, candidates=(*entry.candidates, choice))),
                (study, replace(entry, candidates=(replace(choice, parameters={"other": 1}),))),
                (study, replace(entry, candidates=(replace(choice, grid={**choice.grid, "other": (1,)}),))),
                (study, replace(entry, candidates=(replace(choice, attributes=(*choice.attributes, "standard")),))),
                (study, replace(entry, candidates=(replace(choice, summands=(*choice.summands, Candidate("sp"))),))),
            ]
        )
    )
    assert entry_key(*changed, "A") != entry_key(study, entry, "A")


def test_the_key_does_not_depend_on_how_a_value_is_written_but_on_the_order_of_preference():
    def key(choice, penalties=(1.0, 10.0)):
        study = Study("s", "t", ("A",), (StudyEntry("e", (choice,)),), Protocol(C=penalties))
        return entry_key(study, study.entries[0], "A")

    plain = key(Candidate("csm", {"gamma": 1, "weights": (1, 2)}, {"max_size": (2, 3), "threshold": (0, 1)}))
    assert plain == key(
        Candidate("csm", {"weights": [1, 2.0], "gamma": 1.0}, {"max_size": (2, 3), "threshold": (0.0, 1)})
    )
    assert plain == key(
        Candidate("csm", {"gamma": 1, "weights": (1, 2)}, {"max_size": (2, 3), "threshold": (0, 1)}), (1, 10)
    )
    assert plain != key(Candidate("csm", {"gamma": 1, "weights": (1, 2)}, {"max_size": (3, 2), "threshold": (0, 1)}))
    assert plain != key(Candidate("csm", {"gamma": 1, "weights": (1, 2)}, {"threshold": (0, 1), "max_size": (2, 3)}))


def test_the_key_is_the_same_on_every_machine():
    study = Study(
        "s", "t", ("A",), (StudyEntry("e", (Candidate("oddcl", {"counting": "visits"}, {"lam": (0.5, 1)}),)),)
    )
    assert entry_key(study, study.entries[0], "A") == "3f04f590638c39af"
