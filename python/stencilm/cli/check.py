"""`stencilm check`: says what of a schema, type or regular expression is enforced, or why not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from stencilm.cli.failure import USAGE, Failure, sentence_of
from stencilm.cli.inputs import read_limits, read_schema, read_type, shown
from stencilm.cli.options import GrammarLimits, Nullable, Pattern, TypeName
from stencilm.errors import StencilError
from stencilm.views.characters import json_text, visible


def check(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="A JSON Schema file, or - for standard input."),
    ] = None,
    schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="The same as FILE, as an option.")
    ] = None,
    type_name: TypeName = None,
    regex: Pattern = None,
    relax: Annotated[
        bool,
        typer.Option("--relax", help="Drop what a schema asks for in vain, and list what it was."),
    ] = False,
    nullable: Nullable = False,
    limits: GrammarLimits = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> int:
    """Say what of a schema, type or regular expression is enforced, or why it is refused.

    Exits with 1 when it is refused; the reason names the keyword and its place.
    """
    given = [
        name
        for name, value in (
            ("FILE", file), ("--schema", schema), ("--type", type_name), ("--regex", regex),
        )
        if value is not None
    ]  # fmt: skip
    if len(given) != 1:
        found = " and ".join(given) if given else "nothing"
        raise Failure(f"give one of FILE, --schema, --type and --regex, not {found}", USAGE)
    source = file if file is not None else schema
    try:
        bounds = read_limits(limits)
        name, grammar = _grammar(source, type_name, regex, relax, nullable, bounds)
    except (StencilError, Failure) as error:
        if as_json:
            place = getattr(error, "place", None)
            record = {"kind": type(error).__name__, "message": sentence_of(error), "place": place}
            print(json_text({"ok": False, "error": record}))
        raise
    report = grammar.report
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
    for line in _lines(name, groups):
        print(visible(line))
    return 0


def _grammar(
    source: str | None,
    type_name: str | None,
    regex: str | None,
    relax: bool,
    nullable: bool,
    bounds: Any,
) -> tuple[str, Any]:
    """What messages call the input, and its grammar."""
    from stencilm.grammars.output_types import JsonSchema, Regex, grammar_of
    from stencilm.grammars.sources import OnUnsupported

    if source is not None:
        on_unsupported: OnUnsupported = "relax" if relax else "error"
        notation = JsonSchema(read_schema(source), nullable=nullable, on_unsupported=on_unsupported)
        return shown(source), grammar_of(notation, bounds)
    if type_name is not None:
        return type_name, grammar_of(read_type(type_name), bounds)
    return "the regular expression", grammar_of(Regex(regex or ""), bounds)


def _entry(entry: Any) -> dict[str, Any]:
    return {"place": entry.place, "keyword": entry.keyword, "note": entry.note}


def _lines(name: str, groups: dict[str, list[Any]]) -> Iterable[str]:
    """The report as aligned lines, a summary first."""
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
