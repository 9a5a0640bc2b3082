#!/usr/bin/env bash
# An environment with SGLang on the processor, in which the tests of this folder run.
#
#     tests/engines/sglang/install.sh FOLDER
#     FOLDER/bin/python -m pytest tests/engines/sglang
#
# SGLang pins its torch and, for GPUs, kernels of some GB. The server needs none of those on a processor, so what it imports is
# installed, and SGLang itself without its dependencies. About 3 GB, and torch's own 4 GB where the index has it with CUDA only.
set -euo pipefail
folder=${1:?"say where the environment is to be, as in: install.sh ../env-sglang"}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
version=${SGLANG_VERSION:-0.5.23}

"${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
pip download --no-deps --dest "$wheels" "sglang==$version"
"$folder/bin/python" - "$wheels"/*.whl >"$wheels/requirements.txt" <<'PYTHON'
"""What SGLang needs, one a line, but kernels for GPUs, media and other services."""
import email
import re
import sys
import zipfile

left_out = re.compile(
    r"cuda|cu13|cutlass|flash|flashinfer|humming|nvidia-m|nvshmem|quack|sgl-|sglang-kernel|smg-|tilelang|torch_memory_saver"
    r"|torchaudio|torchcodec|av==|decord2|deepseek-recipe|tml-renderers|py-spy|build$"
)
with zipfile.ZipFile(sys.argv[1]) as wheel:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_string(wheel.read(name).decode())
for line in metadata.get_all("Requires-Dist"):
    if "extra ==" not in line and not left_out.match(line) and "[cu13]" not in line:
        print(line)
PYTHON
pip install --requirement "$wheels/requirements.txt"
pip install --no-deps "$wheels"/*.whl
# The package under test as it stands here: its sources, and the extension that was built for them.
pip install "pydantic>=2.12" "numpy>=2.0" "typer>=0.21" "pytest>=9.0" "jsonschema>=4.26" safetensors
"$folder/bin/python" - "$root" <<'PYTHON'
"""Puts the checkout on the path, with the entry point by which SGLang finds the plug-in."""
import sys
import sysconfig
from pathlib import Path

packages = Path(sysconfig.get_path("purelib"))
(packages / "stencilm.pth").write_text(f"{sys.argv[1]}/python\n")
information = packages / "stencilm-0.dev0.dist-info"
information.mkdir(exist_ok=True)
(information / "METADATA").write_text("Metadata-Version: 2.1\nName: stencilm\nVersion: 0.dev0\n")
(information / "entry_points.txt").write_text(
    "[sglang.srt.plugins]\nstencilm = stencilm.integrations.sglang:register\n"
)
PYTHON
"$folder/bin/python" -c 'import importlib.metadata as m, stencilm; print("sglang", m.version("sglang"), "with stencilm", stencilm.__version__)'
