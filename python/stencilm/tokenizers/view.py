"""Tokens for display: separated from each other, with invisible characters escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

SEPARATOR = "\u2027"


def show_tokens(
    ids: Iterable[int], tokens: Sequence[bytes | None], names: Mapping[int, str]
) -> str:
    """Tokens with `‧` between: text escaped, special tokens by name, holes as `<[id]>`."""
    return SEPARATOR.join(_show(token_id, tokens, names) for token_id in ids)


def _show(token_id: int, tokens: Sequence[bytes | None], names: Mapping[int, str]) -> str:
    token = tokens[token_id] if token_id < len(tokens) else None
    if token is None:
        return names.get(token_id, f"<[{token_id}]>")
    text = token.decode("utf-8", "backslashreplace")
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
