"""The schemas of an audit: from a file, a folder, or the layout of MaskBench."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stencilm.errors import LimitExceeded, StencilError
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import read_json, write_json
from stencilm.shown import shown_value


class SchemaCase(NamedTuple):
    """A schema as JSON under its name, with instances as JSON that may be valid or not."""

    name: str
    schema: str
    instances: tuple[str, ...] = ()


def read_schemas(source: str | Path) -> list[SchemaCase]:
    """Read the schemas of a file or a folder, in the order of their names.

    A `.json` file is one schema; a folder is searched recursively. A line of a `.jsonl` or
    `.jsonl.gz` file is an object with `id`, `schema` and `tests`, each of which has `data`; whether
    `tests` call the data valid is ignored.

    Raises:
        TypeError: `source` is not a name.
        ValueError: There is no such file, it cannot be read, is not JSON, or contains no schema.
    """
    if not isinstance(source, str | Path):
        raise TypeError(
            f"source is {shown_value(source):.80}, but must be the name of a file or a folder"
        )
    path = Path(source)
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.name.endswith(_ENDINGS)]
        found = [case for file in files for case in _of_file(file, file.relative_to(path))]
    elif path.is_file():
        found = list(_of_file(path, Path(path.name)))
    else:
        raise ValueError(f"there is no file or folder {str(source)!r}")
    if not found:
        raise ValueError(f"{str(source)!r} has no schemas: they are in files {', '.join(_ENDINGS)}")
    return found


_ENDINGS = (".json", ".jsonl", ".jsonl.gz")


def _of_file(file: Path, name: Path) -> Iterator[SchemaCase]:
    try:
        if file.name.endswith(".json"):
            text = file.read_text(encoding="utf-8-sig")
            _read(text)
            yield SchemaCase(str(name), text)
            return
        opened = gzip.open if file.name.endswith(".gz") else open
        with opened(file, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                yield _of_row(line, number)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{str(file)!r} cannot be read as schemas: {error}") from None


_TOO_DEEP = "is nested too deeply: name inner parts in $defs and $ref them"


def _read(text: str) -> Any:
    """The value of a JSON text; raises ValueError with its name if it is nested too deeply."""
    try:
        return read_json(text)
    except RecursionError:
        pass
    try:
        Grammar.from_json_schema(text)
    except LimitExceeded as error:
        raise ValueError(str(error)) from None
    except StencilError:
        pass
    raise ValueError(f"the schema {_TOO_DEEP}")


def _of_row(line: str, number: int) -> SchemaCase:
    try:
        row = _read(line)
    except ValueError as error:
        raise ValueError(f"line {number}: {str(error).removeprefix('line 1, ')}") from None
    if not isinstance(row, dict) or not {"id", "schema"} <= row.keys():
        raise ValueError(f"line {number} is no object with id and schema")
    tests = row.get("tests", [])
    if not isinstance(tests, list) or not all(
        isinstance(test, dict) and "data" in test for test in tests
    ):
        raise ValueError(f"line {number}: tests is no list of objects with data")
    instances = tuple(write_json(test["data"]) for test in tests)
    return SchemaCase(str(row["id"]), write_json(row["schema"]), instances)


def cases_of(schemas: Iterable[Any]) -> list[SchemaCase]:
    """Schemas given as values: dictionaries, booleans, JSON texts or cases.

    Raises:
        TypeError: They are not a list, or one of them is not JSON.
    """
    if isinstance(schemas, Mapping) or not isinstance(schemas, Iterable):
        raise TypeError(
            f"schemas is a {type(schemas).__name__}, but must be a list of schemas, or the name of "
            "a file or a folder: a schema alone is [schema]"
        )
    found = []
    for number, schema in enumerate(schemas):
        if isinstance(schema, SchemaCase):
            found.append(schema)
        else:
            try:
                text = schema if isinstance(schema, str) else _dump(schema)
            except RecursionError:
                raise TypeError(f"schema {number} {_TOO_DEEP}") from None
            except (TypeError, ValueError) as error:
                raise TypeError(f"schema {number} cannot be written as JSON: {error}") from error
            found.append(SchemaCase(f"schema {number}", text))
    return found


def named_apart(cases: list[SchemaCase]) -> list[SchemaCase]:
    """The schemas with a number appended to each name that occurred before."""
    seen: Counter[str] = Counter()
    found = []
    for case in cases:
        seen[case.name] += 1
        number = seen[case.name]
        found.append(case if number == 1 else case._replace(name=f"{case.name} ({number})"))
    return found


def sampled(cases: list[SchemaCase], count: int | None, seed: int) -> list[SchemaCase]:
    """A sample by a hash of seed and name, so that a larger sample contains the smaller one."""
    if count is None or count >= len(cases):
        return cases

    def rank(case: SchemaCase) -> bytes:
        return hashlib.sha256(f"{seed} {case.name}".encode()).digest()

    chosen = {case.name for case in sorted(cases, key=rank)[:count]}
    return [case for case in cases if case.name in chosen]


_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords that map names to schemas."""
_VALUES = ("enum", "const", "default", "examples")
"""Keywords whose values contain no schemas."""


def with_parts(schema: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a schema, or of a list of them, with each immediate part changed."""
    if isinstance(schema, list):
        return [change(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            made[key] = {name: change(one) for name, one in value.items()}
        else:
            made[key] = value if key in _VALUES else change(value)
    return made


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
