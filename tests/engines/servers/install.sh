#!/usr/bin/env bash
# An environment with the servers of this folder: that of llama-cpp-python, which is built from source, and that of mlx-lm.
#
#     tests/engines/servers/install.sh FOLDER
set -euo pipefail
folder=${1:?"say where the environment is to be, as in: install.sh ../env-servers"}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

"${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
pip install "openai>=2.0" "pydantic>=2.12" "numpy>=2.0" "typer>=0.21" "pytest>=9.0" "safetensors>=0.6" tokenizers
# Either may lack a wheel or a compiler; its tests are skipped then.
pip install "mlx-lm[cpu]>=0.32" || echo "mlx-lm does not install here" >&2
pip install "llama-cpp-python[server]>=0.3.36" gguf || echo "llama-cpp-python does not install here" >&2
echo "$root/python" >"$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/stencilm.pth"
"$folder/bin/python" -c 'import stencilm; print("servers with stencilm", stencilm.__version__)'
