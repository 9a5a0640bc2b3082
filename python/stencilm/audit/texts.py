"""Texts to read: values in several spellings, values close to others, random values of a schema.

None of them is assumed to be valid because of how it was made: the validator decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

from stencilm.audit.schemas import with_parts

Orders = dict[int, list[list[str]]]
"""The keys of each object, by its `id`, in the order of the schemas."""
_ADDED_KEY = "zz"
_DEEPEST = 5


class Writing(NamedTuple):
    """A way to spell values."""

    name: str
    comma: str = ", "
    colon: str = ": "
    is_ordered: bool = False
    """Whether keys are in the order of the object's schemas."""
    is_ascii: bool = False


WRITINGS = (
    Writing("as Python writes it"),
    Writing("without white space", ",", ":"),
    Writing("keys in the order of the schema", is_ordered=True),
    Writing("keys in the order of the schema, without white space", ",", ":", is_ordered=True),
    Writing("keys in the order of the schema, with escapes", is_ordered=True, is_ascii=True),
)
"""The spellings in which a refused text is tried until one is accepted; then come other orders."""


def write(value: Any, writing: Writing, orders: Orders) -> str:
    """A value as JSON. Numbers have no exponent, and whole ones no point."""
    return "".join(part for part, _ in _parts(value, writing, orders))


Place = tuple[dict[str, Any], int]
"""An object, and the index of one of its keys, in the order of writing."""


def _parts(value: Any, writing: Writing, orders: Orders) -> Iterator[tuple[str, Place | None]]:
    """The pieces of a written value; those at which a key begins have its position."""
    if isinstance(value, dict):
        yield "{", None
        for index, key in enumerate(_ordered(value, writing, orders)):
            yield writing.comma if index else "", (value, index)
            yield json.dumps(key, ensure_ascii=writing.is_ascii) + writing.colon, None
            yield from _parts(value[key], writing, orders)
        yield "}", None
    elif isinstance(value, list):
        yield "[", None
        for index, one in enumerate(value):
            yield writing.comma if index else "", None
            yield from _parts(one, writing, orders)
        yield "]", None
    elif isinstance(value, float):
        yield str(int(value)) if value.is_integer() else f"{Decimal(repr(value)):f}", None
    else:
        yield json.dumps(value, ensure_ascii=writing.is_ascii), None


def _ordered(value: dict[str, Any], writing: Writing, orders: Orders) -> list[str]:
    if not writing.is_ordered:
        return list(value)
    listed = dict.fromkeys(key for keys in orders.get(id(value), ()) for key in keys)
    ranks = {key: rank for rank, key in enumerate(listed)}
    return sorted(value, key=lambda key: ranks.get(key, len(ranks)))


class OrderSearch:
    """Tries further orders of the keys of a value, guided by where each text was refused.

    The key at which a text is refused is exchanged for the next key of its object that was not
    tried there. If all were tried, the search goes back to the key before it.
    """

    def __init__(self, value: Any, orders: Orders) -> None:
        self._value, self._writing = value, Writing("", is_ordered=True)
        self._orders: Orders = dict(orders)
        self._tried: dict[tuple[int, tuple[str, ...]], set[str]] = {}

    def text(self) -> str:
        """The value in the next order."""
        return write(self._value, self._writing, self._orders)

    def refused(self, at: int) -> bool:
        """Report after how many bytes the text was refused.

        Returns whether another order is left.
        """
        places, length = [], 0
        for part, place in _parts(self._value, self._writing, self._orders):
            if place is not None:
                places.append(place)
            length += len(part.encode())
            if length > at:
                break
        for value, index in reversed(places):
            keys = _ordered(value, self._writing, self._orders)
            tried = self._tried.setdefault((id(value), tuple(keys[:index])), set())
            tried.add(keys[index])
            left = [key for key in keys[index:] if key not in tried]
            if left:
                rest = [key for key in keys[index:] if key != left[0]]
                self._orders[id(value)] = [[*keys[:index], left[0], *rest]]
                return True
        return False


def split(text: bytes, ids: dict[bytes, int], longest: int, random: Random) -> list[int] | None:
    """Split a text into random tokens; None if some part of it has no token."""
    tokens, at = [], 0
    while at < len(text):
        ends = [
            end for end in range(at + 1, min(len(text), at + longest) + 1) if text[at:end] in ids
        ]
        if not ends:
            return None
        end = random.choice(ends)
        tokens.append(ids[text[at:end]])
        at = end
    return tokens


def changed(value: Any, random: Random) -> Any:
    """A copy of a value that differs at one place."""
    value = json.loads(json.dumps(value))
    places = list(_places(value))
    container, key = random.choice(places) if places else (None, None)
    if container is None or random.random() < 0.1:
        return _other(value, random)
    old = container[key]
    kind = random.randrange(5)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, dict):
        container[_ADDED_KEY] = random.choice([1, "a", None, old])
    elif kind == 1:
        container.insert(random.randrange(len(container) + 1), old)
    elif kind == 2 and isinstance(container, dict):
        keys = list(container)
        random.shuffle(keys)
        members = {one: container[one] for one in keys}
        container.clear()
        container.update(members)
    else:
        container[key] = _other(old, random)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            keys = list(one) if isinstance(one, dict) else range(len(one))
            for key in keys:
                yield one, key
                waiting.append(one[key])


def _other(value: Any, random: Random) -> Any:
    if isinstance(value, bool) or value is None:
        return random.choice([True, False, None, 0, ""])
    if isinstance(value, int | float):
        return random.choice([value + 1, value - 1, -value, 0, value / 2, str(value)])
    if isinstance(value, str):
        return random.choice(["", value + "a", value[:-1], value * 2, 7, "é"])
    if isinstance(value, list):
        return random.choice([[], value + value, value[:1], {}])
    return random.choice([{}, [], None, {key: value[key] for key in list(value)[:1]}])


def draw(schema: Any, random: Random) -> Any:
    """A random value that is likely to be valid under a schema."""
    return _draw(schema, schema, random, _DEEPEST)


def _draw(schema: Any, root: Any, random: Random, depth: int) -> Any:
    schema = _resolved(schema, root)
    if not isinstance(schema, dict):
        return random.choice([1, "a", None])
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return random.choice(schema["enum"])
    for keyword in ("oneOf", "anyOf", "allOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches and depth > 0:
            chosen = branches if keyword == "allOf" else [random.choice(branches)]
            joined = {key: one for key, one in schema.items() if key != keyword}
            for branch in chosen:
                joined = _joined(joined, _resolved(branch, root))
            return _draw(joined, root, random, depth - 1)
    types = schema.get("type")
    kind = random.choice(types) if isinstance(types, list) and types else types
    if kind is None:
        shape = ("properties", "required", "additionalProperties", "patternProperties")
        kind = "object" if any(key in schema for key in shape) else "string"
        kind = "array" if "items" in schema or "prefixItems" in schema else kind
    return _of_type(kind, schema, root, random, depth)


def _of_type(kind: Any, schema: Any, root: Any, random: Random, depth: int) -> Any:
    if kind == "object":
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        keys = dict.fromkeys([*properties, *required])
        return {
            key: _draw(properties.get(key, {}), root, random, depth - 1)
            for key in keys
            if key in required or (depth > 0 and random.random() < 0.5)
        }
    if kind == "array":
        least = schema.get("minItems", 0) if isinstance(schema.get("minItems", 0), int) else 0
        count = max(min(least, 20), random.randrange(3) if depth > 0 else 0)
        listed = schema.get("prefixItems", schema.get("items"))
        rest = schema.get("items", {})
        return [
            _draw(
                listed[place] if isinstance(listed, list) and place < len(listed) else rest,
                root, random, depth - 1,
            )
            for place in range(count)
        ]  # fmt: skip
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        low = low if isinstance(low, int | float) and not isinstance(low, bool) else 0
        step = schema.get("multipleOf", 1)
        return low + step * random.randrange(4) if isinstance(step, int) else step
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "null":
        return None
    least = schema.get("minLength", 0)
    word = _FORMATS.get(str(schema.get("format")), random.choice(["", "a", "abc", "A b"]))
    return word.ljust(min(least, 500) if isinstance(least, int) else 0, "a")


_FORMATS = {
    "date": "2024-02-29",
    "date-time": "2024-02-29T10:20:30Z",
    "time": "10:20:30Z",
    "email": "a@example.org",
    "uri": "https://example.org/a",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "127.0.0.1",
    "hostname": "example.org",
}


def _resolved(schema: Any, root: Any) -> Any:
    for _ in range(20):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        schema = root
        for part in reference[1:].split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(part) if isinstance(schema, dict) else None
    return schema


def _joined(one: dict[str, Any], other: Any) -> dict[str, Any]:
    if not isinstance(other, dict):
        return one
    joined = {**one, **other}
    for key in ("properties", "required"):
        first, second = one.get(key), other.get(key)
        if isinstance(first, dict) and isinstance(second, dict):
            joined[key] = {**first, **second}
        elif isinstance(first, list) and isinstance(second, list):
            joined[key] = [*first, *second]
    return joined


def without_formats(schema: Any) -> Any:
    """The same schema without any `format`."""
    if isinstance(schema, dict) and isinstance(schema.get("format"), str):
        schema = {key: value for key, value in schema.items() if key != "format"}
    return with_parts(schema, without_formats)
