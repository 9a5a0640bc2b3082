"""The audit: distribute schemas to one process per engine, and gather the answers.

One idea: a process may crash, hang or grow. Then it is ended and restarted, and the report says so
for the schema that it was working on.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stencilm.audit.engines import find_engine, missing, version_of
from stencilm.audit.findings import Finding, Outcome
from stencilm.audit.report import Report
from stencilm.audit.schemas import SchemaCase, cases_of, named_apart, read_schemas, sampled
from stencilm.audit.worker import EMBEDDED, SERIALIZED
from stencilm.shown import shown_value
from stencilm.tokenizers import TokenizerInfo
from stencilm.whole_numbers import as_real, as_whole, count, plain, shown

_STARTING_SECONDS = 300.0
_POLLED_SECONDS = 0.2
_TEXTS_OF_OTHERS = 12
_LONGEST = 1e9
"""Seconds: longer than any audit, but still accepted by timers."""
_MOST_WAITED = 5
"""The timeout of an answer, as a multiple of the limit on processor time."""


def audit(
    schemas: str | Path | Iterable[Any],
    *,
    engines: Sequence[str | type[Any]] = ("stencilm",),
    tokenizer: str | Path | TokenizerInfo = EMBEDDED,
    sample: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    time_limit: float = 20.0,
    memory_limit: int = 6 << 30,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Look for masks that are wrong, with an independent validator as the judge.

    Needs the extra `stencilm[audit]`.

    Args:
        schemas: A file or a folder as `read_schemas` takes them, or schemas: dictionaries, JSON
            texts, or `SchemaCase`s that have names and instances.
        engines: Names of engines that are given, `module:Class`, `file.py:Class`, or classes that
            can be imported by their name.
        tokenizer: "tiny", a tokenizer's file or folder, or a `TokenizerInfo`.
        sample: So many of the schemas, drawn by `seed`; all for None. A larger sample has the
            smaller one.
        seed: What walks and texts are drawn by. The same seed gives the same findings, where time
            limits end nothing.
        jobs: How many schemas are looked at side by side, each with a process for each engine.
        time_limit: The seconds of processor time that an engine has for each of the two parts of a
            schema: its walks, and the texts that it reads; five times as long by the clock.
        memory_limit: The bytes that a process may hold, where the system tells.
        progress: Called with the number of schemas that are done, and that of all.

    Raises:
        TypeError: `schemas` or `engines` is not a list, or a schema is not JSON.
        ValueError: There is no such schema, engine or tokenizer, or an option is out of range.
        ModuleNotFoundError: A package is missing: that of the validator, or of an engine.
        RuntimeError: An engine does not start.

    >>> from stencilm.audit import audit
    >>> report = audit([{"type": "integer", "minimum": 3}])
    >>> report.errors
    []
    >>> report.outcomes["schema 0"]["stencilm"].status
    'clean'
    """
    numbers = [as_whole(jobs), as_real(time_limit), as_whole(1 if sample is None else sample)]
    if any(number is None or not number > 0 for number in numbers):
        raise ValueError(
            f"jobs ({shown(jobs)}), time_limit ({shown(time_limit)}) and sample ({shown(sample)}) "
            "must be positive"
        )
    jobs, time_limit, sample = plain(jobs), min(plain(time_limit), _LONGEST), plain(sample)
    memory_limit = count("memory_limit", memory_limit, least=1)
    seed = count("seed", seed, least=0)
    if find_spec("jsonschema") is None:
        raise ModuleNotFoundError(
            "the audit needs jsonschema: pip install 'stencilm[audit]'", name="jsonschema"
        )
    if isinstance(engines, str) or not isinstance(engines, Iterable):
        raise TypeError(
            f"engines is {shown_value(engines):.80}, "
            f"but must be a list of names or classes, such as "
            "['stencilm']"
        )
    names = [_name_of(engine) for engine in engines]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"name each engine once, and at least one: {', '.join(names) or 'none'}")
    cases = read_schemas(schemas) if isinstance(schemas, str | Path) else cases_of(schemas)
    cases = sampled(named_apart(cases), sample, seed)
    begun = time.monotonic()
    options = {
        "tokenizer": str(tokenizer) if isinstance(tokenizer, str | Path) else "given",
        "sample": sample,
        "seed": seed,
        "jobs": jobs,
        "time_limit": time_limit,
    }
    with tempfile.TemporaryDirectory() as folder:
        source = str(tokenizer)
        if isinstance(tokenizer, TokenizerInfo):
            source = str(Path(folder, f"given{SERIALIZED}"))
            Path(source).write_text(tokenizer.serialize_json(), encoding="utf-8")
        elif not source or (source != EMBEDDED and not Path(source).exists()):
            raise ValueError(f"there is no tokenizer file or folder {source!r}")
        teams = [_Team(names, source, memory_limit) for _ in range(min(jobs, len(cases)))]
        try:
            outcomes = _outcomes(cases, teams, seed, time_limit, progress)
        finally:
            for team in teams:
                team.stop()
    ordered = {case.name: outcomes[case.name] for case in cases}
    versions = {name: version_of(name) for name in names}
    return Report(versions, ordered, options, time.monotonic() - begun)


def _name_of(engine: str | type[Any]) -> str:
    if isinstance(engine, str):
        lacking = missing(engine)
        if lacking is not None:
            raise ModuleNotFoundError(
                f"the engine {engine!r} needs its package: pip install {lacking}", name=lacking
            )
        find_engine(engine)
        return engine
    if not isinstance(engine, type):
        raise TypeError(f"an engine is {shown_value(engine):.80}, but must be a name or a class")
    module = sys.modules.get(engine.__module__)
    if "<locals>" in engine.__qualname__ or module is None:
        raise ValueError(f"{engine.__qualname__} cannot be imported by its name in a process")
    home = getattr(module, "__file__", None) if module.__name__ == "__main__" else module.__name__
    return f"{home}:{engine.__qualname__}"


def _outcomes(
    cases: list[SchemaCase],
    teams: list[_Team],
    seed: int,
    seconds: float,
    progress: Callable[[int, int], None] | None,
) -> dict[str, dict[str, Outcome]]:
    free: queue.SimpleQueue[_Team] = queue.SimpleQueue()
    for team in teams:
        free.put(team)

    def look(case: SchemaCase) -> dict[str, Outcome]:
        team = free.get()
        try:
            return team.look(case, seed, seconds)
        finally:
            free.put(team)

    outcomes = {}
    with ThreadPoolExecutor(len(teams) or 1) as pool:
        waiting = {pool.submit(look, case): case.name for case in cases}
        try:
            for done in as_completed(waiting):
                outcomes[waiting[done]] = done.result()
                if progress is not None:
                    progress(len(outcomes), len(cases))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for team in teams:
                team.abandon()
            raise
    return outcomes


class _Team:
    """One process per engine, and one for the validator."""

    def __init__(self, names: list[str], source: str, memory_limit: int) -> None:
        self.engines = {name: _Process(name, source, memory_limit) for name in names}
        self.validator = _Process("-", source, memory_limit)

    def look(self, case: SchemaCase, seed: int, seconds: float) -> dict[str, Outcome]:
        """Walk with each engine, then let each read the texts that all walks produced."""
        outcomes = {name: Outcome() for name in self.engines}
        request = {"name": case.name, "schema": case.schema, "seed": seed, "seconds": seconds}
        walked: list[str] = []
        for name, process in self.engines.items():
            answer = process.ask({**request, "do": "walk"}, seconds)
            _add(outcomes[name], answer)
            walked += answer.get("texts", ())
        reading = [
            name for name in self.engines if outcomes[name].status in ("clean", "errors", "failure")
        ]
        if reading:
            walked = sorted(set(walked), key=lambda text: (len(text), text))[:_TEXTS_OF_OTHERS]
            more = {"do": "prepare", "instances": case.instances, "walked": walked}
            prepared = self.validator.ask({**request, **more}, seconds)
            texts = prepared.get("texts", [])
            for name in reading:
                if prepared["status"] != "clean":
                    why = f"no texts to read, the validator: {prepared['why']}"
                    outcomes[name].worsen("unjudged", why)
                answer = self.engines[name].ask({**request, "do": "read", "texts": texts}, seconds)
                _add(outcomes[name], answer)
        return outcomes

    def abandon(self) -> None:
        """End the processes that another thread waits for, and start no more."""
        for process in [*self.engines.values(), self.validator]:
            process.abandon()

    def stop(self) -> None:
        """End all processes."""
        for process in [*self.engines.values(), self.validator]:
            process.stop()


def _add(outcome: Outcome, answer: dict[str, Any]) -> None:
    for row in answer["findings"]:
        outcome.findings.append(Finding(**{**row, "prefix": tuple(row["prefix"])}))
    outcome.counts.update(answer.get("counts", {}))
    outcome.worsen(answer["status"], answer["why"])
    for finding in outcome.findings:
        if finding.is_error:
            outcome.worsen("errors", finding.why)
        elif finding.kind == "failure":
            outcome.worsen("failure", finding.why)


class _Process:
    """A worker process, started at the first request, and restarted if it has ended."""

    def __init__(self, name: str, source: str, memory_limit: int) -> None:
        self.name, self.memory_limit = name, memory_limit
        program = "from stencilm.audit.worker import main; main()"
        self._command = [sys.executable, "-c", program, name, source]
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._errors: Any = None
        self._is_abandoned = False

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The answer with its `findings`; if there is none, how the process ended."""
        if self._process is None:
            self._begin()
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended: the answer says how
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        answer = self._answer(seconds)
        if answer["status"] in ("crash", "time out", "memory"):
            self.stop()
        return answer

    def _begin(self) -> None:
        if self._is_abandoned:
            raise RuntimeError("the audit was interrupted")
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        environment |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env={**os.environ, **environment},
        )
        self._lines = queue.SimpleQueue()
        arguments = (self._process.stdout, self._lines)
        threading.Thread(target=_pass_on, args=arguments, daemon=True).start()
        answer = self._answer(_STARTING_SECONDS)
        if answer["status"] != "ready":
            self.stop()
            raise RuntimeError(
                f"the engine {self.name!r} does not start: {answer['status']}: {answer['why']}"
            )

    def _answer(self, seconds: float) -> dict[str, Any]:
        findings: list[dict[str, Any]] = []
        until = time.monotonic() + _MOST_WAITED * seconds
        most = self._seconds_used() + seconds
        while True:
            try:
                line = self._lines.get(timeout=_POLLED_SECONDS)
            except queue.Empty:
                if time.monotonic() > until or self._seconds_used() > most:
                    why = f"there is no answer within {seconds:g} s"
                    return {"status": "time out", "why": why, "findings": findings}
                if self._bytes_held() > self.memory_limit:
                    why = f"more than {self.memory_limit:,} bytes"
                    return {"status": "memory", "why": why, "findings": findings}
                continue
            if line is None:
                return {"status": "crash", "why": self._end(), "findings": findings}
            answer: dict[str, Any] = json.loads(line)
            if answer.pop("done", False):
                return {**answer, "findings": findings}
            findings.append(answer["finding"])

    def _end(self) -> str:
        """How the process ended, and the last lines of its errors."""
        assert self._process is not None
        code = self._process.wait()
        how = f"exit code {code}" if code >= 0 else _signal_name(-code)
        self._errors.seek(0)
        said = (self._errors.read().strip().splitlines() or [""])[-1]
        return f"{how}: {said}"[:500] if said else how

    def _seconds_used(self) -> float:
        """The processor time used so far; 0 if the system does not tell."""
        assert self._process is not None
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
            user, system = stat.rpartition(")")[2].split()[11:13]
        except (OSError, ValueError):
            return 0.0
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _bytes_held(self) -> int:
        assert self._process is not None
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def abandon(self) -> None:
        """End the process for good; a thread that waits for an answer learns that it has ended."""
        self._is_abandoned = True
        process = self._process
        if process is not None:
            process.kill()

    def stop(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        streams: tuple[Any, ...] = (self._process.stdin, self._errors)
        for stream in streams:
            with contextlib.suppress(OSError):  # the rest of the output has no reader
                stream.close()
        self._process = None


def _pass_on(stream: Any, lines: queue.SimpleQueue[str | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
