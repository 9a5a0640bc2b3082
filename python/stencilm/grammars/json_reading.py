"""Read JSON texts with pydantic without losing anything of them.

One idea: pydantic reads by the parsed value, which loses two things of a text: digits beyond those
of a float, and keys that become equal when read. A text that can have neither is read by pydantic
alone; any other text is read by a reader that knows what was written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stencilm.grammars.written_numbers import Marks, marks_of, reading

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import SchemaValidator


@lru_cache(maxsize=512)
def json_reader(adapter: TypeAdapter[Any]) -> Callable[[str], Any]:
    """Make a reader of JSON texts of a type that loses neither digits nor keys.

    The reader raises ValueError for a text that the type refuses, or of which it would lose
    something.
    """
    from stencilm.grammars.exact_readers import kinds_of, may_lose_keys

    schema = adapter.core_schema
    kinds, has_keys = kinds_of(schema), may_lose_keys(schema)
    known: list[SchemaValidator] = []

    def read(text: str) -> Any:
        marks = marks_of(text, kinds)
        if marks is None and not has_keys:
            return adapter.validate_json(text)
        if not known:
            from stencilm.grammars.exact_readers import exact_reader

            known.append(exact_reader(schema))
        value, unread = _read(adapter, known[0], text, marks or Marks(text, {}))
        if unread:
            # No part of the type looked at these, so read them without marks.
            marks = marks_of(text, kinds, without=unread)
            value, _ = _read(adapter, known[0], text, marks or Marks(text, {}))
        return value

    return read


def _read(
    adapter: TypeAdapter[Any], reader: SchemaValidator, text: str, marks: Marks
) -> tuple[Any, frozenset[str]]:
    """The value of a marked text, and the numbers whose marks were not looked at."""
    from pydantic import ValidationError

    with reading(marks):
        try:
            return reader.validate_json(marks.text), marks.unread
        except ValidationError as error:
            refused = error
    adapter.validate_json(text)  # raises pydantic's own message
    raise ValueError(_message(refused))


def _message(refused: ValidationError) -> str:
    """The message of an error that only the exact reader raises."""
    found = dict.fromkeys(one["msg"] for one in refused.errors(include_url=False))
    return "; ".join(found)
