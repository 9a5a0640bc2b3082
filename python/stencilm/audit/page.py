"""A report as one self-contained HTML page; all texts in it are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from stencilm.audit.findings import ERRORS, NOTES, STATUSES, Finding
from stencilm.views.characters import visible

if TYPE_CHECKING:
    from stencilm.audit.report import Report

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #5d6877; --paper: #ffffff;
  --field: #f4f6f8; --edge: #d5dbe3; --wrong: #ffd9d6; --wrong-ink: #a1180c; --note: #ffe9c2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --quiet: #98a4b3; --paper: #161b22;
  --field: #0d1117; --edge: #333d49; --wrong: #5a1f1b; --wrong-ink: #ffb4ab; --note: #4d3a10; } }
body { margin: 0 auto; padding: 24px; max-width: 76rem; color: var(--ink); background: var(--field);
  font: 15px/1.6 ui-sans-serif, system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 18px; margin: 28px 0 8px; }
p { margin: 6px 0; } .quiet { color: var(--quiet); font-size: 13px; }
.wide { overflow-x: auto; background: var(--paper); border: 1px solid var(--edge);
  border-radius: 8px; padding: 4px 14px; }
table { border-collapse: collapse; font-size: 14px; }
th, td { padding: 3px 18px 3px 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { color: var(--quiet); }
tbody th { padding-top: 10px; } td.some { color: var(--wrong-ink); font-weight: 600; }
article { background: var(--paper); border: 1px solid var(--edge); border-radius: 8px;
  padding: 10px 16px; margin: 10px 0; }
article h3 { font-size: 15px; margin: 0 0 4px; }
.kind { background: var(--wrong); color: var(--wrong-ink); border-radius: 4px; padding: 1px 7px; }
.kind.of-note { background: var(--note); color: var(--ink); }
code, pre { font: 13px/1.5 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
pre { margin: 4px 0; padding: 8px 12px; background: var(--field); border: 1px solid var(--edge);
  border-radius: 6px; white-space: pre-wrap; max-height: 24rem; overflow: auto; }
mark { background: var(--wrong); color: var(--wrong-ink); border-radius: 3px; }
summary { cursor: pointer; color: var(--quiet); font-size: 13px; }
"""
_MOST_ERRORS = 300
_MOST_NOTES = 20
_MOST_SHOWN = 1_500


def page(report: Report) -> str:
    """The whole page."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Audit of masks</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            *_head(report),
            *_table(report),
            *_findings("Errors", report, ERRORS, _MOST_ERRORS),
            *_findings("Notes", report, NOTES, _MOST_NOTES),
            *_others(report),
            "</body>\n</html>\n",
        ]
    )


def _head(report: Report) -> Iterator[str]:
    options = ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in report.options.items()
        if value is not None
    )
    yield "<h1>Audit of masks</h1>"
    yield (
        f"<p>{len(report.outcomes):,} schemas, {len(report.engines):,} engines, "
        f"{len(report.errors):,} proved errors.</p>"
    )
    yield f'<p class="quiet">{_text(options)}; {report.seconds:,.0f} s</p>'


def _table(report: Report) -> Iterator[str]:
    heads = "".join(
        f"<th>{_text(f'{name} {version}'.strip())}</th>" for name, version in report.engines.items()
    )
    yield f'<div class="wide"><table>\n<thead><tr><th></th>{heads}</tr></thead>\n<tbody>'
    for title, rows in report.tables().items():
        if rows:
            yield f'<tr><th colspan="{len(report.engines) + 1}">{_text(title)}</th></tr>'
        for name, numbers in rows:
            meaning = {**STATUSES, **ERRORS, **NOTES}.get(name, "")
            some = name in ERRORS or name == "errors"
            cells = "".join(
                f'<td class="some">{number:,}</td>' if some and number else f"<td>{number:,}</td>"
                for number in numbers
            )
            yield f'<tr><td title="{_text(meaning)}">{_text(name)}</td>{cells}</tr>'
    yield "</tbody></table></div>"


def _findings(title: str, report: Report, kinds: Iterable[str], most: int) -> Iterator[str]:
    for engine in report.engines:
        found = [one for one in report.findings if one.engine == engine and one.kind in kinds]
        if not found:
            continue
        yield f"<h2>{title}: {_text(engine)}</h2>"
        for finding in found[:most]:
            yield from _finding(finding)
        if len(found) > most:
            yield f'<p class="quiet">and {len(found) - most:,} more, in the JSON</p>'


def _finding(finding: Finding) -> Iterator[str]:
    sort = "kind" if finding.is_error else "kind of-note"
    yield (
        f'<article><h3><span class="{sort}">{_text(finding.kind)}</span> '
        f"{_text(finding.schema)}</h3>\n<p>{_text(finding.why)}</p>"
    )
    yield f"<pre>{_text(_end_of(finding.text))}<mark>{_text(finding.token_text)}</mark></pre>"
    if finding.witness is not None:
        yield (
            "<details><summary>the text of the witness</summary>"
            f"<pre>{_text(finding.witness[:_MOST_SHOWN])}</pre></details>"
        )
    if finding.script:
        yield (
            "<details><summary>replay it with this engine alone</summary>"
            f"<pre>{_text(finding.script, is_code=True)}</pre></details>"
        )
    yield "</article>"


def _others(report: Report) -> Iterator[str]:
    rows = [
        (name, engine, outcome)
        for name, row in report.outcomes.items()
        for engine, outcome in row.items()
        if outcome.status not in ("clean", "errors")
    ]
    if not rows:
        return
    yield f"<details><summary>{len(rows):,} schemas that were not looked at whole</summary>"
    yield '<div class="wide"><table><tbody>'
    for name, engine, outcome in rows:
        cells = (name, engine, outcome.status, outcome.why[:120])
        yield "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div></details>"


def _end_of(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else "..." + text[-_MOST_SHOWN:]


def _text(text: str, *, is_code: bool = False) -> str:
    return escape(text if is_code else visible(text))
