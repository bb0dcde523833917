"""The shape of the package: who imports whom, what is public, what loads when."""

import ast
import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import treegram
from treegram import kernels
from treegram.kernels.base import GraphKernel

PACKAGE = Path(treegram.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# From the ground up. A module imports modules of lower layers and of its own package, never a neighbor in its layer.
LAYERS = [
    {"_types", "_interrupts", "_wording", "_machine", "_optional"},
    {"errors", "_numba_cache", "_numba_quick"},
    {"_files", "_memory", "_numba_parts", "_progress", "_matplotlib", "_html"},
    {"_params", "_numba"},
    {"_pack", "_dask"},
    {"_parallel"},
    {"_validate", "_from_arrays", "_from_libraries", "_join"},
    {"graphs"},
    {"structure", "attributes", "datasets", "plotting"},
    {"convert", "_notebook_view"},
    {"maps"},
    {"pairsum"},
    {"preprocessing"},
    {"edges"},
    {"kernels"},
    {"streaming", "selection"},
    {"explanations", "persistence"},
    {"scale"},
    {"experiments", "explanation_page"},
    {"__init__"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
# Imports that lead upwards, inside a function, for a reason.
LAZY_UPWARDS = {
    ("_from_libraries", "convert"): "Graphs.from_networkx and so on: converters make Graphs, and each is needed by few",
    ("graphs", "_notebook_view"): "the view of Graphs in notebooks",
}


def part_of(path):
    """The module or subpackage of treegram that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(path):
    """(full module name, whether the import is inside a function) of all imports of treegram's own modules.

    What only type checkers import is left out.
    """
    tree = ast.parse(path.read_text())
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING":
            block.body = []
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "treegram":
                yield name, id(node) in inside


def imported_part(name):
    """``treegram.pairsum.nodes.Nodes`` is of pairsum; ``treegram.Graphs`` of the public door itself."""
    second = name.split(".")[1] if "." in name else "__init__"
    is_module = (PACKAGE / second).is_dir() or (PACKAGE / f"{second}.py").is_file()
    return second if is_module else "__init__"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_lead_downwards(path):
    mine = part_of(path)
    assert mine in RANK, f"say in LAYERS where {mine} belongs"
    for name, is_lazy in imported_modules(path):
        other = imported_part(name)
        if other == mine or (is_lazy and (mine, other) in LAZY_UPWARDS):
            continue
        assert RANK[other] < RANK[mine], f"{path.relative_to(PACKAGE)} imports {name}"


def test_exceptions_are_still_needed():
    used = {
        (part_of(path), imported_part(name)) for path in FILES for name, is_lazy in imported_modules(path) if is_lazy
    }
    assert LAZY_UPWARDS.keys() <= used


def test_structure_and_attributes_do_not_know_each_other():
    for path in FILES:
        forbidden = {"structure": {"attributes", "maps", "pairsum"}, "attributes": {"structure", "pairsum"}}
        others = {imported_part(name) for name, _ in imported_modules(path)}
        assert not others & forbidden.get(part_of(path), set()), path.name


def test_compiled_code_is_in_loops_and_knows_arrays_alone():
    compiled = {
        path for path in FILES if any(name.startswith("treegram._core.jit.") for name, _ in imported_modules(path))
    }
    loops = {path for path in FILES if path.parent.name == "loops" and path.name != "__init__.py"}
    assert compiled <= loops
    assert len(loops) > 10
    for path in loops:
        for name, _ in imported_modules(path):
            known = name.startswith(("treegram._core.jit", "treegram._core.types")) or ".loops." in name
            assert known, f"{path.relative_to(PACKAGE)} imports {name}: hot loops take arrays, not objects"


# -------------------------------------------------------------------- what is public


def sort_key(name):
    """As ruff sorts ``__all__``: constants and acronyms, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_all_is_sorted_and_complete():
    for names in treegram._HOMES.values():
        assert list(names) == sorted(names, key=sort_key)
    assert len(set(treegram.__all__)) == len(treegram.__all__)
    for home, names in treegram._HOMES.items():
        assert set(names) <= set(importlib.import_module(f"treegram.{home}").__all__)
    for subpackage in ("kernels", "datasets", "errors", "selection"):
        assert set(importlib.import_module(f"treegram.{subpackage}").__all__) == set(treegram._HOMES[subpackage])


def test_every_public_name_is_there_and_is_told_to_type_checkers():
    for name in treegram.__all__:
        assert getattr(treegram, name).__name__ == name
        assert name in dir(treegram)
    homes = {
        node.module.removeprefix("treegram.")
        for node in ast.walk(ast.parse((PACKAGE / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("treegram.")
    }
    assert homes == treegram._HOMES.keys()


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'treegram' has no attribute 'ODDTS'"):
        treegram.ODDTS  # noqa: B018


def test_every_kernel_of_the_package_is_public():
    found = set()
    for info in pkgutil.walk_packages([str(PACKAGE / "kernels")], "treegram.kernels."):
        module = importlib.import_module(info.name)
        found |= {
            value
            for value in vars(module).values()
            if inspect.isclass(value) and issubclass(value, GraphKernel) and not inspect.isabstract(value)
        }
    assert found
    assert {kernel.__name__ for kernel in found if not kernel.__name__.startswith("_")} <= set(treegram.__all__)


def test_the_version_is_that_of_the_installed_package():
    assert treegram.__version__ == importlib.metadata.version("treegram")


def public_objects():
    for name in treegram.__all__:
        value = getattr(treegram, name)
        yield name, value
        if inspect.isclass(value):
            for member, found in inspect.getmembers(value):
                own = getattr(inspect.unwrap(found.fget if isinstance(found, property) else found), "__module__", None)
                if not member.startswith("_") and (own or "").startswith("treegram"):
                    yield f"{name}.{member}", found


@pytest.mark.parametrize(("name", "value"), [pytest.param(*item, id=item[0]) for item in public_objects()])
def test_every_public_object_has_a_docstring(name, value):
    assert inspect.getdoc(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(*item, id=item[0])
        for item in public_objects()
        if inspect.isfunction(item[1]) or (inspect.isclass(item[1]) and issubclass(item[1], BaseEstimator))
    ],
)
def test_docstrings_list_the_parameters(name, value):
    """In their order, but for those that are given by name only: a class has its own after those of its bases."""
    known = inspect.signature(value).parameters
    parameters = [p for p in known if p not in ("self", "args", "kwargs")]
    positional = [p for p in parameters if known[p].kind is not inspect.Parameter.KEYWORD_ONLY]
    described = described_parameters(value)
    assert sorted(described) == sorted(parameters)
    assert list(described)[: len(positional)] == positional
    for p, (kind, _) in described.items():
        told = re.search(r"default=(.*)$", kind)
        if told is not None:
            assert ast.literal_eval(told[1]) == known[p].default


def described_parameters(value):
    """For each parameter in a docstring its type and what it is said to be."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", inspect.getdoc(value), re.MULTILINE | re.DOTALL
    )
    found = re.finditer(r"^\**([\w, ]+?) : (.*)\n((?: {4}.*\n?|\n)*)", section[1] if section else "", re.MULTILINE)
    return {name: (one[2], " ".join(one[3].split())) for one in found for name in one[1].split(", ")}


@pytest.mark.parametrize("parameter", ["depth", "lam", "gamma", "counting"])
def test_a_parameter_means_the_same_in_every_kernel(parameter):
    described = [described_parameters(getattr(treegram, name)) for name in kernels.__all__]
    told = [parameters[parameter] for parameters in described if parameter in parameters]
    assert len(told) > 3
    assert len(set(told)) == 1


# -------------------------------------------------------------------- what loads when

# Not pandas and pyarrow: scikit-learn imports them where they are installed.
OPTIONAL = [
    "matplotlib",
    "networkx",
    "polars",
    "rdkit",
    "igraph",
    "gemmi",
    "torch",
    "dask",
    "distributed",
    "zarr",
]


@pytest.mark.parametrize(
    "program",
    [
        "import treegram",
        "import treegram; [getattr(treegram, name) for name in treegram.__all__]",
        "import treegram as t; t.ODDCL().fit_transform(t.Graphs.from_edges([[(0, 1)]], attributes=[[[0.0], [1.0]]]))",
    ],
    ids=["import", "all names", "a Gram matrix"],
)
def test_optional_packages_load_only_when_used(program):
    report = f"import sys; print([name for name in {OPTIONAL} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{report}"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
