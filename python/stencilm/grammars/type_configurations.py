"""Schemas of types, each part described under the configuration that pydantic reads it with.

pydantic describes a type once, wherever it is used. But it reads a type under a configuration,
which may differ between two uses. So a reference here names a type together with the configurations
that it is read under: the one around it, or its own, and the one of its whole. The latter applies
to every type that the whole uses more than once, or that is recursive. A whole is the outermost
type, or a model with a reader of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaValidator

# The settings that schemas depend on.
_READ_BY = (
    "str_min_length",
    "str_max_length",
    "str_strip_whitespace",
    "val_json_bytes",
    "validate_by_alias",
)


class _ReadBy(NamedTuple):
    """The configurations that a type is read under, as far as its schema depends on them."""

    own: tuple[Any, ...]
    whole: tuple[Any, ...]


class _Wanted(NamedTuple):
    """A type that is used more than once, to be described within a whole of this configuration."""

    definition: Any
    whole: Any


class ConfiguredSchemas(GenerateJsonSchema):
    """pydantic's writer of schemas, with one definition for each way in which a type is read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._own = self._whole = self._config
        self._definitions: dict[str, Any] = {}
        self._read_by: dict[str, list[_ReadBy]] = {}
        self._wanted: deque[_Wanted] = deque()

    @property
    def mode(self) -> Any:
        """Always "validation", even if a configuration prefers another mode: texts are read."""
        return self._mode

    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        """The schema of a whole type."""
        body = _body(schema)
        is_of_class = vars(body.get("cls", object)).get("__pydantic_core_schema__") is schema
        with self._within(body.get("config") if is_of_class else {}, is_whole=True):
            return super().generate(schema, mode)

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        """The schema of a part, or a reference to it as it is read here."""
        if schema["type"] == "definition-ref" and schema["schema_ref"] in self._definitions:
            return super().generate_inner({**schema, "schema_ref": self._want(schema)})
        with self._within(schema.get("config"), is_whole=_has_reader(schema)):
            if "ref" in schema:
                schema = {**schema, "ref": self._reference(schema["ref"])}
            return super().generate_inner(schema)

    def definitions_schema(self, schema: Any) -> JsonSchemaValue:
        """The schema of a type with definitions: parts that are used more than once."""
        for definition in schema["definitions"]:
            self._definitions[definition["ref"]] = definition
        for definition in schema["definitions"]:
            self._wanted.append(_Wanted(definition, self._whole))
        self._describe_wanted()
        described = self.generate_inner(schema["schema"])
        self._describe_wanted()
        return described

    def _describe_wanted(self) -> None:
        """Describe the queued definitions, without recursion: chains of them may be long."""
        while self._wanted:
            definition, whole = self._wanted.popleft()
            with self._within(whole, is_whole=True):
                try:
                    self.generate_inner(definition)
                except PydanticInvalidForJsonSchema as error:  # an error where it is used
                    with self._within(definition.get("config"), is_whole=_has_reader(definition)):
                        name, _ = self.get_cache_defs_ref_schema(self._reference(definition["ref"]))
                    self._core_defs_invalid_for_json_schema[name] = error

    def _want(self, schema: Any) -> Any:
        """The reference of a definition within this whole; the definition itself is queued."""
        definition = self._definitions[schema["schema_ref"]]
        whole = self._whole
        known = self._read_by.setdefault(definition["ref"], [])
        before = len(known)
        with (
            self._within(whole, is_whole=True),
            self._within(definition.get("config"), is_whole=_has_reader(definition)),
        ):
            reference = self._reference(definition["ref"])
        if len(known) > before:
            self._wanted.append(_Wanted(definition, whole))
        return reference

    def _reference(self, reference: str) -> Any:
        """A separate reference for each way in which the type is read."""
        read_by = _ReadBy(_facts(self._own), _facts(self._whole))
        known = self._read_by.setdefault(reference, [])
        if read_by not in known:
            known.append(read_by)
        number = known.index(read_by)
        # Append it to the last part, after the number of a class: that is not part of a name.
        return (
            f"{reference}{':' if reference.endswith(']') else '-'}{number}" if number else reference
        )

    @contextmanager
    def _within(self, configuration: Any, *, is_whole: bool) -> Iterator[None]:
        """Read what follows under this configuration; None for the one around it."""
        before = self._own, self._whole
        # Push it even if unchanged: pydantic may have pushed another one meanwhile.
        with self._config_wrapper_stack.push(self._own if configuration is None else configuration):
            self._own = self._config
            if is_whole:
                self._whole = self._config
            try:
                yield
            finally:
                self._own, self._whole = before


def _facts(configuration: Any) -> tuple[Any, ...]:
    return tuple(getattr(configuration, name) for name in _READ_BY)


def _body(schema: Any) -> Mapping[str, Any]:
    """The schema inside of definitions and functions around it."""
    definitions: dict[str, Any] = {}
    while True:
        if schema["type"] == "definitions":
            definitions |= {each["ref"]: each for each in schema["definitions"]}
            schema = schema["schema"]
        elif schema["type"] == "definition-ref" and schema["schema_ref"] in definitions:
            schema = definitions[schema["schema_ref"]]
        elif schema["type"].startswith("function-") and "schema" in schema:
            schema = schema["schema"]
        else:
            return schema  # type: ignore[no-any-return]


def _has_reader(schema: Mapping[str, Any]) -> bool:
    """Whether pydantic reads it with the reader of its class, as if it stood alone."""
    if schema["type"] not in ("model", "dataclass"):
        return False
    if schema["type"] == "dataclass" and "generic_origin" in schema:
        return False  # it is read by the class, whose reader serves other type arguments, too
    known = vars(schema["cls"])
    if not known.get("__pydantic_complete__", False):
        return False
    if not isinstance(known.get("__pydantic_validator__"), SchemaValidator):
        return False
    outermost = known["__pydantic_core_schema__"]
    if outermost["type"] == "definitions":
        outermost = outermost["schema"]
    # Otherwise its validators would run twice.
    return outermost["type"] not in ("function-after", "function-wrap")
