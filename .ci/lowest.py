"""Print the lowest versions that pyproject.toml declares, as constraints for ``pip install -c``."""

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
optional = [requirement for name, extra in extras.items() if name != "all" for requirement in extra]
for requirement in project["dependencies"] + optional:
    print(requirement.replace(">=", "=="))
