"""The schema that an endpoint is sent: one that means what the options of a grammar make of it.

One idea: an endpoint knows only the schema. Where an option gives a keyword another meaning, the
endpoint would refuse values that the grammar accepts, so the schema is written without the option.
"""

from __future__ import annotations

from typing import Any

from stencilm.grammars.json_values import plain_json, write_json
from stencilm.grammars.sources import JsonSchemaSource
from stencilm.models.joined_schemas import DATA, NAMED_SCHEMAS

_NO_SCHEMAS = DATA | {"required", "dependentRequired", "discriminator"}


def sent_schema(source: JsonSchemaSource) -> str:
    """The text of a schema; as it is where no option changes what it means."""
    options = source.options
    if not options.nullable and options.formats == "enforced":
        return source.text
    try:
        schema = plain_json(source.text)
    except (ValueError, RecursionError):  # it cannot be sent anyway
        return source.text
    todo: list[Any] = [schema]
    while todo:
        here = todo.pop()
        if isinstance(here, list):
            todo += here
        if not isinstance(here, dict):
            continue
        if options.nullable and here.pop("nullable", None) is True and "type" in here:
            types = here["type"] if isinstance(here["type"], list) else [here["type"]]
            here["type"] = [*types, *(["null"] if "null" not in types else [])]
        if options.formats == "annotation":
            here.pop("format", None)
        for name, part in here.items():
            if name in NAMED_SCHEMAS and isinstance(part, dict):
                todo += part.values()
            elif name not in _NO_SCHEMAS:
                todo.append(part)
    return write_json(schema)
