"""Build the sdist, build the wheel from it, and try the wheel in a clean environment, away from the sources.

``python .ci/smoke.py [FOLDER]`` writes both files to the folder (default: a temporary one). Needs the package build.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRY = """
import pathlib, sys
import numpy as np, treegram as tg
assert pathlib.Path(tg.__file__).is_relative_to(sys.prefix), tg.__file__
graphs, y = tg.load_digits_graphs()
K = tg.ODDCL(depth=1).fit_transform(graphs[:30])
assert np.allclose(np.diag(K), 1), K
"""
COMMANDS = ("--version", "--help", "info digits", "gram digits --kernel wl -o K.npz", "reproduce --help")


def main() -> None:
    """Build, check the contents, install, try."""
    with tempfile.TemporaryDirectory(prefix="treegram-") as work:
        wheel = build(Path(sys.argv[1] if len(sys.argv) > 1 else work, "").absolute())
        check_complete(wheel)
        try_out(wheel, Path(work))
    print(f"{wheel.name}: built, complete, installs and works")


def build(folder: Path) -> Path:
    """Build the wheel from the sdist and return its path."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("treegram-*.whl")
    return wheel


def check_complete(wheel: Path) -> None:
    """Exit with an error if the wheel lacks a file of the package, such as a style sheet, or has an extra one."""
    listed = subprocess.run(["git", "ls-files", "src/treegram"], cwd=ROOT, check=True, capture_output=True, text=True)
    wanted = {path.removeprefix("src/") for path in listed.stdout.split()}
    with zipfile.ZipFile(wheel) as file:
        packed = {name for name in file.namelist() if ".dist-info/" not in name}
    if wanted != packed:
        sys.exit(f"{wheel.name} lacks {sorted(wanted - packed)} and should not have {sorted(packed - wanted)}.")


def try_out(wheel: Path, work: Path) -> None:
    """Install the wheel, and use it from Python and as a command."""
    subprocess.run([sys.executable, "-m", "venv", work / "env"], check=True)
    python = work / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-c", TRY], cwd=work, env=environment, check=True)
    for command in COMMANDS:
        subprocess.run(
            [python.with_name("treegram"), *command.split()],
            cwd=work,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )


if __name__ == "__main__":
    main()
