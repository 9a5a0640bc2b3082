"""Options that several commands share, each described once; `notations` has those of grammars."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Tokenizer: TypeAlias = Annotated[
    str, typer.Option("--tokenizer", "-t", help="tiny, or a tokenizer's file or folder.")
]
WrittenText: TypeAlias = Annotated[
    str, typer.Option("--text", help="The text so far; - reads standard input.")
]
