"""The options that several commands share, each described once."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

GrammarFile: TypeAlias = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help="A grammar, or - for standard input."),
]
Notation: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="NOTATION",
        help="json-schema, structural-tag, ebnf, lark or regex; else as the file is named.",
    ),
]
SchemaFile: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="A JSON Schema file, or - for standard input."),
]
Nullable: TypeAlias = Annotated[
    bool,
    typer.Option("--nullable", help="Read nullable: true in the schema as OpenAPI 3.0 does."),
]
TypeName: TypeAlias = Annotated[
    str | None,
    typer.Option("--type", metavar="MODULE:NAME", help="A Python type; file.py:Name works too."),
]
Pattern: TypeAlias = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="A regular expression.")
]
EbnfFile: TypeAlias = Annotated[
    str | None, typer.Option(metavar="FILE", help="An EBNF grammar, or - for standard input.")
]
Tokenizer: TypeAlias = Annotated[
    str, typer.Option("--tokenizer", "-t", help="tiny, or a tokenizer's file or folder.")
]
GrammarLimits: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--limits",
        metavar="NAME=NUMBER",
        help="Raise a limit that was reached, such as schema_bytes=4000000; may be given again.",
    ),
]
WrittenText: TypeAlias = Annotated[
    str, typer.Option("--text", help="The text so far; - reads standard input.")
]
