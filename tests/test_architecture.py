"""Tests of the package structure: imports between folders, public names, and lazy imports."""

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
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py")  # which only calls cli.main

# From low to high. A folder imports folders of lower layers, never another one of its own layer.
LAYERS = [
    {"_core"},
    {"graphs"},
    {"datasets", "structure"},
    {"pairsum"},
    {"kernels"},
    {"models"},
    {"explanations", "study", "__init__"},  # __init__ has the public names, which the command uses
    {"cli"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def room_of(path):
    """Return the folder of the package, or the root module, that a file belongs to; exceptions are the public part of _core."""
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "_core" if room == "exceptions" else room


def imported_modules(path):
    """Yield the full names of treegram's own modules that a file imports, except for type checkers alone."""
    tree = ast.parse(path.read_text())
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING":
            block.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports must be absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "treegram")


def imported_room(name):
    """Return "pairsum" for ``treegram.pairsum.nodes.Nodes``, and "__init__" for ``treegram.Graphs``."""
    second = name.split(".")[1] if "." in name else "__init__"
    if second == "exceptions":
        return "_core"
    return second if (PACKAGE / second).is_dir() else "__init__"


def test_at_most_eight_layers_contain_every_folder():
    assert len(LAYERS) <= 8
    assert {room_of(path) for path in FILES} == RANK.keys()


def test_imports_go_to_lower_layers():
    for path in FILES:
        for name in imported_modules(path):
            mine, other = room_of(path), imported_room(name)
            assert other == mine or RANK[other] < RANK[mine], f"{path.relative_to(PACKAGE)} imports {name}"


def test_every_folder_describes_its_content():
    for room in (PACKAGE / name for name in RANK if (PACKAGE / name).is_dir()):
        text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
        assert 2 <= len(re.findall(r"[.:](?:\s|$)", text)) <= 8, (
            f"{room.name}/__init__.py: expected two or three sentences"
        )


def test_numba_is_imported_by_one_module():
    users = {
        str(path.relative_to(PACKAGE))
        for path in FILES
        if re.search(r"^\s*(from|import) (numba|llvmlite)", path.read_text(), re.M)
    }
    assert users == {"_core/jit.py"}


def test_docstrings_begin_with_a_verb_or_a_noun_not_with_a_clause():
    clause = re.compile(r"(What|Who|Whoever|Whether|How|Of|That|Those|Which|Where|When)\b")
    found = [
        f"{path.relative_to(PACKAGE)}: {text.splitlines()[0]}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and clause.match(text := ast.get_docstring(node) or "")
    ]
    assert not found


# -------------------------------------------------------------------- public names


def sort_key(name):
    """Sort as ruff sorts ``__all__``: constants and acronyms, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_public_names_are_sorted_and_complete():
    for names in treegram._HOMES.values():
        assert list(names) == sorted(names, key=sort_key)
    assert len(set(treegram.__all__)) == len(treegram.__all__)
    for home, names in treegram._HOMES.items():
        assert set(names) <= set(importlib.import_module(f"treegram.{home}").__all__)
    for subpackage in ("kernels", "datasets", "models"):
        assert set(importlib.import_module(f"treegram.{subpackage}").__all__) == set(treegram._HOMES[subpackage])


def test_public_names_exist_and_are_imported_for_type_checkers():
    for name in treegram.__all__:
        assert getattr(treegram, name).__name__ == name
        assert name in dir(treegram)
    assert not {"TYPE_CHECKING", "annotations", "import_module"} & set(dir(treegram))
    homes = {
        node.module.removeprefix("treegram.")
        for node in ast.walk(ast.parse((PACKAGE / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("treegram.")
    }
    assert homes | {"exceptions"} == treegram._HOMES.keys()


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="'treegram' has no attribute 'ODDTS'"):
        treegram.ODDTS  # type: ignore[attr-defined] # noqa: B018


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


def test_version_matches_the_installed_package():
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


def test_every_public_object_has_a_docstring():
    assert [name for name, value in public_objects() if not inspect.getdoc(value)] == []


def test_docstrings_list_the_parameters():
    """In order, except for keyword-only ones: a class lists its own after those of its bases."""
    for name, value in public_objects():
        if inspect.isfunction(value) or (inspect.isclass(value) and issubclass(value, BaseEstimator)):
            known = inspect.signature(value).parameters
            parameters = [p for p in known if p not in ("self", "args", "kwargs")]
            positional = [p for p in parameters if known[p].kind is not inspect.Parameter.KEYWORD_ONLY]
            described = described_parameters(value)
            assert sorted(described) == sorted(parameters), name
            assert list(described)[: len(positional)] == positional, name
            for p, (kind, _) in described.items():
                default = re.search(r"default=(.*)$", kind)
                if default is not None:
                    assert ast.literal_eval(default[1]) == known[p].default, f"{name}: {p}"


def described_parameters(value):
    """Return the type and the description of each parameter in a docstring."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", inspect.getdoc(value), re.MULTILINE | re.DOTALL
    )
    found = re.finditer(r"^\**([\w, ]+?) : (.*)\n((?: {4}.*\n?|\n)*)", section[1] if section else "", re.MULTILINE)
    return {name: (one[2], " ".join(one[3].split())) for one in found for name in one[1].split(", ")}


@pytest.mark.parametrize("parameter", ["depth", "lam", "gamma", "counting"])
def test_parameter_has_the_same_description_in_every_kernel(parameter):
    described = [described_parameters(getattr(treegram, name)) for name in kernels.__all__]
    descriptions = [parameters[parameter] for parameters in described if parameter in parameters]
    assert len(descriptions) > 3
    assert len(set(descriptions)) == 1


# -------------------------------------------------------------------- lazy imports

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
