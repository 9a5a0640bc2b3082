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

from pydantic_core import SchemaValidator

from stencilm.grammars.json_places import OBJECTS, Place, Places, parts


class DistinctKeys:
    """The dicts of a type whose keys are read by a union, or by a function."""

    def __init__(self, places: Places, schema: Any) -> None:
        self._places = places
        self._dicts = {
            id(part)
            for part in parts(schema)
            if part.get("type") in OBJECTS
            and any(map(_makes_equal, parts(part.get("keys_schema", {}))))
        }
        self._readers: dict[tuple[int, int], SchemaValidator] = {}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._dicts)

    def check(self, text: str) -> None:
        """Raise ValueError where a dict that is read from a JSON text would lose a key."""
        try:
            value = json.loads(text, parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            return  # pydantic says what is wrong with it
        for place in self._places.of(value, dict):
            is_dict = place.is_sure and isinstance(place.value, dict)
            if is_dict and id(place.schema) in self._dicts:
                _check(self._reader(place), list(place.value))

    def _reader(self, place: Place) -> SchemaValidator:
        """What reads the keys of a dict, each with a number."""
        known = self._readers.get((id(place.schema), id(place.config)))
        if known is None:
            known = self._new_reader(place.schema["keys_schema"], place.config)
            self._readers[id(place.schema), id(place.config)] = known
        return known

    def _new_reader(self, keys: Any, config: Any) -> SchemaValidator:
        schema: Any = {"type": "dict", "keys_schema": keys, "values_schema": {"type": "int"}}
        if self._places.definitions:
            definitions = list(self._places.definitions.values())
            schema = {"type": "definitions", "schema": schema, "definitions": definitions}
        return SchemaValidator(schema, config)


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
    except Exception:  # a function of the user's that knows keys only within their whole
        return
    raise ValueError(
        f"two keys of one object, {keys[first]!r:.100} and {keys[found[value]]!r:.100}, are both "
        f"read as {value!r:.100}: a dict can hold one of them"
    )
