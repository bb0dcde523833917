"""Tests of model files: models round-trip, and malicious files do no harm."""

import hashlib
import inspect
import json
import os
import pickle
import random
import runpy
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC

import treegram
from test_common import KERNELS, variants
from treegram import (
    GIK,
    ODDCL,
    P2K,
    WL,
    WLOA,
    CentroidDistance,
    DropAttributes,
    FeatureMap,
    GraphClassifier,
    GraphGP,
    GraphRegressor,
    GraphRidge,
    Graphs,
    GraphSVC,
    KernelSum,
    NeighborMeans,
    Nystroem,
    ODDCLApprox,
    ScaleAttributes,
    SelectLabels,
    load_model,
    save_model,
)
from treegram.exceptions import ModelFileError
from treegram.models.saving import _CLASSES, FORMAT, MAGIC
from treegram.models.saving.states import _RULES
from zoo import COLLECTIONS, LAWS_HOLD_ON

N_GRAPHS = 24


def make_graphs(seed=0, n_graphs=N_GRAPHS):
    rng = np.random.default_rng(seed)
    sizes = [3 + i % 4 for i in range(n_graphs)]
    return Graphs.from_edges(
        [[(j, j + 1) for j in range(n - 1)] + [(0, n - 1)] * (i % 2) for i, n in enumerate(sizes)],
        n_nodes=sizes,
        labels=[[["C", "N", "O"][(i + j * (i % 3)) % 3] for j in range(n)] for i, n in enumerate(sizes)],
        attributes=[rng.normal(size=(n, 2)) for n in sizes],
        targets=np.arange(n_graphs),
    )


@pytest.fixture
def graphs():
    return make_graphs()


@pytest.fixture
def new():
    return make_graphs(1, 9)


@pytest.fixture
def y():
    return np.arange(N_GRAPHS) % 2


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.tgm"


def saved_and_loaded(model, path):
    save_model(model, path)
    return load_model(path)


def assert_same(left, right):
    if hasattr(left, "toarray"):
        left, right = left.toarray(), right.toarray()
    np.testing.assert_array_equal(left, right)


# -------------------------------------------------------------------- round trips


@pytest.mark.sampled
@pytest.mark.parametrize(
    "kernel", [v for kernel in KERNELS for v in variants(kernel)[:2]], ids=lambda k: " ".join(repr(k).split())
)
def test_every_kernel_round_trips_bit_by_bit(kernel, path):
    graphs = LAWS_HOLD_ON["mixed"].pack()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fit in (kernel.fit, kernel.fit_transform):  # normalizations differ in the last bits
            fit(graphs[:7])
            loaded = saved_and_loaded(kernel, path)
            assert type(loaded) is type(kernel)
            assert repr(loaded) == repr(kernel)
            assert loaded.graphs_ == kernel.graphs_
            assert_same(loaded.transform(graphs), kernel.transform(graphs))


@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_kind_of_graphs_round_trips(name, path):
    graphs = COLLECTIONS[name].pack()
    kernel = WL().fit(graphs)
    loaded = saved_and_loaded(kernel, path)
    assert loaded.graphs_ == graphs
    assert loaded.graphs_.label_values == graphs.label_values
    assert_same(loaded.transform(graphs), kernel.transform(graphs))


def test_targets_are_not_stored(graphs, path):
    assert saved_and_loaded(WL().fit(graphs), path).graphs_.targets is None


@pytest.mark.sampled
@pytest.mark.parametrize(
    "kernel",
    [
        WL(),
        make_pipeline(ScaleAttributes("robust"), NeighborMeans(), ODDCL(depth=1)),
        KernelSum([WL(), make_pipeline(ScaleAttributes(), ODDCL(depth=1))]),
        [WL(), "sp"],
        "wl",
        P2K(n_iterations=1),
    ],
    ids=["WL", "pipeline", "sum", "list", "name", "P2K"],
)
@pytest.mark.parametrize("classes", [(0, 1), ("a", "bc", "d"), (False, True)], ids=["int", "str", "bool"])
def test_classifiers_round_trip_bit_by_bit(kernel, classes, graphs, new, path):
    y = np.array(classes)[np.arange(N_GRAPHS) % len(classes)]
    model = GraphSVC(kernel, C=[1, 10], cv=3, class_weight=dict.fromkeys(classes, 2.0)).fit(graphs, y)
    loaded = saved_and_loaded(model, path)
    assert repr(loaded) == repr(model)
    assert repr(loaded.best_params_) == repr(model.best_params_)
    assert loaded.classes_.dtype == model.classes_.dtype
    for method in ("predict", "decision_function"):
        assert_same(getattr(loaded, method)(new), getattr(model, method)(new))
    assert repr(loaded.fit(graphs, y).best_params_) == repr(model.best_params_)


def test_object_classes_round_trip(graphs, path):
    model = GraphSVC(WL(), C=1, cv=2).fit(graphs, np.array(["no", "yes"] * 12, dtype=object))
    loaded = saved_and_loaded(model, path)
    assert loaded.classes_.tolist() == ["no", "yes"]
    assert loaded.predict(graphs).tolist() == model.predict(graphs).tolist()


@pytest.mark.parametrize("kernel", [WL(), make_pipeline(ScaleAttributes(), ODDCL(depth=1))], ids=["kernel", "pipeline"])
def test_regressors_round_trip_bit_by_bit(kernel, graphs, new, path):
    numbers = np.arange(N_GRAPHS) / 7
    ridge = GraphRidge(kernel, cv=3).fit(graphs, numbers)
    assert_same(saved_and_loaded(ridge, path).predict(new), ridge.predict(new))
    process = GraphGP(kernel).fit(graphs, numbers)
    loaded = saved_and_loaded(process, path)
    for mine, theirs in zip(loaded.predict(new, return_std=True), process.predict(new, return_std=True), strict=True):
        assert_same(mine, theirs)


@pytest.mark.filterwarnings("ignore:Nothing was learned")
@pytest.mark.parametrize(
    "model",
    [
        GraphGP(make_pipeline(ScaleAttributes(), ODDCL(depth=1)), param_grid={}),
        GraphRegressor([WL(1)]),
        GraphRidge(WL(1), param_grid={}),
    ],
    ids=["process", "weighted", "ridge"],
)
def test_multi_target_regressors_round_trip_bit_by_bit(model, graphs, new, path):
    numbers = np.column_stack([np.arange(N_GRAPHS) / 7, np.where(np.arange(N_GRAPHS) % 3, 1.0, np.nan)])
    model.fit(graphs, numbers)
    assert_same(saved_and_loaded(model, path).predict(new), model.predict(new))
    content, arrays = parts(path.read_bytes())
    whole = learned(content)["estimators_"][1]
    several = {"estimator": [*whole["estimator"][:2], {"estimators_": [whole]}]}
    for wrong in ({"estimator": [*whole["estimator"][:2], None]}, {"estimator": ["WL", {}, None]}, several):
        learned(content)["estimators_"][1] = wrong
        refused(path, joined(content, arrays), r"estimators_\[1\] must be a fitted regressor of one target")
    learned(content)["estimators_"] = []
    refused(path, joined(content, arrays), "estimators_ must not be empty")
    learned(content)["estimators_"], learned(content)["intercept_"] = [whole], 0.0
    refused(path, joined(content, arrays), "has no attribute 'intercept_'")


@pytest.mark.parametrize(
    "transformer",
    [
        ScaleAttributes("robust"),
        ScaleAttributes("whiten"),
        CentroidDistance(),
        NeighborMeans(2.0),
        DropAttributes(),
        SelectLabels(),
    ],
)
def test_transformers_round_trip(transformer, graphs, new, path):
    transformer.fit(graphs)
    assert saved_and_loaded(transformer, path).transform(new) == transformer.transform(new)


@pytest.mark.parametrize(
    "features",
    [
        FeatureMap(),
        FeatureMap(P2K(mode="hash"), sparse_output=False),
        FeatureMap(ODDCL()),
        FeatureMap(ODDCL(), n_features=None),
        FeatureMap(ODDCL(gamma="scale")),
        FeatureMap(ODDCLApprox(method="rff", n_components=8), n_features=64),
        FeatureMap(ODDCL(node_kernel="laplacian"), n_components=8, random_state=None),
        Nystroem(WL(), 5),
        Nystroem(make_pipeline(ScaleAttributes(), ODDCL(depth=1)), n_components=5),
    ],
    ids=lambda features: " ".join(repr(features).split()),
)
def test_features_round_trip_bit_by_bit(features, graphs, new, path):
    features.fit(graphs)
    loaded = saved_and_loaded(features, path)
    assert_same(loaded.transform(new), features.transform(new))
    assert loaded.n_features_out_ == features.n_features_out_


@pytest.mark.parametrize("kernel", [ODDCL(gamma="scale"), P2K()], ids=lambda kernel: type(kernel).__name__)
def test_nystroem_of_kernels_that_learn_from_data_raises(kernel, graphs, path):
    landmarks = Nystroem(kernel, 3).fit(graphs)
    with pytest.raises(ModelFileError, match=f"Nystroem cannot be saved with {type(kernel).__name__} as it is"):
        save_model(landmarks, path)
    assert not path.exists()


def test_features_without_attributes_round_trip(path):
    graphs = LAWS_HOLD_ON["no_attributes"].pack()
    features = FeatureMap(ODDCL(), n_features=None).fit(graphs)
    assert_same(saved_and_loaded(features, path).transform(graphs), features.transform(graphs))


@pytest.mark.parametrize(
    "final",
    [
        LogisticRegression(C=10),
        LinearSVC(),
        Ridge(),
        SGDClassifier("log_loss", random_state=0),
        SGDRegressor(random_state=0),
    ],
    ids=lambda final: type(final).__name__,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_pipelines_ending_in_a_linear_model_round_trip(final, n_classes, graphs, new, path):
    model = make_pipeline(ScaleAttributes(), FeatureMap(ODDCL(), n_features=64), final).fit(
        graphs, np.arange(N_GRAPHS) % n_classes
    )
    loaded = saved_and_loaded(model, path)
    assert_same(loaded.predict(new), model.predict(new))
    if hasattr(model, "predict_proba"):
        assert_same(loaded.predict_proba(new), model.predict_proba(new))


def test_unfitted_estimators_stay_unfitted(graphs, path):
    loaded = saved_and_loaded(make_pipeline("passthrough", ODDCL(depth=2)), path)
    assert loaded[1].depth == 2
    with pytest.raises(NotFittedError):
        loaded.transform(graphs)
    assert saved_and_loaded(GraphSVC(WL(), param_grid={"n_iterations": [1, 2]}), path).param_grid == {
        "n_iterations": [1, 2]
    }


def test_array_parameters_round_trip(path):
    assert_same(saved_and_loaded(GraphRidge(alpha=np.array([0.5, 2])), path).alpha, [0.5, 2])


def test_header_has_versions_and_the_digest_of_the_data(graphs, path):
    digests = []
    for some in (graphs, graphs[:], graphs[::-1]):
        save_model(WL().fit(some), path)
        content, _ = parts(path.read_bytes())
        digests.append(dict(content["model"]["estimator"][2])["digest"])
    assert content["versions"]["treegram"] == treegram.__version__
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.slow
def test_file_can_be_loaded_in_another_process(graphs, y, path):
    model = GraphSVC(WL(), C=1, cv=2).fit(graphs, y)
    save_model(model, path)
    code = "import sys, treegram; m = treegram.load_model(sys.argv[1]); print(m.decision_function(m.kernel_.graphs_).tolist())"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == model.decision_function(graphs).tolist()


def test_loaded_kernel_can_be_pickled_cloned_and_refitted(graphs, new, path):
    kernel = KernelSum([WL(), ODDCL(depth=1)]).fit(graphs)
    loaded = saved_and_loaded(kernel, path)
    assert vars(loaded).keys() == vars(kernel).keys()
    assert_same(pickle.loads(pickle.dumps(loaded)).transform(new), kernel.transform(new))
    assert not hasattr(clone(loaded), "graphs_")
    assert_same(loaded.fit(new).transform(graphs), KernelSum([WL(), ODDCL(depth=1)]).fit(new).transform(graphs))


def test_skops_files_hold_fitted_models(graphs, new, tmp_path):
    skops = pytest.importorskip("skops.io", reason="skops is not a dependency")
    y = np.arange(N_GRAPHS) % 2
    for model in (
        GraphSVC(WL(1), param_grid={}, C=1, cv=2),
        GraphClassifier([WL(1), make_pipeline(ScaleAttributes(), ODDCL(depth=1))]),
        GraphRegressor([WL(1)]),
        GraphGP(WL(1), param_grid={}),
        GraphRidge(WL(1), param_grid={}),
        make_pipeline(FeatureMap(WL(1)), LogisticRegression()),
    ):
        skops.dump(model.fit(graphs, y), tmp_path / "model.skops")
        types = skops.get_untrusted_types(file=tmp_path / "model.skops")
        assert all(name.startswith(("treegram.", "scipy.sparse.")) for name in types)
        assert_same(skops.load(tmp_path / "model.skops", trusted=types).predict(new), model.predict(new))


# -------------------------------------------------------------------- unsupported content


def linear(X, Y):
    return X @ Y.T


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ODDCL(node_kernel=linear), "node_kernel is <function linear .*cannot contain.* no functions"),
        (WL(n_iterations=1001), "n_iterations of WL is 1001; in a model file it may be 100 at most"),
        (GIK(n_levels=1001), "n_levels of GIK is 1001; in a model file it may be 100 at most"),
        (GraphSVC(cv=KFold(3)), "cv is KFold.*cannot contain"),
        (P2K(random_state=None), "random_state of P2K is None.*integer"),
        (KernelSum([WL(), P2K(random_state=None)]), "random_state of KernelSum is None"),
        (GraphSVC(class_weight={0: float("inf")}), "class_weight is inf"),
        (make_pipeline(WL(), SVC(kernel="precomputed")), "SVC cannot be saved.*use GraphSVC"),
        (LinearRegression(), r"sklearn.*LinearRegression cannot be saved"),
        ("a model", "builtins.str cannot be saved"),
        (WL, "cannot be saved"),
        (Pipeline([("wl", WL())], memory=lambda: None), "memory is <function"),
    ],
)
def test_unsupported_estimators_raise_and_nothing_is_written(model, message, graphs, path):
    if isinstance(model, P2K | KernelSum):
        model.fit(graphs)
    path.write_text("older")
    with pytest.raises(ModelFileError, match=message):
        save_model(model, path)
    assert path.read_text() == "older"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_too_long_header_raises(path):
    labels = [f"{i} {'x' * 50}" for i in range(30_000)]
    kernel = WL(n_iterations=0).fit(Graphs.from_edges([[]], labels=[labels]))
    with pytest.raises(ModelFileError, match=r"make 1\.\d MB of text.*number the labels"):
        save_model(kernel, path)


def test_missing_folder_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        save_model(WL(), tmp_path / "no" / "model.tgm")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "no.tgm")


# -------------------------------------------------------------------- invalid files


def parts(data):
    """Return the header and the array bytes of a file."""
    start = len(MAGIC) + 8
    length = int.from_bytes(data[len(MAGIC) : start], "little")
    return json.loads(data[start : start + length]), data[start + length : -32]


def joined(content, arrays, length=None):
    """Return a file with a matching digest, as an attacker would make it."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    data = MAGIC + (len(text) if length is None else length).to_bytes(8, "little") + text + arrays
    return data + hashlib.sha256(data).digest()


@pytest.fixture
def svc_file(graphs, y, path):
    save_model(GraphSVC(WL(n_iterations=1), param_grid={}, C=1, cv=2).fit(graphs, y), path)
    return path.read_bytes()


def refused(path, data, message):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path} cannot be loaded: ")


class Malicious:
    def __reduce__(self):
        return (os.abort, ())


def test_foreign_and_damaged_files_raise(svc_file, path):
    refused(path, b"", "not a treegram model file")
    refused(path, pickle.dumps(Malicious()), "not a treegram model file")
    refused(path, b"PK\3\4" + bytes(100), "not a treegram model file")
    refused(path, MAGIC, "damaged or incomplete")
    for length in (20, len(svc_file) // 2, len(svc_file) - 1):
        refused(path, svc_file[:length], "damaged or incomplete.*save it again")
    refused(path, svc_file + b"\0", "damaged or incomplete")


def test_non_regular_files_raise(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ModelFileError, match="it is not a regular file"):
            load_model(place)


def test_other_formats_raise_and_say_what_to_do(svc_file, path):
    content, arrays = parts(svc_file)
    for number, advice in ((FORMAT + 1, "Update treegram"), (1, "Fit the model again with this version, and save it")):
        message = f"it has format {number}, but this version of treegram reads format {FORMAT}. {advice}"
        refused(path, joined({**content, "format": number}, arrays), message)
    refused(path, joined({**content, "format": "1"}, arrays), "does not name its format")


# For each format, a digest of the classes, parameters and learned attributes that files name. If this test fails, increase
# FORMAT and add its digest, unless files of this format were never released: then replace the digest.
CONTENTS = {2: "ccdabf73104cc659"}


def test_format_changes_with_the_content_of_files():
    parameters = {
        name: sorted(inspect.signature(estimator).parameters)
        for name, estimator in _CLASSES.items()
        if estimator.__module__.startswith("treegram")
    }
    text = json.dumps([parameters, _RULES], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == CONTENTS[FORMAT]


@pytest.mark.parametrize(
    "before",
    [
        lambda model: model,
        lambda model: make_pipeline(DropAttributes(), model),
        lambda model: LogisticRegression(),
    ],
    ids=["model", "pipeline", "linear"],
)
@pytest.mark.parametrize("last", [WL(), "passthrough"], ids=["kernel", "passthrough"])
def test_only_the_last_step_of_a_pipeline_may_be_a_model(before, last, graphs, y, path):
    model = GraphSVC(WL(1), param_grid={}, C=1, cv=2).fit(graphs, y)
    save_model(Pipeline([("first", before(model)), ("last", last)]), path)
    refused(path, path.read_bytes(), "step 'first' of a pipeline is a .*, which must be the last step")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[]", "does not name its format"),
        (b'{"format": 2}', "it is inconsistent .KeyError: 'arrays'"),
        (b'{"format": NaN}', "the number NaN, which is not finite"),
        (b'{"format": ' + b"[" * 100_000, "it is inconsistent .RecursionError"),
        (b'{"format": ' + b"9" * 5000 + b"}", "it is inconsistent .ValueError"),
        (b'{"format": 2, "arrays": [["<f8", [1000000000000]]]}', "array 0 is longer than the file"),
        (b'{"format": 2, "arrays": [["<f8", [-1]]]}', "an array of the shape .-1. cannot be in a model file"),
        (b'{"format": 2, "arrays": [["<f8", [0, 1001]]]}', "an array of the shape .0, 1001. cannot be in a model file"),
        (b'{"format": 2, "arrays": [["|O", [1]]]}', "an array of dtype '.O' cannot be"),
        (b'{"format": 2, "arrays": [["<U99999", [1]]]}', "an array of dtype '<U99999' cannot be"),
        (b'{"format": 2, "arrays": [["|b1", [8]]]}', "True and False has other values"),
        (b'{"format": 2, "arrays": [["<U1", [2]]]}', "characters that do not exist"),
        (b'{"format": 2, "arrays": [["<f8", [0]]]}', "8 bytes are left over"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"array": 1}}', "'array' is not a kind of value"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"code": "import os"}}', "'code' is not a kind of value"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"objects": [[1]]}}', "an array of objects has entries that are neither texts nor numbers"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": 5}', "a 'int' where an estimator is expected"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"estimator": ["os.system", {}, null]}}', "names 'os.system', which is neither an estimator of treegram nor a kernel"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"estimator": ["WL", {"depth": 1}, null]}}', "no parameter 'depth'"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"estimator": ["WL", {"n_iterations": -1}, null]}}', "n_iterations of WL must"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"estimator": ["WL", {"n_jobs": 99999}, null]}}', "n_jobs of WL is 99999"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"estimator": ["DropAttributes", {}, {}]}}', "learns nothing"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"estimator": ["Pipeline", {"steps": []}, null]}}', "must have steps"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"estimator": ["Pipeline", {"steps": [["a", 1]]}, null]}}', "a int as a step"),
        (b'{"format": 2, "arrays": [["<f8", [1]]], "model": {"estimator": ["Ridge", {"alpha": "x"}, null]}}', "'alpha' parameter of Ridge"),
    ],
)  # fmt: skip
def test_invalid_headers_raise(text, message, path):
    refused(path, joined(text, b"\xff" * 8), message)


def test_header_longer_than_the_file_raises(path):
    refused(path, joined(b"{}", b"", length=2**63), "its text is longer than allowed")
    refused(path, joined(b" " * (3 << 20), b""), "its text is longer than allowed")


def learned(content):
    return content["model"]["estimator"][2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"support_": {"array": 0}}, "."),
        ({"dual_coef_": 1.0}, r"dual_coef_ must be an array of shape \(1, \d+\): finite"),
        ({"intercept_": None}, "intercept_ must be an array"),
        ({"n_support_": [1, 2]}, r"n_support_ must be an array of shape \(2\): whole"),
        ({"classes_": {"objects": ["b", "a"]}}, "classes_ must be sorted and distinct"),
        ({"classes_": {"objects": ["b"]}}, "at least two classes"),
        ({"best_score_": "high"}, "best_score_ must be a value: finite"),
        ({"kernel_": 5}, "kernel_ must be a graph kernel"),
        ({"kernel_": {"estimator": ["WL", {}, None]}}, "kernel_ must be a fitted kernel"),
        ({"best_params_": []}, "best_params_ must be a dict"),
    ],
)
def test_inconsistent_fitted_values_raise(change, message, svc_file, path):
    content, arrays = parts(svc_file)
    learned(content).update(change)
    refused(path, joined(content, arrays), message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search_results_": "all"}, "search_results_ must be a list of records"),
        ({"search_results_": [{"dict": [["candidate", 1]]}]}, "it is inconsistent .KeyError"),
        ({"loo_scores_": []}, "loo_scores_ must be a dict of numbers"),
        ({"loo_scores_": {"dict": [["accuracy", "high"]]}}, "loo_scores_ must be a dict of numbers"),
        ({"weights_": None}, "weights_ must be an array"),
        ({"kernels_": []}, "kernels_ must not be empty"),
    ],
)
def test_inconsistent_values_of_automatic_models_raise(change, message, graphs, y, path):
    save_model(GraphClassifier([WL(1), WLOA(1)]).fit(graphs, y), path)
    content, arrays = parts(path.read_bytes())
    learned(content).update(change)
    refused(path, joined(content, arrays), message)


def test_number_of_support_vectors_is_checked(graphs, y, path):
    model = GraphSVC(WL(n_iterations=1), param_grid={}, C=1, cv=2).fit(graphs, y)
    model.n_support_ = model.n_support_ - [1, 0]
    save_model(model, path)
    refused(path, path.read_bytes(), "support_ must name fitted graphs, and n_support_ must count them")


def test_support_vectors_must_be_fitted_graphs(graphs, y, path):
    model = GraphSVC(WL(1), param_grid={}, C=1.0, cv=3).fit(graphs, y)
    model.support_ = np.append(model.support_[:-1], len(graphs)).astype(model.support_.dtype)
    save_model(model, path)
    refused(path, path.read_bytes(), "support_ must name fitted graphs, and n_support_ must count them")


def test_negative_scales_of_a_gaussian_process_raise(graphs, path):
    save_model(GraphGP(WL(), param_grid={}).fit(graphs, np.arange(N_GRAPHS)), path)
    content, arrays = parts(path.read_bytes())
    learned(content)["scale_"] = -1.0
    refused(path, joined(content, arrays), "scale_ must be a value: nonnegative")


def test_invalid_feature_maps_and_linear_models_raise(graphs, y, path):
    features = FeatureMap(ODDCLApprox(method="rff", n_components=8), n_features=64).fit(graphs)
    save_model(features, path)
    content, arrays = parts(path.read_bytes())
    text = json.dumps(content).replace('"Fourier"', '"Taylor"')
    refused(path, joined(text.encode(), arrays), "'Taylor' is not a kind of record")
    model = make_pipeline(FeatureMap(), LogisticRegression()).fit(graphs, y)
    del model[-1].classes_
    save_model(model, path)
    refused(path, path.read_bytes(), "classes_ must be an array of at least two classes")


def test_replaced_graphs_raise(svc_file, path):
    content, arrays = parts(svc_file)
    kernel = learned(content)["kernel_"]["estimator"]
    kernel[2]["digest"] = "0" * 64
    refused(path, joined(content, arrays), "its graphs do not match their digest")


def test_replaced_kernel_raises(svc_file, path):
    content, arrays = parts(svc_file)
    kernel = learned(content)["kernel_"]["estimator"]
    kernel[1]["n_iterations"] = 2
    refused(path, joined(content, arrays), "WL gives other values on its fitted graphs than when it was saved")
    kernel[1].update(n_iterations=1, missing_labels="zero")
    refused(path, joined(content, arrays), "missing_labels of WL must be")


def test_file_that_fit_would_reject_raises(graphs, path):
    save_model(ODDCL(normalize=False).fit(graphs), path)
    content, arrays = parts(path.read_bytes())
    content["model"]["estimator"][1]["lam"] = 1e200
    refused(path, joined(content, arrays), "it is inconsistent .*lam")


@pytest.mark.parametrize("n_features", [None, 64])
@pytest.mark.parametrize("make_last", [LinearSVC, Ridge], ids=["classifier", "regressor"])
def test_weights_of_wrong_length_raise(n_features, make_last, graphs, y, path):
    """Compiled loops of explain would read beyond the end of the weights."""
    features = FeatureMap(ODDCLApprox(1, method="rff", n_components=8), n_features=n_features).fit(graphs)
    for n_weights in (0, features.n_features_out_ - 1, features.n_features_out_ + 1):
        last = make_last().fit(features.transform(graphs), y)
        last.n_features_in_ = n_weights
        last.coef_ = np.ones((*last.coef_.shape[:-1], n_weights))
        for model in (make_pipeline(features, last), make_pipeline(make_pipeline(features), "passthrough", last)):
            save_model(model, path)
            refused(path, path.read_bytes(), f"weights for {n_weights} features, but the step before it, FeatureMap")


def test_file_cannot_request_an_endless_fit(path, graphs):
    save_model(P2K(n_iterations=1).fit(graphs), path)
    content, arrays = parts(path.read_bytes())
    content["model"]["estimator"][1]["n_iterations"] = 2**31
    refused(path, joined(content, arrays), "n_iterations of P2K is 2147483648; in a model file it may be 100 at most")


def test_graphs_are_checked_before_compiled_loops_read_them(path, graphs):
    save_model(WL().fit(graphs), path)
    content, arrays = parts(path.read_bytes())
    fields = dict(learned(content)["graphs"]["dict"])
    number = fields["indices"]["array"]
    sizes = [8 * int(np.prod(shape)) for _, shape in content["arrays"]]
    start = sum(sizes[:number])
    changed = arrays[:start] + (10**12).to_bytes(8, "little") + arrays[start + 8 :]
    refused(
        path,
        joined(content, changed),
        r"InvalidGraphError: Edge 0 \(0, 1000000000000\) names a node that does not exist",
    )


# -------------------------------------------------------------------- mutated files

FUZZ = runpy.run_path(str(Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz_models.py"), run_name="fuzz")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FUZZ["MUTATIONS"])
def test_mutated_files_raise_or_work(kind, graphs, y, new, path):
    """``make fuzz`` tries more of them."""
    linear = make_pipeline(FeatureMap(ODDCL(1), n_features=None), LogisticRegression())
    scaled = make_pipeline(ScaleAttributes(), ODDCL(depth=1))
    outcomes, rng = Counter(), random.Random(0)
    for model in (GraphSVC(scaled, param_grid={}, C=1, cv=2), GraphGP(WL(), param_grid={}), linear):
        save_model(model.fit(graphs, y), path)
        original = path.read_bytes()
        for _ in range(40):
            data = FUZZ["MUTATIONS"][kind](original, rng)
            path.write_bytes(data)
            if data != original:
                outcomes[FUZZ["outcome"](path, kind != "damaged", new)] += 1
    assert outcomes["refused"]
    assert set(outcomes) <= {"refused", "loaded", "loaded, refuses graphs"}
