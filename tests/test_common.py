"""Tests of every estimator with every law. Both are discovered, so that new ones are tested without a change here."""

import inspect
from itertools import islice

import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator

import treegram
from checks import APPLIES, INHERITED, LAWS, ONCE
from treegram._core.params import allowed_values
from treegram.exceptions import ParameterError
from treegram.kernels.base import GraphKernel
from zoo import LAWS_HOLD_ON

ESTIMATORS = [
    found
    for found in (getattr(treegram, name) for name in treegram.__all__)
    if inspect.isclass(found) and issubclass(found, BaseEstimator) and not inspect.isabstract(found)
]
KERNELS = [found for found in ESTIMATORS if issubclass(found, GraphKernel)]

# Parameters to test besides the defaults, by name of the estimator; on fewer collections, to save time.
ODD_VARIANTS = [
    {"depth": 0},
    {"depth": 2, "counting": "visits", "lam": 1.2},
    {"depth": 2, "counting": "capped", "lam": 0.5, "normalize": False},
    {"depth": 2, "use_edge_labels": True, "normalize": False},
    {"depth": 1, "missing_labels": "constant"},
]
NODE_KERNEL_VARIANTS = [{"gamma": 0.0}, {"node_kernel": "linear", "normalize": False}]
VARIANTS = {
    "AttributedWalk": [{"use_labels": False}, {"use_edge_labels": True, "n_steps": 2}, *NODE_KERNEL_VARIANTS],
    "CSM": [
        {"use_labels": True},
        {"max_size": 4, "use_edge_labels": True, "weights": [1.0, 0.5, 2.0, 1.0]},
        {"max_size": 2, "node_kernel": "linear", "normalize": False},
    ],
    "ODDCLApprox": [
        {"depth": 1, "method": "rff", "n_components": 32, "random_state": 0},
        {"depth": 1, "method": "nystroem", "n_components": 64, "random_state": 0, "lam": 1.2},
    ],
    "OrderedTrees": [{"depth": 2, "tie_break": "colexicographic"}, {"depth": 1, "counting": "visits", "lam": 1.2}],
    "P2K": [
        {"mode": "hash"},
        {"n_iterations": 0},
        {"mode": "hash", "normalize": False},
        {"attribute_width": "scale", "use_labels": False},
    ],
    "GIK": [
        {"radius": 1, "scope": "global"},
        {"radius": 1, "invariant": "sgk", "match": "invariant"},
        {"radius": 1, "invariant": "nspdk", "distance": 1},
        {"radius": 1, "match": "none", "use_edge_labels": True, "normalize": False},
    ],
    "GraphHopper": [{"use_labels": True}, *NODE_KERNEL_VARIANTS],
    "Graphlets": [{"max_size": 5}, {"max_size": 1}],
    "NSPDK": [{"radius": 2, "distance": 0}, {"use_edge_labels": True}],
    "RandomWalk": [
        {"n_steps": 3, "use_labels": True, "decay": 0.3},
        {"kind": "exponential", "decay": 0.5, "normalize": False},
        {"n_steps": 2, "use_labels": True, "use_edge_labels": True},
    ],
    "ShortestPath": [
        {"use_labels": True},
        {"length_kernel": "brownian", "use_labels": True},
        *NODE_KERNEL_VARIANTS,
    ],
    "StatisticsKernel": [{"width": 2.0}],
    "WL": [{"n_iterations": 0}, {"use_edge_labels": True}, {"missing_labels": "constant"}],
    "WLCL": [{"n_iterations": 1, "use_edge_labels": True}, *NODE_KERNEL_VARIANTS],
    "WWL": [{"method": "sliced"}, {"n_iterations": 1, "use_edge_labels": True, "width": 1.0}],
    "ODDST": ODD_VARIANTS,
    "ODDCL": [
        *ODD_VARIANTS,
        {"depth": 2, "gamma": 0.0},
        {"depth": 1, "gamma": 10.0, "normalize": False},
        {"depth": 1, "node_kernel": "laplacian", "gamma": 0.3},
        {"depth": 1, "node_kernel": "linear", "normalize": False},
    ],
}
N_FIRST = (
    3  # variants of a kernel that obey every law in the fast tier: the defaults, without normalization, and one more
)
# Laws that a kernel breaks on purpose: {(estimator, law): the reason}. They must fail, or the entry is out of date.
BROKEN_ON_PURPOSE = {
    ("ShortestPath", "normalized_diagonal_is_1"): "a graph without edges has no pair of nodes to compare",
}


def variants(estimator):
    """Return the estimator with default parameters, without normalization if it has any, and with those of VARIANTS."""
    plain = [{"normalize": False}] if "normalize" in estimator().get_params() else []
    return [estimator(**options) for options in [{}, *plain, *VARIANTS.get(estimator.__name__, [])]]


def case(kernel, law, n_collections, *, is_slow=False):
    reason = BROKEN_ON_PURPOSE.get((type(kernel).__name__, law))
    marks = [pytest.mark.xfail(reason=reason)] if reason else []
    marks += [pytest.mark.slow] if is_slow else []
    return pytest.param(kernel, law, n_collections, id=f"{' '.join(repr(kernel).split())}-{law}", marks=marks)


def cases():
    for kernel in KERNELS:
        for i, variant in enumerate(variants(kernel)):
            changed = {name for name, value in variant.get_params().items() if value is not kernel().get_params()[name]}
            n_collections = len(LAWS_HOLD_ON) if changed <= {"normalize"} else 2
            is_first = i < N_FIRST
            left_out = ONCE if is_first else ONCE | INHERITED
            laws = [law for law in LAWS if law not in left_out and APPLIES[law](variant)]
            yield from (case(variant, law, n_collections, is_slow=not is_first) for law in laws)
        yield from (case(kernel(), law, 1) for law in sorted(ONCE) if APPLIES[law](kernel()))


@pytest.mark.parametrize(("kernel", "law", "n_collections"), list(cases()))
def test_every_kernel_obeys_every_law(kernel, law, n_collections):
    for name, collection in islice(LAWS_HOLD_ON.items(), n_collections):
        try:
            LAWS[law](kernel, collection)
        except Exception as error:
            error.add_note(f"on the collection {name!r}, with {kernel!r}")
            raise


def test_discovery_finds_the_kernels():
    assert {treegram.ODDST, treegram.ODDCL} <= set(KERNELS)
    assert set(VARIANTS) <= {estimator.__name__ for estimator in ESTIMATORS}
    assert {name for name, _ in BROKEN_ON_PURPOSE} <= {kernel.__name__ for kernel in KERNELS}
    assert {law for _, law in BROKEN_ON_PURPOSE} | ONCE | INHERITED <= set(LAWS)


# -------------------------------------------------------------------- scikit-learn's own checks

# These do not depend on what X is.
APPLICABLE = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_transformers_unfitted",
    "check_valid_tag_types",
]
# These fit on tables of numbers: why they do not apply to graphs, or which law replaces them.
INAPPLICABLE = {
    "check_param_validation": "parameters are checked by treegram._core.params; see test_every_parameter_is_checked",
    "check_array_api_input": "graphs are not arrays",
    "check_complex_data": "graphs are not arrays; complex attributes raise when a collection is made",
    "check_dict_unchanged": "law: transform_changes_nothing",
    "check_dont_overwrite_parameters": "law: fit_returns_self_and_keeps_the_parameters",
    "check_dtype_object": "graphs are not arrays",
    "check_estimator_sparse_array": "graphs are not arrays",
    "check_estimator_sparse_matrix": "graphs are not arrays",
    "check_estimator_sparse_tag": "graphs are not arrays",
    "check_estimators_dtypes": "graphs are not arrays",
    "check_estimators_empty_data_messages": "an empty collection is legal; law: no_graphs_give_an_empty_matrix",
    "check_estimators_fit_returns_self": "law: fit_returns_self_and_keeps_the_parameters",
    "check_estimators_nan_inf": "collections raise, not estimators",
    "check_estimators_overwrite_params": "law: fit_returns_self_and_keeps_the_parameters",
    "check_estimators_pickle": "law: pickled_kernel_gives_the_same_result",
    "check_f_contiguous_array_estimator": "graphs are not arrays",
    "check_fit1d": "graphs have no columns",
    "check_fit2d_1feature": "graphs have no columns",
    "check_fit2d_1sample": "law: transform_of_a_part_equals_the_block_of_the_whole fits on one graph",
    "check_fit2d_predict1d": "graphs have no columns",
    "check_fit_check_is_fitted": "law: transform_before_fit_raises",
    "check_fit_idempotent": "law: fit_can_be_called_again",
    "check_fit_score_takes_y": "law: targets_are_ignored",
    "check_methods_sample_order_invariance": "law: graph_order_permutes_rows_and_columns",
    "check_methods_subset_invariance": "law: transform_of_a_part_equals_the_block_of_the_whole",
    "check_n_features_in": "graphs have no columns; n_attributes_in_ replaces them",
    "check_n_features_in_after_fitting": "graphs have no columns; n_attributes_in_ replaces them",
    "check_pipeline_consistency": "law: cross_validation_accepts_graphs",
    "check_positive_only_tag_during_fit": "graphs are not arrays",
    "check_readonly_memmap_input": "all arrays of a collection are read-only; law: graphs_are_not_modified",
    "check_transformer_data_not_an_array": "law: list_of_graphs_equals_a_collection",
    "check_transformer_general": "law: transform_equals_fit_transform",
    "check_transformer_n_iter": "no kernel iterates",
    "check_transformer_preserve_dtypes": "a Gram matrix is float64",
}


@pytest.mark.parametrize("check", APPLICABLE)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_scikit_learn_checks_that_do_not_look_at_x(estimator, check):
    for variant in variants(estimator):
        getattr(estimator_checks, check)(estimator.__name__, variant)


@pytest.mark.parametrize(
    ("estimator", "parameter"),
    [(estimator, name) for estimator in ESTIMATORS for name in allowed_values(estimator)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_every_parameter_is_checked(estimator, parameter):
    graphs, y = LAWS_HOLD_ON["mixed"].pack(), [i % 2 for i in range(len(LAWS_HOLD_ON["mixed"]))]
    bad = estimator().set_params(**{parameter: NotAValue()})
    with pytest.raises(ParameterError, match=f"^{parameter} of {estimator.__name__} must be .*; got <NotAValue>"):
        bad.fit(graphs, y)


class NotAValue:
    def __repr__(self):
        return "<NotAValue>"


def test_every_other_scikit_learn_check_is_accounted_for():
    class TabularTransformer(TransformerMixin, BaseEstimator):
        """A transformer of tables as scikit-learn expects it, so that it gets all checks."""

        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X

    checks = (check for _, check in estimator_checks_generator(TabularTransformer(), mark=None))
    names = {getattr(check.func, "__wrapped__", check.func).__name__ for check in checks}
    assert names, "scikit-learn gave no checks"
    unknown = names - set(APPLICABLE) - INAPPLICABLE.keys()
    if unknown and tuple(map(int, sklearn.__version__.split(".")[:2])) > (1, 9):
        pytest.skip(f"scikit-learn {sklearn.__version__} has unclassified checks: {sorted(unknown)}")
    assert not unknown
    assert not set(APPLICABLE) & INAPPLICABLE.keys()
    named = {reason.split("law: ")[1].split()[0] for reason in INAPPLICABLE.values() if "law: " in reason}
    assert named <= set(LAWS)
