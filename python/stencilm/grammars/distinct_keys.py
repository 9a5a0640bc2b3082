"""Keys of dicts that are read as one, though they are written in several ways.

One idea: a dict keeps one of several equal keys, and what the model wrote under the others would be
lost without a word. A grammar writes the keys of a type in one way each, but those of a union may
be read by another of its types: of `IPv6Address | str` the second one takes every spelling. And a
validator of the user's may make one value of several. So such keys are read once more, and a text
that would lose one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import SchemaValidator, ValidationError

from stencilm.grammars.json_places import OBJECTS, Places, parts


class DistinctKeys:
    """The dicts of a type whose keys are read by a union, or by a function."""

    def __init__(self, places: Places, schema: Any) -> None:
        self._places = places
        self._readers: dict[int, SchemaValidator] = {}
        for part in parts(schema):
            keys = part.get("keys_schema") if part.get("type") in OBJECTS else None
            if keys is not None and any(map(_makes_equal, parts(keys))):
                self._readers[id(part)] = self._reader(keys)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._readers)

    def check(self, text: str) -> None:
        """Raise ValueError where a dict that is read from a JSON text would lose a key."""
        try:
            value = json.loads(text, parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            return  # pydantic says what is wrong with it
        for place in self._places.of(value, dict):
            read = self._readers.get(id(place.schema))
            if read is not None and place.is_sure and isinstance(place.value, dict):
                _check(read, list(place.value))

    def _reader(self, keys: Any) -> SchemaValidator:
        schema: Any = {"type": "dict", "keys_schema": keys, "values_schema": {"type": "int"}}
        if self._places.definitions:
            definitions = list(self._places.definitions.values())
            schema = {"type": "definitions", "schema": schema, "definitions": definitions}
        return SchemaValidator(schema)


def _makes_equal(schema: Mapping[str, Any]) -> bool:
    """Whether texts that a grammar tells apart may be read as equal values."""
    kind = schema.get("type")
    return isinstance(kind, str) and (kind.endswith("union") or kind.startswith("function-"))


def _check(read: SchemaValidator, keys: list[str]) -> None:
    def numbers_of(keys: dict[str, int]) -> dict[Any, int]:
        return dict(read.validate_json(json.dumps(keys)))

    try:
        found = numbers_of({key: number for number, key in enumerate(keys)})
        if len(found) == len(keys):
            return
        first = min({*range(len(keys))} - {*found.values()})
        (value,) = numbers_of({keys[first]: first})
    except ValidationError:
        return  # the type says so itself
    raise ValueError(
        f"two keys of one object, {keys[first]!r:.100} and {keys[found[value]]!r:.100}, are both "
        f"read as {value!r:.100}: a dict can hold one of them"
    )
