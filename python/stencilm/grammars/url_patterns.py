"""The parts of URLs, as patterns: hosts that every parser of URLs reads alike, ports, users."""

from __future__ import annotations

from collections.abc import Sequence

from stencilm.grammars.format_patterns import OCTET

_WORD = "[A-Za-z0-9_-]"
# No Punycode label, because not every one can be decoded. A host whose last label is a number would
# be an address.
_LABEL = (
    f"(?:[A-WYZa-wyz0-9_]{_WORD}*"
    f"|[Xx](?:[A-MO-Za-mo-z0-9_-]{_WORD}*|[Nn](?:[A-Za-z0-9_]{_WORD}*|-(?:[A-Za-z0-9_]{_WORD}*)?)?)?)"
)
_LAST_LABEL = _LABEL.replace("A-WYZa-wyz0-9_", "A-WYZa-wyz", 1)
NAME = rf"(?:{_LABEL}\.)*{_LAST_LABEL}\.?"
HOST = rf"(?:{NAME}|{OCTET}(?:\.{OCTET}){{3}})"
PORT = "(?::(?:[0-9]{0,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
USER = "(?:[A-Za-z0-9._~!$&'()*+,;=%-]*(?::[A-Za-z0-9._~!$&'()*+,;=%:-]*)?@)?"
# Without the comma, which separates hosts.
_PART = "(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})"
USER_OF_MANY = f"(?:{_PART}+(?::{_PART}*)?@)?"
REST = "(?:[/?#][!#-;=?-Z_a-z~]*)?"


def one_of(schemes: Sequence[str]) -> str:
    """One of these schemes."""
    return (
        "(?:" + "|".join(scheme.replace("+", r"\+").replace(".", r"\.") for scheme in schemes) + ")"
    )
