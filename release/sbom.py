"""The software bill of materials, in CycloneDX: `python -m release.sbom > dist/stencilm.cdx.json`.

One idea: what is compiled into a wheel stands in `Cargo.lock`, with a checksum for each crate; what
pip installs beside it stands in `pyproject.toml`. So the bill is made of these two, and of nothing
that is installed here.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def bill() -> dict[str, Any]:
    """The bill as CycloneDX 1.5 has it; the same for the same sources."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    compiled = _compiled({package["name"]: package for package in lock})
    components = [_crate(package) for package in compiled]
    components += [_python(requirement) for requirement in project["dependencies"]]
    name, version = project["name"], own["version"]
    made_of = json.dumps(components, sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, made_of)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": f"pkg:pypi/{name}@{version}",
                "name": name,
                "version": version,
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": f"pkg:pypi/{name}@{version}",
            }
        },
        "components": components,
    }


def _compiled(packages: dict[str, Any]) -> list[Any]:
    """The crates from elsewhere that the extension is made of, sorted by their names.

    The lock has no word of what is for tests alone, so those of the workspace's own crates that no
    crate of the extension needs are left out by walking from the extension.
    """
    for_tests = {"proptest"}
    waiting, seen = ["stencilm-python"], set()
    while waiting:
        name = waiting.pop()
        if name in seen or name in for_tests:
            continue
        seen.add(name)
        waiting += [one.split(" ")[0] for one in packages[name].get("dependencies", ())]
    return [packages[name] for name in sorted(seen) if "source" in packages[name]]


def _crate(package: dict[str, Any]) -> dict[str, Any]:
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": package["name"],
        "version": package["version"],
        "purl": purl,
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": package["checksum"]}],
    }


def _python(requirement: str) -> dict[str, Any]:
    match = re.fullmatch(r"([\w.-]+)(.*)", requirement)
    assert match is not None, requirement
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{match[1]}",
        "name": match[1],
        "purl": f"pkg:pypi/{match[1]}",
        "scope": "required",
        "properties": [{"name": "stencilm:requirement", "value": requirement}],
    }


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=2)
    print()
