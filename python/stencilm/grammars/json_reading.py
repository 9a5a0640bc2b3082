"""How pydantic reads a JSON text, without what it would lose of it.

One idea: pydantic reads by what a value is, and two things of a text are lost on the way: digits
beyond those of a float, and keys that are equal once they are read. A text in which neither can be
is read by pydantic alone, and any other one by a reader that is told what was written.
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
    """What reads a JSON text as a type does, and loses no digits and no keys.

    It raises ValueError for a text that the type refuses, or of which it would lose something.
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
            # What no part of the type has looked at is nothing, or none of the marks.
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
    adapter.validate_json(text)  # says it in the words of pydantic
    raise ValueError(_message(refused))


def _message(refused: ValidationError) -> str:
    """What only the exact reader refuses."""
    found = dict.fromkeys(one["msg"] for one in refused.errors(include_url=False))
    return "; ".join(found)
