"""Patterns of the texts that pydantic reads as dates, times and durations, within bounds.

Texts of the same width are ordered like their values, so a bound on a date or a time is a bound on
its text. If a bound falls within a second, or a text may have an offset, the pattern allows less
than pydantic reads, but never a text that pydantic refuses.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema

from stencilm.grammars.integer_patterns import stepped, whole_numbers

YEAR = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    f"(?:{YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_ZONE = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

# The numbers of digits keep every sum within the 999,999,999 days of a timedelta.
_DAYS = (
    "(?:1?[0-9]{1,6}Y(?:[0-9]{1,6}M)?(?:[0-9]{1,6}W)?(?:[0-9]{1,8}D)?"
    "|[0-9]{1,6}M(?:[0-9]{1,6}W)?(?:[0-9]{1,8}D)?"
    "|[0-9]{1,6}W(?:[0-9]{1,8}D)?|[0-9]{1,8}D)"
)
_SECONDS = r"[0-9]{1,8}(?:\.[0-9]{1,6})?S"
_HOURS = (
    f"(?:[0-9]{{1,6}}H(?:[0-9]{{1,7}}M)?(?:{_SECONDS})?|[0-9]{{1,7}}M(?:{_SECONDS})?|{_SECONDS})"
)
_DURATION = f"P(?:{_DAYS}(?:T{_HOURS})?|T{_HOURS})"

_BELOW_60 = "(?:[0-9]|[1-5][0-9])"
_BELOW_24 = "(?:1?[0-9]|2[0-3])"
_FRACTION = r"(?:\.[0-9]{1,6})"
_BELOW_MINUTE = f"(?:{_BELOW_60}{_FRACTION}?S)"
_BELOW_HOUR = f"(?:{_BELOW_60}M{_BELOW_MINUTE}?|{_BELOW_MINUTE})"
_BELOW_DAY = f"(?:T(?:{_BELOW_24}H{_BELOW_HOUR}?|{_BELOW_HOUR}))"
# For each unit: how a number of it is written, its length in seconds, what may follow that is less
# than one unit, and the most digits of the number.
_UNITS = (
    ("P{}D{}", 86_400, _BELOW_DAY, 8),
    ("PT{}H{}", 3_600, _BELOW_HOUR, 6),
    ("PT{}M{}", 60, _BELOW_MINUTE, 7),
    ("PT{}{}S", 1, _FRACTION, 8),
)

_DAY = datetime.timedelta(days=1)
_BOUNDS = ("ge", "gt", "le", "lt")


def date_patterns(schema: Mapping[str, Any]) -> list[str]:
    """The patterns that a date must match besides its format."""
    patterns = [f"^{YEAR}"]
    today = datetime.datetime.now(datetime.UTC).date()
    ops = {name: schema[name] for name in _BOUNDS if name in schema}
    if schema.get("now_op") == "past":
        ops["lt"] = min(ops.get("lt", today), today)
    elif schema.get("now_op") == "future":
        ops["gt"] = max(ops.get("gt", today), today)
    return patterns + [_bounded(name, f"{value}", ".*") for name, value in ops.items()]


def datetime_patterns(schema: Mapping[str, Any]) -> list[str]:
    """The pattern of a date with a time; the offset is UTC if there are bounds."""
    zone = _zone(schema)
    bounds = {name: schema[name] for name in _BOUNDS if name in schema}
    patterns = []
    for name, value in bounds.items():
        aware = value.tzinfo is not None
        if {"naive": aware, "aware": not aware}.get(schema.get("tz_constraint", ""), False):
            raise PydanticInvalidForJsonSchema(
                f"only one of {name}={value} and the values of the type has an offset: give both"
            )
        zone = "Z" if aware else ""
        text = (value.astimezone(datetime.UTC) if aware else value).isoformat()[:19]
        patterns.append(_bounded(name, text, zone, value.microsecond))
    if "now_op" in schema:
        patterns.append(_of_now(schema["now_op"]))
    return [f"^{_DATE}T{_TIME}{zone}$", *patterns]


def _of_now(op: str) -> str:
    """Before or after the present moment, whatever the offset is."""
    now = datetime.datetime.now(datetime.UTC)
    if op == "future":
        return _bounded("ge", (now + 2 * _DAY).date().isoformat(), ".*")
    days = _bounded("le", (now - 2 * _DAY).date().isoformat(), ".*")
    earlier = [step.beginning for step in stepped(now.isoformat()[:19], range)]
    return f"{days}|^(?:{'|'.join(earlier)}).*Z$"


def time_patterns(schema: Mapping[str, Any]) -> list[str]:
    """The pattern of a time; it has no offset if there are bounds."""
    zone = _zone(schema)
    patterns = []
    for name in _BOUNDS:
        if name not in schema:
            continue
        value = schema[name]
        if value.tzinfo is not None or schema.get("tz_constraint") == "aware":
            raise PydanticInvalidForJsonSchema(
                f"{name}={value} of a time with an offset is not one on its text: leave it out"
            )
        zone = ""
        patterns.append(_bounded(name, value.isoformat()[:8], "", value.microsecond))
    return [f"^{_TIME}{zone}$", *patterns]


def duration_patterns(schema: Mapping[str, Any]) -> list[str]:
    """The pattern of a duration; it is not negative if there are bounds."""
    bounds = {name: schema[name].total_seconds() for name in _BOUNDS if name in schema}
    least = max((bounds[name] for name in ("ge", "gt") if name in bounds), default=None)
    most = min((bounds[name] for name in ("le", "lt") if name in bounds), default=None)
    if least is None and most is None:
        return [f"^-?{_DURATION}$"]
    if most is None and least is not None and least <= 0:
        return [f"^{_DURATION}$"] + (["[1-9]"] if bounds.get("gt") == 0 else [])
    alternatives = []
    for unit, seconds, rest, digits in _UNITS:
        low = max(math.ceil((least or 0) / seconds), 0)
        high = 10**digits - 1
        if most is not None:
            high = min(math.floor(most / seconds), high)
        low += "gt" in bounds and low * seconds <= bounds["gt"]
        if low < high:
            alternatives.append(unit.format(whole_numbers(low, high - 1), rest))
        high -= "lt" in bounds and high * seconds >= bounds["lt"]
        if low <= high:
            alternatives.append(unit.format(whole_numbers(low, high), ""))
    if not alternatives:
        raise PydanticInvalidForJsonSchema(
            "no duration of whole seconds that is not negative is within the bounds: loosen them"
        )
    return [f"^(?:{'|'.join(alternatives)})$"]


def _zone(schema: Mapping[str, Any]) -> str:
    """The offset after a time, as the type requires it."""
    of = {"naive": "", "aware": _ZONE}
    return of.get(schema.get("tz_constraint", ""), f"{_ZONE}?")


def _bounded(name: str, text: str, rest: str, microsecond: int = 0) -> str:
    """Texts whose beginning, as wide as the bound, satisfies it; `rest` may follow the bound."""
    if name in ("ge", "gt"):
        alternatives = [
            f"{step.beginning}.*" for step in stepped(text, lambda digit: range(digit + 1, 10))
        ]
        if name == "ge" and not microsecond:
            alternatives.append(f"{text}.*")
    else:
        alternatives = [f"{step.beginning}.*" for step in stepped(text, range)]
        if name == "le" or microsecond:
            alternatives.append(f"{text}{rest}")
    return f"^(?:{'|'.join(alternatives)})$"
