"""Check the recipe for a new kernel in CONTRIBUTING.md: its example obeys all laws, and its list of files is complete."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from checks import APPLIES, LAWS
from treegram import FeatureMap, GraphSVC, load_digits_graphs
from treegram._core.params import allowed_values
from zoo import LAWS_HOLD_ON

ROOT = Path(__file__).resolve().parents[1]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text().split("## A new kernel\n")[1].split("\n## ")[0]


@pytest.fixture(scope="module")
def kernel():
    (block,) = re.findall(r"^```python\n(.*?)^```$", RECIPE, re.MULTILINE | re.DOTALL)
    names = {"__name__": "recipe"}
    sys.modules["recipe"] = types.ModuleType("recipe")  # dataclasses look up the module of a class
    exec(compile(block, "CONTRIBUTING.md", "exec"), names)
    return names["Degrees"]()


# Pickle needs a module to import the class from, and the example has nothing to run in parallel.
NOT_FOR_THE_EXAMPLE = {
    "pickled_kernel_gives_the_same_result",
    "n_jobs_changes_no_bit",
    "task_size_does_not_change_the_result",
}


@pytest.mark.parametrize("law", sorted(LAWS.keys() - NOT_FOR_THE_EXAMPLE))
def test_example_obeys_the_laws(kernel, law):
    assert APPLIES[law](kernel)
    LAWS[law](kernel, LAWS_HOLD_ON["mixed"])


def test_example_counts_degrees(kernel):
    for name, collection in LAWS_HOLD_ON.items():
        graphs = collection.pack()
        counts = [np.bincount(np.minimum(graph.degrees, 4), minlength=5) for graph in graphs]
        K = clone(kernel).set_params(normalize=False).fit_transform(graphs)
        np.testing.assert_array_equal(K, np.array(counts) @ np.array(counts).T, err_msg=name)


def test_example_works_in_models_and_feature_maps(kernel):
    assert {"most", "normalize", "n_jobs"} <= allowed_values(type(kernel)).keys()
    graphs, y = load_digits_graphs()
    model = GraphSVC(kernel, C=1, cv=2).fit(graphs[:40], y[:40] > 4)
    assert model.best_params_["kernel"].most in kernel.default_param_grid()["most"]
    assert FeatureMap(kernel).fit(graphs[:40]).transform(graphs[:3]).shape[0] == 3


def test_recipe_lists_all_files_that_name_a_kernel():
    listed = set(re.findall(r"^\| `([^`]+)` \|", RECIPE, re.MULTILINE))
    assert len(listed) <= 6
    assert all(re.search("graphlets", (ROOT / path).read_text(), re.IGNORECASE) for path in listed)
    # Folders that read the declaration must not name kernels.
    readers = [path for room in ("cli", "study", "models") for path in (ROOT / "src/treegram" / room).rglob("*.py")]
    readers.remove(ROOT / "src/treegram/models/auto.py")  # what kernel="auto" tries is a choice among kernels
    assert not [path for path in readers if "graphlets" in path.read_text().lower()]
