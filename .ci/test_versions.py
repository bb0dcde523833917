"""Run a selection of the tests with every other Python on this machine, and with the lowest supported package versions.

The selection covers what depends on versions: compiled code, scikit-learn's and numpy's interfaces, readers, model files. Each run
has its own environment and compile cache in a temporary folder. ``make test-versions`` runs this; arguments are passed on to pytest and
replace the selection (``python .ci/test_versions.py tests`` runs all fast tests).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOWEST_ON = "3.11"  # other versions of Python have no wheels of the lowest versions
SELECTION = ["tests/test_golden.py", "tests/core", "tests/structure", "tests/graphs", "tests/models/test_crossval.py"]


def main() -> int:
    """Run every combination; return 1 if some tests failed."""
    found = {version: path for version in PYTHONS if (path := find_python(version))}
    own = ".".join(map(str, sys.version_info[:2]))
    runs = [(version, "newest") for version in found if version != own]
    runs += [(LOWEST_ON, "lowest")] * (LOWEST_ON in found)
    results = {run: run_tests(found[run[0]], run[1]) for run in runs}
    print("\nPython  packages")
    for version in PYTHONS:
        for packages in ("newest", "lowest"):
            if (version, packages) in results:
                print(f"{version:8}{packages:10}{'passed' if results[version, packages] else 'FAILED'}")
        if version not in found:
            print(f"{version:8}not on this machine")
    return 0 if all(results.values()) else 1


def find_python(version: str) -> str | None:
    """Return the path of a working Python, from PATH or from pyenv, whose shims in PATH run only the active version."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [shutil.which(f"python{version}"), *map(str, sorted(kept.glob(f"{version}.*/bin/python")))]
    return next((path for path in candidates if path and runs(path)), None)


def runs(python: str) -> bool:
    """Return whether this Python starts."""
    return subprocess.run([python, "--version"], check=False, capture_output=True).returncode == 0


def run_tests(python: str, packages: str) -> bool:
    """Return whether the tests pass in a new environment."""
    print(f"\n{python}, {packages} packages", flush=True)
    with tempfile.TemporaryDirectory(prefix="treegram-") as work:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(work, "cache"))}
        try:
            inside = install(python, packages, Path(work))
        except subprocess.CalledProcessError as error:
            print(f"The packages cannot be installed: {error}")
            return False
        tests = [inside, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "-m", "not slow"]
        tests += sys.argv[1:] or SELECTION
        if packages == "lowest":  # old packages call deprecated functions of the packages below them
            tests += ["-W", "ignore::DeprecationWarning", "-W", "ignore::ImportWarning"]
        return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode == 0


def install(python: str, packages: str, work: Path) -> str:
    """Create an environment with treegram and its test dependencies; return the path of its Python."""
    subprocess.run([python, "-m", "venv", work / "env"], check=True)
    inside = str(work / "env" / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [inside, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    constraints = work / "constraints.txt"
    lowest = subprocess.run([sys.executable, ROOT / ".ci" / "lowest.py"], check=True, capture_output=True, text=True)
    constraints.write_text(lowest.stdout if packages == "lowest" else "")
    subprocess.run([*pip, "--constraint", constraints, "--editable", ".[all]", "--group", "test"], cwd=ROOT, check=True)
    return inside


if __name__ == "__main__":
    sys.exit(main())
