"""How pydantic reads a JSON text, without what it would lose of it.

One idea: pydantic reads by what a value is, and two things of a text are lost on the way: digits of
a `Decimal` beyond those of a float, and keys that are equal once they are read. A type in which
neither can be is read by pydantic alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stencilm.grammars.exact_decimals import with_decimals_as_strings
from stencilm.grammars.json_places import Places, parts

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@lru_cache(maxsize=512)
def json_reader(adapter: TypeAdapter[Any]) -> Callable[[str], Any]:
    """What reads a JSON text as a type does, and loses no digits of a Decimal, and no keys.

    It raises ValueError for a text that the type refuses, or of which a key would be lost.
    """
    from stencilm.grammars.distinct_keys import DistinctKeys

    schema = adapter.core_schema
    places = Places(schema)
    keys = DistinctKeys(places, schema)
    has_decimals = any(part.get("type") == "decimal" for part in parts(schema))
    if not keys and not has_decimals:
        return adapter.validate_json

    def read(text: str) -> Any:
        exact = with_decimals_as_strings(places, text) if has_decimals else text
        value = adapter.validate_json(exact)
        if keys:
            keys.check(text)
        return value

    return read
