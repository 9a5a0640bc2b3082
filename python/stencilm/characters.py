"""Texts with halves of surrogate pairs, which Python strings may hold and UTF-8 cannot spell."""

from __future__ import annotations


def whole_characters(text: str) -> str:
    """A text without such halves.

    Two that belong together are one character, and one that stands alone is U+FFFD, as where bytes
    are no UTF-8.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def check_characters(text: str, name: str, why: str) -> None:
    """Raise ValueError for a text with a half that stands alone; `why` says who cannot use it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise ValueError(
            f"{name} holds the lone surrogate {half!r} at character {error.start}, which "
            f"{why}: remove it, or write both halves of the pair"
        ) from None
