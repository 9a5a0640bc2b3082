"""`stencilm check`: says what of a schema, type or regular expression is enforced, or why not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from stencilm.cli.notations import GivenGrammar, reports_refusals, takes_grammar
from stencilm.views.characters import json_text, visible


@reports_refusals
@takes_grammar
def check(
    grammar: GivenGrammar,
    relax: Annotated[
        bool,
        typer.Option("--relax", help="Drop what cannot be enforced in a schema, and list it."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> int:
    """Report which keywords of a schema are enforced, or why a grammar is refused.

    Exits with 1 if it is refused; the reason names the keyword and its location.
    """
    report = grammar.grammar(on_unsupported="relax" if relax else "error").report
    groups = {
        "enforced": list(report.enforced),
        "annotation": list(report.annotations),
        "relaxed": list(report.relaxed),
    }
    if as_json:
        enforced, annotations, relaxed = ([_entry(e) for e in group] for group in groups.values())
        record = {
            "ok": True, "enforced": enforced, "annotations": annotations, "relaxed": relaxed,
        }  # fmt: skip
        print(json_text(record))
        return 0
    for line in _lines(grammar.name, groups):
        print(visible(line))
    return 0


def _entry(entry: Any) -> dict[str, Any]:
    return {"place": entry.place, "keyword": entry.keyword, "note": entry.note}


def _lines(name: str, groups: dict[str, list[Any]]) -> Iterable[str]:
    """The report as aligned lines, with a summary first."""
    counts = ", ".join(
        f"{len(entries)} {group}{'s' if group == 'annotation' and len(entries) > 1 else ''}"
        for group, entries in groups.items()
        if entries
    )
    yield f"{name}: accepted{f' ({counts})' if counts else ', and enforced as a whole'}"
    rows = [(group, _entry(entry)) for group, entries in groups.items() for entry in entries]
    place_width = max((len(str(row["place"])) for _, row in rows), default=0)
    keyword_width = max((len(str(row["keyword"])) for _, row in rows), default=0)
    for group, row in rows:
        note = row["note"] or ""
        yield (
            f"{group:<10}  {row['place']!s:<{place_width}}  {row['keyword']!s:<{keyword_width}}  "
            f"{note}"
        ).rstrip()
