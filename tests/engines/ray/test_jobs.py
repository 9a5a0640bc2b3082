"""Jobs on Ray's own local cluster: killed and resumed, with a worker that dies, and as they are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray.data", reason="Ray Data is not installed: pip install 'stencilm[ray]'")
parquet = pytest.importorskip("pyarrow.parquet")

JOB = Path(__file__).with_name("job.py")
ROWS = int(os.environ.get("STENCILM_RAY_ROWS", "1000"))
MODEL = os.environ.get("STENCILM_RAY_MODEL", "bytes")
PATIENCE = 900.0


def start(*arguments: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        [sys.executable, str(JOB), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def summary(job: subprocess.Popen[str], out: Path) -> dict[str, Any]:
    _, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, err[-4000:]
    found: dict[str, Any] = json.loads(Path(f"{out}.json").read_text(encoding="utf-8"))
    return found


def descendants(pid: int) -> Iterator[int]:
    """A process and all that it has started, as Linux tells it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # it ended meanwhile
            continue
        for child in children:
            yield from descendants(int(child))


def kept(folder: Path) -> list[str]:
    """The digests of the finished rows."""
    lines = [line for path in folder.glob("*.rows.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line)["digest"] for line in lines]


def written(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(folder).to_pylist()
    return rows


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads the processes of Linux")
def test_a_killed_job_goes_on_where_it_was(tmp_path: Path) -> None:
    resume = tmp_path / "finished"
    options = ["--rows", str(ROWS), "--model", MODEL, "--resume", str(resume)]
    if MODEL == "bytes":
        slow = ["--options", json.dumps({"pause": 0.0005})]
    first = start(*options, *(slow if MODEL == "bytes" else []), "--out", str(tmp_path / "first"))
    until = time.monotonic() + PATIENCE
    while len(kept(resume)) < ROWS // 3:
        assert first.poll() is None, first.communicate()[1][-4000:]
        assert time.monotonic() < until
        time.sleep(0.2)
    for pid in list(descendants(first.pid)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    first.communicate(timeout=60)
    before = kept(resume)
    assert ROWS // 3 <= len(before) < ROWS

    out = tmp_path / "second"
    found = summary(start(*options, *(slow if MODEL == "bytes" else []), "--out", str(out)), out)
    assert (found["rows"], found["failed"], found["resumed"]) == (ROWS, 0, len(before))
    rows = written(out)
    assert Counter(row["id"] for row in rows) == Counter(range(ROWS))
    assert all(0 <= row["output"]["age"] <= 120 for row in rows)
    # What was finished was not done again, and everything is finished now.
    after = kept(resume)
    assert len(after) == len(set(after)) == ROWS
    assert set(before) <= set(after)


@pytest.mark.slow
def test_a_worker_that_dies_loses_no_row(tmp_path: Path) -> None:
    marker = tmp_path / "a worker has died"
    out = tmp_path / "out"
    job = start("--rows", "64", "--end-a-worker", str(marker), "--out", str(out))
    found = summary(job, out)
    assert marker.exists()
    assert (found["rows"], found["failed"]) == (64, 0)
    assert Counter(row["id"] for row in written(out)) == Counter(range(64))


@pytest.mark.slow
def test_the_embedded_model_in_two_workers(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    out = tmp_path / "out"
    found = summary(start("--rows", "24", "--model", "tiny", "--out", str(out)), out)
    assert (found["rows"], found["failed"], found["resumed"]) == (24, 0, 0)
    assert found["tokens"] == sum(row["output_stats"]["tokens"] for row in written(out)) > 0


@pytest.mark.slow
def test_vllm_in_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both are installed, with this package's plug-in."""
    pytest.importorskip("vllm", reason="vLLM is not installed beside Ray")
    from engines.vllm.served import ENVIRONMENT
    from engines.vllm.served_model import write

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    write(tmp_path / "model")
    options = {"max_model_len": 512, "enforce_eager": True, "dtype": "float32", "max_num_seqs": 32}
    arguments = ["--engine", "vllm", "--model", str(tmp_path / "model"), "--rows", "40"]
    out = tmp_path / "out"
    arguments += ["--workers", "1", "--options", json.dumps(options)]
    found = summary(start(*arguments, "--out", str(out)), out)
    assert (found["rows"], found["failed"]) == (40, 0)
    assert all(0 <= row["output"]["age"] <= 120 for row in written(out))
