"""`stencilm audit`: finds wrong masks of engines, judged by an independent validator."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stencilm.cli.failure import USAGE, Failure
from stencilm.cli.grammars import EMBEDDED
from stencilm.cli.notations import is_inline, read_notation
from stencilm.cli.options import Tokenizer
from stencilm.cli.outputs import STANDARD_OUTPUT, check_one_output, check_output, write_output
from stencilm.views.characters import visible

if TYPE_CHECKING:
    from stencilm.audit.findings import Finding
    from stencilm.audit.report import Report

_MOST_SHOWN = 5
"""The most errors of an engine that are printed."""


def audit(
    schemas: Annotated[
        str,
        typer.Option(
            help="A file or folder of schemas, also in MaskBench's layout, or the text of one."
        ),
    ],
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            "-e",
            help="stencilm, xgrammar, llguidance, outlines-core, glrmask, module:Class or "
            "file.py:Class; may be repeated.",
        ),
    ] = None,
    tokenizer: Tokenizer = EMBEDDED,
    sample: Annotated[
        int | None, typer.Option(min=1, help="The number of schemas to draw; by default all.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="The seed for drawing schemas, walks and texts.")
    ] = 0,
    jobs: Annotated[
        int, typer.Option(min=1, max=64, help="The number of schemas to audit in parallel.")
    ] = 1,
    time_limit: Annotated[
        float, typer.Option(min=0.1, help="Processor seconds for each half of a schema.")
    ] = 20.0,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the report as JSON; - prints it."),
    ] = None,
    html_file: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write the report as an HTML page; - prints it."
        ),
    ] = None,
    scripts: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write a program for each error that reproduces it."),
    ] = None,
) -> int:
    """Find masks that provably allow what cannot be completed, or refuse what can.

    Engines named by a file or a module are executed: name only those that you trust. Exits with 1
    if an error is proved.
    """
    from stencilm.audit import audit as look

    is_text = is_inline(schemas, "json-schema")
    if is_text:
        read_notation(schemas, "json-schema", "--schemas")
    named = engine or ["stencilm"]
    if len(set(named)) < len(named):
        raise Failure(f"--engine names one twice: {', '.join(named)}", USAGE)
    to_output = [str(file) == STANDARD_OUTPUT for file in (json_file, html_file)]
    check_one_output(json=to_output[0], html=to_output[1])
    check_output(json_file)
    check_output(html_file)
    if scripts is not None:
        scripts.mkdir(parents=True, exist_ok=True)
    with _progress() as show:
        try:
            report = look(
                [schemas] if is_text else schemas,
                engines=named,
                tokenizer=tokenizer,
                sample=sample,
                seed=seed,
                jobs=jobs,
                time_limit=time_limit,
                progress=show,
            )
        except (ValueError, ImportError, RuntimeError) as error:
            raise Failure(str(error)) from error
    if json_file is not None:
        write_output(json_file, json.dumps(report.to_json()))
    if html_file is not None:
        write_output(html_file, report.to_html())
    if scripts is not None:
        _write_scripts(report, scripts)
    for line in _lines(report):
        print(visible(line), file=sys.stderr if any(to_output) else sys.stdout)
    return 1 if report.errors else 0


def _lines(report: Report) -> Iterator[str]:
    yield from str(report).splitlines()
    for name in report.engines:
        errors = [finding for finding in report.errors if finding.engine == name]
        for finding in errors[:_MOST_SHOWN]:
            yield f"{name}, {finding.kind}, {finding.schema}: {finding.why}"
            yield f"  {finding.text[-60:]!r}, then {finding.token_text!r}"
        if len(errors) > _MOST_SHOWN:
            yield f"{name}: {len(errors) - _MOST_SHOWN:,} more; --json and --html have all of them"


def _write_scripts(report: Report, folder: Path) -> None:
    for number, finding in enumerate(report.errors):
        write_output(folder / f"{number:04}-{_file_name(finding)}.py", finding.script)


def _file_name(finding: Finding) -> str:
    words = f"{finding.engine}-{finding.kind}-{finding.schema}"
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", words)[:120]


@contextmanager
def _progress() -> Iterator[Callable[[int, int], Any]]:
    """A progress bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("auditing"), BarColumn(), MofNCompleteColumn(), TextColumn("schemas"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("auditing", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
