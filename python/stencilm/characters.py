"""Texts with lone surrogates, which Python strings may hold but UTF-8 cannot encode."""

from __future__ import annotations


def whole_characters(text: str) -> str:
    """A text without lone surrogates.

    A surrogate pair becomes its character; a lone surrogate becomes U+FFFD, like invalid UTF-8.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def check_characters(text: str, name: str, why: str) -> None:
    """Raise ValueError for a text with a lone surrogate; `why` says who cannot use it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise ValueError(
            f"{name} holds the lone surrogate {half!r} at character {error.start}, which "
            f"{why}: remove it, or write both halves of the pair"
        ) from None
