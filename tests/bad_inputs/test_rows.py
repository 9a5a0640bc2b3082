"""Every row of bad and hard inputs ends well in a process of its own: no crash, bounded memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bad_inputs.rows import ROWS

TESTS = Path(__file__).resolve().parent.parent
# Beside the tokenizer, and beside what Python and the frameworks take.
MEGABYTES = 256
# What hangs ends here; a busy machine takes longer than a minute.
SECONDS = 600


def test_all_rows_are_there() -> None:
    assert sorted(ROWS) == list(range(1, 41))


@pytest.mark.parametrize(
    "number",
    [pytest.param(number, id=f"{number}: {title}") for number, (title, _) in ROWS.items()],
)
def test_a_row_ends_well(number: int) -> None:
    paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    ran = subprocess.run(
        [sys.executable, "-m", "bad_inputs.rows", str(number)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment,
        check=False,
    )
    assert ran.returncode == 0, f"signal or error {ran.returncode}:\n{ran.stderr[-3000:]}"
    assert json.loads(ran.stdout.splitlines()[-1])["megabytes"] <= MEGABYTES
