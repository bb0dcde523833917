"""Tests of a kernel from another package: by name in models, commands, studies and model files."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from treegram import GraphSVC, load_digits_graphs, load_model, save_model
from treegram.exceptions import ModelFileError, ParameterError
from treegram.kernels import register_kernel
from treegram.kernels.registry import KERNELS
from treegram.study.protocol import KernelSpec
from treegram.study.run import build_kernel

MODULE = '''
from dataclasses import field

import numpy as np
from treegram.kernels import ExplicitKernel, Whole, gather, parameters


@parameters
class Counter(ExplicitKernel):
    """Count the nodes of each degree.

    Parameters
    ----------
    most : int, default=4
        Degrees of this size and above count as one.
    normalize : bool, default=True
        Whether to normalize.
    n_jobs : int or None, default=None
        Threads.
    """

    name = "degrees"
    _default_param_grid = {"most": [2, 4]}
    _allowed = {"most": (Whole(1),)}

    most: int = field(default=4, kw_only=False)

    def _features(self, graphs, grid):
        codes = np.minimum(graphs.degrees, self.most).astype(np.uint64)
        features, _ = gather(graphs.offsets, codes, np.ones(graphs.n_nodes))
        features.counts.sum_duplicates()
        return [features]
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package whose kernel is not imported."""
    (tmp_path / "degree_kernels.py").write_text(MODULE)
    folder = tmp_path / "degree_kernels-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: degree-kernels\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[treegram.kernels]\ndegrees = degree_kernels:Counter\nwrong = degree_kernels:np\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    monkeypatch.chdir(tmp_path)
    yield
    KERNELS.pop("degrees", None)
    sys.modules.pop("degree_kernels", None)


def test_models_studies_and_files_find_the_kernel_by_name(package):
    graphs, y = load_digits_graphs()
    graphs, y = graphs[:60], y[:60] > 4
    assert "degrees" not in list(KERNELS)  # nothing is loaded before its name is used
    model = GraphSVC("degrees", C=1, cv=2).fit(graphs, y)
    assert type(model.kernel_).__name__ == "Counter"
    assert build_kernel(KernelSpec("degrees", {"most": 2})).most == 2
    save_model(model, "model.tgm")
    content = Path("model.tgm").read_bytes()
    assert b'"degrees"' in content
    assert b"degree_kernels" not in content
    expected = model.predict(graphs)
    del KERNELS["degrees"]  # as in a new process
    np.testing.assert_array_equal(load_model("model.tgm").predict(graphs), expected)


def test_command_lists_its_options(package, run):
    code, out, err = run("gram digits --kernel degrees --most 1,2 -o K.npz")
    assert (code, err) == (0, "")
    assert out.startswith("K.npz: 2 x 1797 x 1797 Gram matrix of digits, degrees, ")
    assert "Degrees of this size and above count as one." in " ".join(run("gram --kernel degrees --help")[1].split())


def test_model_file_raises_without_the_package(package, monkeypatch):
    graphs, _ = load_digits_graphs()
    save_model(KERNELS["degrees"]().fit(graphs[:5]), "kernel.tgm")
    del KERNELS["degrees"]
    monkeypatch.setattr("treegram.kernels.registry.entry_points", lambda **_: [])
    with pytest.raises(
        ModelFileError, match="it names 'degrees', which is neither an estimator of treegram nor a kernel"
    ):
        load_model("kernel.tgm")


def test_entry_point_must_be_a_kernel_of_that_name(package):
    with pytest.raises(ParameterError, match="must be a subclass of GraphKernel whose name is 'wrong'"):
        GraphSVC("wrong").fit(*load_digits_graphs())


def test_kernel_must_be_registered_to_be_saved(package, monkeypatch):
    monkeypatch.setattr("treegram.kernels.registry.entry_points", lambda **_: [])
    kind = KERNELS.pop("degrees", None) or importlib.import_module("degree_kernels").Counter
    with pytest.raises(ModelFileError, match=r"Register it first with treegram\.kernels\.register_kernel"):
        save_model(kind(), "kernel.tgm")
    register_kernel(kind)
    save_model(kind(), "kernel.tgm")
    assert load_model("kernel.tgm").get_params() == kind().get_params()
