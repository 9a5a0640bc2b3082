"""Regular expressions of the addresses that pydantic reads as `EmailStr` and `NameEmail`.

One idea: an address is written exactly as it is read, so that a text equals its value. So it has no
quotes or brackets, its domain is in lowercase, and so is a mailbox whose case does not matter, such
as `info`. pydantic leaves the rules to the package email-validator. That requires a dot in the name
after the `@`, and refuses special-use domains, to which no mail is sent.
"""

from __future__ import annotations

from pydantic.json_schema import JsonSchemaValue

_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_LAST_LABEL = "(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z])|[a-z])"
_ADDRESS = rf"{_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LAST_LABEL}"
_MOST = 254
_MOST_BEFORE_THE_SIGN = 64
# Two hyphens there mark Punycode, which email-validator cannot always decode, or have no meaning.
_WITH_HYPHENS = "@(?:[^@]*[.])?[^@.]{2}--[^@]*$"

# Letters that have long been in Python's Unicode tables; names in other scripts are quoted.
_LETTERS = "À-ÖØ-öø-ɏΑ-ΡΣ-ώЀ-ҁҊ-ԯぁ-ゖァ-ヺ一-龥가-힣"
_WORD = f"[A-Za-z0-9{_LETTERS}!#$%&'*+./=?^_`{{|}}~-]{{1,64}}"
_NAME = f'(?:{_WORD}(?: {_WORD}){{0,8}}|"[^"\\x00-\\x1f\\x7f]{{1,200}}")'


def email_schema() -> JsonSchemaValue:
    """The texts that `EmailStr` reads and leaves unchanged."""
    return {"maxLength": _MOST, "allOf": _rules(f"^{_ADDRESS}$", "^", "$")}


def name_email_schema() -> JsonSchemaValue:
    """The texts that `NameEmail` reads: an address, or a name before one in angle brackets."""
    bracketed = _rules(f"^{_NAME} <{_ADDRESS}>$", "<", ">$")
    in_brackets = f"<[^<>]{{3,{_MOST}}}>$"
    return {"anyOf": [email_schema(), {"allOf": [*bracketed, {"pattern": in_brackets}]}]}


def _rules(whole: str, before: str, behind: str) -> list[JsonSchemaValue]:
    from email_validator import SPECIAL_USE_DOMAIN_NAMES

    reserved = "|".join(name.replace(".", r"\.") for name in SPECIAL_USE_DOMAIN_NAMES)
    rules: list[JsonSchemaValue] = [
        {"pattern": whole},
        {"pattern": f"{before}[^@<]{{1,{_MOST_BEFORE_THE_SIGN}}}@[^@]*$"},
        {"not": {"pattern": _WITH_HYPHENS}},
        {"not": {"pattern": f"{before}(?:{_known_mailboxes()})@[^@]*$"}},
    ]
    if reserved:
        rules.append({"not": {"pattern": f"[@.](?:{reserved}){behind}"}})
    return rules


def _known_mailboxes() -> str:
    """Mailboxes whose case does not matter, with a capital: these would be read in lowercase."""
    try:
        from email_validator.rfc_constants import CASE_INSENSITIVE_MAILBOX_NAMES as names
    except ImportError:  # this version leaves them unchanged
        return r"[^\s\S]"
    alternatives = []
    for name in names:
        either = [f"[{letter}{letter.upper()}]" for letter in name]
        alternatives += [
            name[:first] + name[first].upper() + "".join(either[first + 1 :])
            for first in range(len(name))
        ]
    return "|".join(alternatives)
