#!/usr/bin/env bash
# xgrammar and llguidance beside this package, in an environment of their own: install.sh FOLDER
set -euo pipefail
folder=${1:?"say where the environment is to be"}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet torch --index-url "${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}"
"$folder/bin/python" -m pip install --quiet "xgrammar>=0.2,<0.3" llguidance transformers pytest "$root"
