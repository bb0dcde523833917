"""Check that pyproject.toml declares enough to run, and no more than is tested."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: extra for name, extra in PROJECT["optional-dependencies"].items() if name != "all"}
OPTIONAL = [requirement for extra in EXTRAS.values() for requirement in extra]
MODULES = {"scikit-learn": "sklearn", "torch-geometric": "torch_geometric"}  # packages whose module has another name


def names(requirements):
    """Return the module of each requirement."""
    packages = (re.match(r"[\w-]+", requirement).group() for requirement in requirements)
    return {MODULES.get(package, package) for package in packages}


def imported_packages():
    """Yield the top-level names of all imports of the package."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            else:
                modules = [node.module] if isinstance(node, ast.ImportFrom) else []
            yield from (module.partition(".")[0] for module in modules)


def test_imports_and_declared_dependencies_match():
    needed = set(imported_packages()) - sys.stdlib_module_names - {"treegram"}
    # Installed by numba, jinja2 and pooch; IPython is imported in notebooks only, which run in it.
    needed -= {"llvmlite", "markupsafe", "requests", "IPython"}
    assert needed <= names(PROJECT["dependencies"] + OPTIONAL)
    assert names(PROJECT["dependencies"]) <= needed


def test_extra_all_has_every_extra_that_installs_everywhere():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert set(everything.removeprefix("treegram[").removesuffix("]").split(",")) == set(EXTRAS) - {"pyg"}  # torch


def test_lowest_versions_cover_every_dependency(capsys):
    runpy.run_path(str(ROOT / ".ci" / "lowest.py"))
    lines = capsys.readouterr().out.splitlines()
    assert names(lines) == names(PROJECT["dependencies"] + OPTIONAL)
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in lines)


def test_every_declared_python_is_tested():
    claimed = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line}
    tested = set(runpy.run_path(str(ROOT / ".ci" / "test_versions.py"))["PYTHONS"])
    assert claimed <= tested
    assert PROJECT["requires-python"] == f">={min(tested, key=lambda version: int(version.partition('.')[2]))}"
    workflow = ROOT / ".github" / "workflows" / "ci.yml"
    if workflow.exists():  # it comes with the repository, not with the sdist
        matrix = re.search(r"^ +python: \[(.*)\]$", workflow.read_text(), re.MULTILINE).group(1)
        assert set(matrix.replace('"', "").split(", ")) == tested


def test_import_is_fast_and_loads_no_other_package():
    """The README says 6 ms; a busy machine may need longer, but numpy alone would take more than this."""
    timer = "import sys, time; start = time.process_time(); import treegram; print(time.process_time() - start, 'numpy' in sys.modules)"
    runs = [subprocess.run([sys.executable, "-c", timer], capture_output=True, text=True, check=True) for _ in range(3)]
    seconds, has_numpy = min(run.stdout.split() for run in runs)
    assert float(seconds) < 0.06
    assert has_numpy == "False"


def test_changelog_begins_with_this_version():
    """The release workflow asks for its date."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (.*) - (unreleased|20\d\d-\d\d-\d\d)$", changelog, re.MULTILINE)[1] == PROJECT["version"]


def test_citation_names_the_paper_and_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {PROJECT['version']}\n" in citation
    assert re.findall(r"family-names: (.*)", citation) == ["Da San Martino", "Navarin", "Sperduti"]
    assert re.search(r"^    doi: 10\.1109/TNNLS\.2017\.2705694\b", citation, re.MULTILINE)
