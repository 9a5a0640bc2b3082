"""The oldest versions that pyproject.toml allows, as requirements that are met by nothing newer."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"
EXTRAS = ["transformers", "openai", "anthropic", "tiktoken", "sentencepiece", "audit", "playground"]


def floors() -> dict[str, str]:
    """The minor version of each package, as "2.12"."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    allowed = [*project["dependencies"]]
    for extra in EXTRAS:
        allowed += project["optional-dependencies"][extra]
    found = {}
    for requirement in allowed:
        floor = re.fullmatch(r"([a-z-]+)>=(\d+\.\d+)(?:\.\d+)?", requirement)
        assert floor, f"{requirement} has no oldest version"
        found[floor[1]] = floor[2]
    return found


if __name__ == "__main__":
    for name, minor in floors().items():
        print(f"{name}=={minor}.*")
