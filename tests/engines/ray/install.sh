#!/usr/bin/env bash
# An environment with Ray Data, in which the tests of this folder run; that of the embedded model is skipped there, because
# it needs torch: STENCILM_TORCH=1 installs it, too.
#
#     tests/engines/ray/install.sh FOLDER
set -euo pipefail
folder=${1:?"say where the environment is to be, as in: install.sh ../env-ray"}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

"${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
pip install "ray[data]>=2.50" "pydantic>=2.12" "numpy>=2.0" "typer>=0.21" "pytest>=9.0"
if [ -n "${STENCILM_TORCH:-}" ]; then
    pip install "torch>=2.6" "transformers>=5.0" "safetensors>=0.6"
fi
echo "$root/python" >"$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/stencilm.pth"
"$folder/bin/python" -c 'import ray, stencilm; print("ray", ray.__version__, "with stencilm", stencilm.__version__)'
