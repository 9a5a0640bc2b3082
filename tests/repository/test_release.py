"""What a release is checked by: the bill of materials, the check of wheels, workflows, citation."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from release import check_wheel, newcomer, sbom

ROOT = Path(__file__).resolve().parents[2]


def test_the_bill_names_what_is_compiled_and_what_is_installed() -> None:
    bill = sbom.bill()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert bill["metadata"]["component"]["version"] == check_wheel.version()
    by_purl = {one["purl"]: one for one in bill["components"]}
    assert len(by_purl) == len(bill["components"])
    names = {one["name"] for one in bill["components"]}
    assert {"pyo3", "mimalloc", "regex-syntax", "serde_json", "numpy", "pydantic"} <= names
    assert not {"proptest", "rand", "stencilm-engine", "stencilm-fuzz"} & names
    for one in bill["components"]:
        if one["purl"].startswith("pkg:cargo/"):
            [digest] = one["hashes"]
            assert re.fullmatch("[0-9a-f]{64}", digest["content"])
    assert bill == sbom.bill()


def test_the_bill_is_printed() -> None:
    command = [sys.executable, "-m", "release.sbom"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == sbom.bill()


def wheel(folder: Path, name: str, *, without: str = "", **more: bytes) -> Path:
    """A file that looks like a wheel."""
    path = folder / name
    files = {one: b"" for one in check_wheel.CONTENTS if one != without}
    files |= {"stencilm/_core.abi3.so": b"\x7fELF GLIBC_2.2.5 GLIBC_2.17"}
    files |= {"stencilm-0.dist-info/licenses/LICENSE": b""}
    files |= {one.replace("__", "/", 1): data for one, data in more.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for one, data in files.items():
            archive.writestr(one, data)
    return path


GOOD = f"stencilm-{check_wheel.version()}-cp311-abi3-manylinux_2_17_x86_64.whl"


def test_a_wheel_as_it_should_be_has_no_faults(tmp_path: Path) -> None:
    assert check_wheel.faults(wheel(tmp_path, GOOD)) == []


@pytest.mark.parametrize(
    ("name", "options", "fault"),
    [
        ("stencilm-9.9-cp311-abi3-any.whl", {}, "it is stencilm 9.9"),
        (GOOD.replace("cp311", "cp312"), {}, "abi3 from cp312 on"),
        (GOOD, {"without": "stencilm/py.typed"}, "stencilm/py.typed is missing"),
        (GOOD, {"stencilm____pycache__": b""}, "should not be in it"),
        (GOOD, {"stencilm___core.so": b""}, "not one"),
        (GOOD.replace("2_17", "2_12"), {}, r"needs glibc (2, 17), and promises (2, 12)"),
        (GOOD.replace("manylinux_2_17", "musllinux_1_2"), {}, "needs glibc, and promises musl"),
    ],
)
def test_faults_of_wheels_are_told(
    name: str, options: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    assert any(fault in one for one in check_wheel.faults(wheel(tmp_path, name, **options)))


def test_the_search_path_is_left_without_rust(tmp_path: Path) -> None:
    for folder, program in (("a", "cargo"), ("b", "python"), ("c", "rustc.exe")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / program).touch()
    path = ":".join(str(tmp_path / one) for one in "abc")
    if sys.platform != "win32":
        assert check_wheel.without_rust(path) == str(tmp_path / "b")


def test_the_citation_has_the_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {check_wheel.version()}\n" in citation


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name
)
def test_workflows_are_well_formed(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true.
    assert {"name", True, "permissions", "jobs"} == set(workflow)
    for job in workflow["jobs"].values():
        assert set(job) <= {"runs-on", "steps", "strategy", "timeout-minutes"}
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]), step
        matrix = job.get("strategy", {}).get("matrix", {})
        for used in re.findall(r"matrix\.([\w.]+)", json.dumps(job)):
            head, _, key = used.partition(".")
            assert head in matrix and (not key or all(key in one for one in matrix[head])), used


def test_every_engine_is_run() -> None:
    yaml = pytest.importorskip("yaml")
    path = ROOT / ".github" / "workflows" / "check.yml"
    job = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["engines"]
    scripts = (ROOT / "tests" / "engines").glob("*/install.sh")
    assert job["strategy"]["matrix"]["engine"] == sorted(script.parent.name for script in scripts)


def test_the_oldest_and_the_newest_python_are_tried() -> None:
    yaml = pytest.importorskip("yaml")
    path = ROOT / ".github" / "workflows" / "check.yml"
    job = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["check"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    newest = max(named, key=lambda version: int(version.split(".")[1]))
    oldest = project["requires-python"].removeprefix(">=")
    assert job["strategy"]["matrix"]["python"] == [oldest, newest]


def test_the_module_needs_no_global_lock() -> None:
    source = (ROOT / "crates" / "python" / "src" / "lib.rs").read_text(encoding="utf-8")
    assert "#[pymodule(gil_used = false)]" in source


def test_what_the_release_page_calls_is_there() -> None:
    page = (ROOT / "RELEASING.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([\w-]+)", page):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for module in re.findall(r"`python -m ([\w.]+)", page):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert requires["project"]["requires-python"] == ">=3.11"


def test_a_newcomer_begins_with_the_readme() -> None:
    example = newcomer.first_example()
    assert "stencilm.load(" in example and "print(person)" in example
    compile(example, "README.md", "exec")


def test_a_newcomer_has_no_rust_and_is_told_of_what_fails(tmp_path: Path) -> None:
    environment = newcomer.Environment(tmp_path)
    without = environment.run("-c", "import shutil; print(shutil.which('cargo'))")
    assert newcomer.checked(without) == "None\n"
    with pytest.raises(SystemExit, match=r"exited with 3:\nwrong"):
        newcomer.checked(
            environment.run("-c", "import sys; print('wrong', file=sys.stderr); sys.exit(3)")
        )


def test_a_newcomer_knows_which_commands_need_an_extra() -> None:
    from stencilm.cli.examples import EXAMPLES

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {f"stencilm[{name}]" for name in project["optional-dependencies"]}
    assert set(newcomer.NEEDS_EXTRA) <= set(EXAMPLES)
    assert set(newcomer.NEEDS_EXTRA.values()) <= extras
