#!/usr/bin/env bash
# The tests of each engine in an environment of its own; an engine that does not install within its time is skipped by name.
#
#     tests/engines/run.sh FOLDER [ENGINE...]
#
# FOLDER holds the environments, which are kept. INSTALL_SECONDS is the time of one installation.
set -uo pipefail
folder=${1:?"say where the environments are to be, as in: run.sh ../engines"}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$(dirname "$here")")
shift
engines=("$@")
if [ ${#engines[@]} -eq 0 ]; then
    for script in "$here"/*/install.sh; do
        engines+=("$(basename "$(dirname "$script")")")
    done
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
failed=()
for engine in "${engines[@]}"; do
    python="$folder/$engine/bin/python"
    if [ ! -e "$folder/$engine/.installed" ]; then
        echo "==> $engine: installing"
        if ! timeout "${INSTALL_SECONDS:-900}" "$here/$engine/install.sh" "$folder/$engine"; then
            echo "==> $engine: SKIPPED, it does not install here within ${INSTALL_SECONDS:-900} s"
            continue
        fi
        touch "$folder/$engine/.installed"
    fi
    echo "==> $engine: tests"
    (cd "$root" && "$python" -m pytest "tests/engines/$engine") || failed+=("$engine")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "==> failed: ${failed[*]}" >&2
    exit 1
fi
