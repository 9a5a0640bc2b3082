#!/usr/bin/env bash
# An environment with xgrammar and llguidance, in which the tests of this folder compare them with what stands in for them.
#
#     tests/engines/compat/install.sh FOLDER
#     FOLDER/bin/python -m pytest tests/engines/compat
#
# xgrammar needs torch and transformers: about 1 GB, and torch's own 4 GB where the index has it with CUDA only.
set -euo pipefail
folder=${1:?"say where the environment is to be, as in: install.sh ../env-compat"}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

"${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
pip install "xgrammar==${XGRAMMAR_VERSION:-0.2.9}" "llguidance==${LLGUIDANCE_VERSION:-1.9.1}" tiktoken
# The package under test as it stands here: its sources, and the extension that was built for them.
pip install "pydantic>=2.12" "numpy>=2.0" "typer>=0.21" "pytest>=9.0"
packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$root/python" >"$packages/stencilm.pth"
"$folder/bin/python" -c 'import stencilm; print("stencilm", stencilm.__version__)'
