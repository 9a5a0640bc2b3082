"""Schemas of types, each part described by the configuration that pydantic reads it by.

pydantic describes a type once, wherever it is held. But it reads by configurations, and two places
may differ in theirs. So a reference here is to a type and the configurations that it is read by:
that around it, or its own, and that of its whole, by which everything is read that the whole holds
more than once, or within itself. A whole is the outermost type, or a model with a reader of its
own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaValidator

# What schemas depend on.
_READ_BY = (
    "str_min_length",
    "str_max_length",
    "str_strip_whitespace",
    "val_json_bytes",
    "validate_by_alias",
)


class _ReadBy(NamedTuple):
    """The configurations that a type is read by, as far as its schema depends on them."""

    own: tuple[Any, ...]
    whole: tuple[Any, ...]


class _Wanted(NamedTuple):
    """A type that is held more than once, to be described within a whole of this configuration."""

    definition: Any
    whole: Any


class ConfiguredSchemas(GenerateJsonSchema):
    """pydantic's writer of schemas, with a definition for each way in which a type is read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._own = self._whole = self._config
        self._definitions: dict[str, Any] = {}
        self._read_by: dict[str, list[_ReadBy]] = {}
        self._wanted: deque[_Wanted] = deque()

    @property
    def mode(self) -> Any:
        """Texts are read, whichever schema a configuration would rather have shown."""
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
        """The schema of a type that holds others more than once."""
        for definition in schema["definitions"]:
            self._definitions[definition["ref"]] = definition
        for definition in schema["definitions"]:
            self._wanted.append(_Wanted(definition, self._whole))
        self._describe_wanted()
        described = self.generate_inner(schema["schema"])
        self._describe_wanted()
        return described

    def _describe_wanted(self) -> None:
        """Without recursion, because definitions are chained to any depth."""
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
        """The reference of a definition within this whole, which is described in its turn."""
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
        """A reference of its own for each way in which the type is read."""
        read_by = _ReadBy(_facts(self._own), _facts(self._whole))
        known = self._read_by.setdefault(reference, [])
        if read_by not in known:
            known.append(read_by)
        number = known.index(read_by)
        # Within the last part that is no part of a name: after the number of a class.
        return (
            f"{reference}{':' if reference.endswith(']') else '-'}{number}" if number else reference
        )

    @contextmanager
    def _within(self, configuration: Any, *, is_whole: bool) -> Iterator[None]:
        """What follows is read by this configuration; where None by that around it."""
        before = self._own, self._whole
        # Also where it is that around it: pydantic may have put another one on top meanwhile.
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
    """What a schema describes, without definitions and the functions around it."""
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
    """Whether pydantic reads it by the reader of its class, as if it stood alone."""
    if schema["type"] not in ("model", "dataclass"):
        return False
    if schema["type"] == "dataclass" and "generic_origin" in schema:
        return False  # it is read by the class, which is that of its other arguments, too
    known = vars(schema["cls"])
    if not known.get("__pydantic_complete__", False):
        return False
    if not isinstance(known.get("__pydantic_validator__"), SchemaValidator):
        return False
    outermost = known["__pydantic_core_schema__"]
    if outermost["type"] == "definitions":
        outermost = outermost["schema"]
    # Else what its validators do would be done twice.
    return outermost["type"] not in ("function-after", "function-wrap")
