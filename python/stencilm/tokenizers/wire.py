"""A vocabulary as one line of JSON, with a version and a checksum of everything before it.

The bytes of all tokens are one base64 string, with a list of their lengths; -1 stands for None.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Any

from stencilm.errors import TokenizerError

FORMAT = "stencilm.TokenizerInfo"
VERSION = 1
_CHECKSUM = ',"checksum":"'


def write(fields: dict[str, Any], tokens: Sequence[bytes | None]) -> str:
    """Write a line from plain fields and the tokens."""
    payload = {
        "format": FORMAT,
        "version": VERSION,
        **fields,
        "lengths": [-1 if token is None else len(token) for token in tokens],
        "bytes": b64encode(b"".join(token for token in tokens if token)).decode(),
    }
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))[:-1]
    return f'{body}{_CHECKSUM}{_digest(body)}"}}'


def read(text: str) -> tuple[dict[str, Any], list[bytes | None]]:
    """The fields and tokens of a line that `write` made.

    Raises:
        TokenizerError: The text was cut short, changed, made by another version, or is something
            else.
    """
    try:
        payload = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise TokenizerError(
            f"this is no whole serialised TokenizerInfo ({error}); it was cut short or changed, so "
            "write it again"
        ) from error
    if not isinstance(payload, dict) or payload.get("format") != FORMAT:
        raise TokenizerError(
            f"this JSON is no {FORMAT}; give the text that serialize_json() returned"
        )
    if payload.get("version") != VERSION:
        raise TokenizerError(
            f"this TokenizerInfo was written in version {payload.get('version')!r} of the format, "
            "and this release reads "
            f"version {VERSION}; write it again with this release"
        )
    body, found, rest = text.rpartition(_CHECKSUM)
    if not found or rest != f'{_digest(body)}"}}':
        raise TokenizerError(
            "the checksum of this TokenizerInfo does not match; it was changed, so write it again"
        )
    lengths = payload["lengths"]
    joined = b64decode(payload["bytes"], validate=True)
    if sum(max(0, length) for length in lengths) != len(joined):
        raise TokenizerError(
            "the lengths of this TokenizerInfo's tokens do not add up to its bytes; write it again"
        )
    ends = accumulate((max(0, length) for length in lengths), initial=0)
    spans = zip(lengths, pairwise(ends), strict=True)
    return payload, [None if length < 0 else joined[start:end] for length, (start, end) in spans]


def _digest(body: str) -> str:
    return sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
