"""The path of a newcomer, timed: `python -m release.newcomer dist/*.whl`.

From a wheel and nothing else: a new environment without Rust on the path, `pip install` without
extras, the README's first example as it stands there, then the first example of every command's
`--help`. Fails where a step does, or where the typed object took two minutes or more.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from release.check_wheel import ROOT, without_rust

MOST_SECONDS = 120.0
"""From the wheel to the first typed object."""
NEEDS_EXTRA = {"audit": "stencilm[audit]", "playground": "stencilm[playground]"}
"""Commands that say which extra they need, and exit with 1 until it is there."""


def first_example() -> str:
    """The first Python example of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, "the README opens with an example"
    return found[1]


class Environment:
    """A new virtual environment, and how programs in it are run."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "environment", with_pip=True)
        programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
        self.python = str(programs / "python")
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        path = os.pathsep.join((str(programs), without_rust(os.environ["PATH"])))
        self.variables = kept | {"PATH": path, "MATURIN_NO_INSTALL_RUST": "1", "NO_COLOR": "1"}
        assert shutil.which("cargo", path=path) is None

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, in a folder that has the examples and no sources."""
        return subprocess.run(
            [self.python, *command],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )


def checked(done: subprocess.CompletedProcess[str]) -> str:
    """What a program printed; an error with what it said where it failed."""
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(done.args)} exited with {done.returncode}:\n{done.stderr}")
    return done.stdout


def path_of(wheel: Path, folder: Path) -> float:
    """Go the path in a folder, telling each step; the seconds to the first typed object."""
    begun = time.perf_counter()

    def told(step: str) -> None:
        print(f"{time.perf_counter() - begun:6.1f} s  {step}", flush=True)

    environment = Environment(folder)
    told("an environment without Rust")
    install = ("-m", "pip", "install", "--quiet", "--only-binary", ":all:", str(wheel.resolve()))
    checked(environment.run(*install))
    told("pip install")
    printed = checked(environment.run("-c", first_example()))
    seconds = time.perf_counter() - begun
    told(f"the README's first example: {printed.splitlines()[0]}")
    shutil.copytree(ROOT / "examples", folder / "examples")
    listed = "import json, stencilm.cli.examples as e; print(json.dumps(e.EXAMPLES))"
    for command, lines in json.loads(checked(environment.run("-c", listed))).items():
        done = environment.run("-m", *shlex.split(lines[0]))
        if command in NEEDS_EXTRA:
            if done.returncode != 1 or NEEDS_EXTRA[command] not in done.stderr:
                raise SystemExit(f"{lines[0]} does not name its extra:\n{done.stderr}")
            told(f"{command}: names its extra, {NEEDS_EXTRA[command]}")
        else:
            told(f"{command}: {len(checked(done).splitlines())} lines")
    return seconds


def main() -> int:
    """Go the path with each wheel of the command line; 1 where it is too long."""
    parser = argparse.ArgumentParser(prog="python -m release.newcomer", description=__doc__)
    parser.add_argument("wheel", nargs="+", type=Path)
    code = 0
    for wheel in parser.parse_args().wheel:
        print(wheel.name)
        with tempfile.TemporaryDirectory() as folder:
            seconds = path_of(wheel, Path(folder))
        print(f"from the wheel to a typed object: {seconds:.0f} s")
        code |= seconds >= MOST_SECONDS
    return code


if __name__ == "__main__":
    sys.exit(main())
