"""Is a wheel fit to be published: `python -m release.check_wheel dist/*.whl`.

Looks at the file (tags, contents, size, the C library that it needs), installs it into a new
environment without Rust on the path, and gets a typed object from the embedded model. A wheel for
another C library than this machine's is only looked at.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path
from platform import libc_ver

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 8_000_000
"""The embedded model's weights take 2.5 MB of a wheel, the extension 3.9 to 4.4 MB."""
CONTENTS = (
    "stencilm/__init__.py",
    "stencilm/_core.pyi",
    "stencilm/py.typed",
    "stencilm/playground/static/index.html",
    "stencilm/tiny/model.safetensors",
    "stencilm/tiny/vocabulary.json",
)
PROGRAM = """
import sys, time
begun = time.perf_counter()
from dataclasses import dataclass
import stencilm

@dataclass
class Person:
    name: str
    age: int

person = stencilm.load("tiny")("Describe a person as JSON.\\n", Person)
assert isinstance(person, Person) and isinstance(person.age, int), person
assert stencilm.__file__.startswith(sys.prefix), stencilm.__file__
print(f"{person} in {time.perf_counter() - begun:.1f} s")
"""


def version() -> str:
    """The version of the sources."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    return str(workspace["package"]["version"])


def faults(wheel: Path) -> list[str]:
    """What is wrong with a wheel, to look at; nothing where it is as it should be."""
    found = []
    name, found_version, python, abi, platform = wheel.stem.split("-")
    if (name, found_version) != ("stencilm", version()):
        found.append(f"it is {name} {found_version}, not stencilm {version()}")
    if abi == "abi3" and python != "cp311":
        found.append(f"it is abi3 from {python} on, not from cp311 on")
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        found.append(f"it has {size:,} bytes, and at most {MOST_BYTES:,} are wanted")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        found += [f"{wanted} is missing" for wanted in CONTENTS if wanted not in names]
        found += [f"{one} should not be in it" for one in names if "__pycache__" in one]
        if not any(one.endswith("licenses/LICENSE") for one in names):
            found.append("the licence is missing")
        extensions = [one for one in names if re.search(r"_core.*\.(so|pyd)$", one)]
        if len(extensions) != 1:
            found.append(f"it has the extensions {extensions}, not one")
        promised = re.search(r"manylinux_(\d+)_(\d+)", platform)
        if promised is not None:
            most = (int(promised[1]), int(promised[2]))
            for extension in extensions:
                newest = glibc_of(archive.read(extension))
                if newest > most:
                    found.append(f"it needs glibc {newest}, and promises {most}")
        if "musllinux" in platform:
            needing = [one for one in extensions if glibc_of(archive.read(one)) > (0, 0)]
            found += [f"{one} needs glibc, and promises musl" for one in needing]
    return found


def glibc_of(extension: bytes) -> tuple[int, int]:
    """The newest version of glibc that a shared library names a symbol of."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", extension)
    return max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))


def runs_here(wheel: Path) -> bool:
    """Whether this machine has the C library that the wheel is for."""
    is_musl = "musllinux" in wheel.stem
    return not is_musl or libc_ver()[0] != "glibc"


def without_rust(path: str) -> str:
    """A search path without the folders that have cargo or rustc."""
    return os.pathsep.join(
        folder
        for folder in path.split(os.pathsep)
        if not any((Path(folder) / f"{name}{suffix}").exists()
                   for name in ("cargo", "rustc") for suffix in ("", ".exe"))
    )  # fmt: skip


def try_installed(wheel: Path) -> str:
    """Install the wheel into a new environment, and get a typed object there.

    Raises subprocess.CalledProcessError where that fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        environment |= {"PATH": without_rust(environment["PATH"]), "MATURIN_NO_INSTALL_RUST": "1"}
        install = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
        subprocess.run([*install, str(wheel.resolve())], env=environment, check=True)
        done = subprocess.run(
            [python, "-c", PROGRAM], env=environment, cwd=folder, check=True, capture_output=True
        )
        return f"{done.stdout.decode().strip()}; {time.perf_counter() - begun:.0f} s in all"


def main() -> int:
    """Check the wheels of the command line; 1 where one is not fit."""
    parser = argparse.ArgumentParser(prog="python -m release.check_wheel", description=__doc__)
    parser.add_argument("wheel", nargs="+", type=Path)
    parser.add_argument("--look-only", action="store_true", help="install nothing")
    options = parser.parse_args()
    code = 0
    for wheel in options.wheel:
        found = faults(wheel)
        size = f"{wheel.stat().st_size:,} bytes"
        print(f"{wheel.name}: {'; '.join(found) if found else f'as it should be, {size}'}")
        code |= bool(found)
        if not options.look_only and runs_here(wheel):
            print(f"  {try_installed(wheel)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
