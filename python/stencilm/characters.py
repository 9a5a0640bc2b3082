"""Texts with lone surrogates, which UTF-8 cannot encode, and texts cut within a character."""

from __future__ import annotations

_LONGEST = 4
"""The most bytes of a character."""


def whole_characters(text: str) -> str:
    """A text without lone surrogates.

    A surrogate pair becomes its character; a lone surrogate becomes U+FFFD, like invalid UTF-8.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_length(text: bytes) -> int:
    """The length of UTF-8 text in bytes, without an incomplete character at its end.

    Grammars are matched byte by byte, so they may refuse a character in its middle.
    """
    end = len(text)
    for behind in range(1, min(end, _LONGEST) + 1):
        byte = text[end - behind]
        if byte < 0x80:
            return end
        if byte >= 0xC0:  # the first byte of a character says how many there are
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return end if behind == length else end - behind
    return end


def shared_length(one: bytes, other: bytes) -> int:
    """The length of the common prefix in bytes, without partial characters."""
    length = next(
        (at for at, (ours, theirs) in enumerate(zip(one, other, strict=False)) if ours != theirs),
        min(len(one), len(other)),
    )
    return whole_length(one[:length])


def first_character(text: bytes) -> bytes:
    """The first character of UTF-8 text."""
    first = text[:1]
    length = 1 if first < b"\xc0" else 2 if first < b"\xe0" else 3 if first < b"\xf0" else 4
    return text[:length]


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
