#!/usr/bin/env bash
# An environment with the oldest versions that pyproject.toml allows of what stencilm may be installed beside.
#
#     tests/engines/oldest/install.sh FOLDER
#     FOLDER/bin/python -m pytest tests/engines/oldest
#
# torch takes 4 GB where the index has it with CUDA only.
set -euo pipefail
folder=${1:?"say where the environment is to be, as in: install.sh ../env-oldest"}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

"${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
PYTHONPATH="$root/tests" "$folder/bin/python" -m engines.oldest.floors >"$folder/floors.txt"
pip install -r "$folder/floors.txt" "pytest>=9.0" "hypothesis>=6.150" "accelerate>=1.0" "lark>=1.2" protobuf
# The package under test as it stands here: its sources, and the extension that was built for them.
packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$root/python" >"$packages/stencilm.pth"
"$folder/bin/python" -c 'import stencilm; print("stencilm", stencilm.__version__)'
