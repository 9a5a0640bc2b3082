"""Untrusted texts, made safe for display: control characters become escapes.

One idea: a model's text, a name in a schema or a server's answer may contain escape sequences,
which a terminal would obey, and direction marks, which would reorder a line.
"""

from __future__ import annotations

import json
import re
from typing import Any

from stencilm.grammars.json_values import finite_json

_LAYOUT = "\n\t"
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_NAMES = {"\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\a": "\\a", "\n": "\\n", "\t": "\\t"}


def visible(text: str, *, keep: str = _LAYOUT) -> str:
    """The text with an escape for each control character, except those in `keep`."""
    return _CONTROLS.sub(lambda match: _escape(match.group(), keep), text)


def json_text(record: Any) -> str:
    """A record as JSON, not limited to ASCII, with escapes for control characters of every kind.

    NaN and infinities, which JSON lacks, become null.
    """
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(finite_json(record), ensure_ascii=False, allow_nan=False)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _escape(character: str, keep: str) -> str:
    if character in keep:
        return character
    number = ord(character)
    plain = f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
    return _NAMES.get(character, plain)
