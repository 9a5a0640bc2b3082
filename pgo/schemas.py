"""JSON Schemas as people write them, each with a value that fits: what most calls of a server are.

Records of the kinds that the tiny model is trained on give the names and the values; how their
schemas are dressed - descriptions, formats, bounds, references, unions, conditions - is drawn here.
"""

from __future__ import annotations

from random import Random
from typing import Any

from training import values, words
from training.kinds import KINDS, fill, schema_of, some_keys

Schema = dict[str, Any]
Drawn = tuple[Schema, Any]

FORMATS = {
    "date": values.date,
    "date-time": lambda rng: values.date(rng) + "T10:20:30Z",
    "email": lambda rng: rng.choice(words.ANIMALS) + "@example.org",
    "uri": values.url,
    "uuid": values.uuid,
    "ipv4": values.ip_address,
    "time": lambda rng: values.clock(rng) + ":00Z",
    "hostname": lambda rng: rng.choice(words.ANIMALS).lower() + ".example.org",
    "made-up": values.title,
}
PATTERNS = (
    ("^[a-z][a-z0-9_-]*$", "a_name-1"),
    ("^[A-Z]{3}$", "EUR"),
    (r"^\d{4}-\d{2}$", "2024-11"),
    ("^#[0-9a-fA-F]{6}$", "#00ffAA"),
    ("^v?[0-9]+\\.[0-9]+(\\.[0-9]+)?$", "v1.20.3"),
    ("[^ ]", "some text"),
    ("^(https?|ftp)://.+", "https://example.org/a?b=c"),
    ("^/", "/usr/share"),
)


class Drawer:
    """Draws a schema with its value; `definitions` collects what `$ref` points at."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.definitions: dict[str, Schema] = {}

    def document(self) -> Drawn:
        shape = self.random.random()
        if shape < 0.2:
            drawn = self.plain()
        elif shape < 0.9:
            drawn = self.record(depth=3)
        else:
            drawn = self.array(depth=2)
        schema, value = drawn
        if self.random.random() < 0.5:
            dialect = self.random.choice(["http://json-schema.org/draft-07/schema#"] * 3 + [
                "https://json-schema.org/draft/2020-12/schema",
                "http://json-schema.org/draft-04/schema#",
            ])  # fmt: skip
            schema = {"$schema": dialect, **schema}
        if self.definitions:
            definitions = self.random.choice(["$defs", "definitions"])
            text = f"#/{definitions}/"
            schema = _with_references({**schema, definitions: self.definitions}, text)
        return schema, value

    def plain(self) -> Drawn:
        """What `schema_of` says of a record, in the manner of arguments of a tool."""
        kind = self.random.choice(KINDS)
        value = fill(self.random, some_keys(self.random, kind), kind)
        value = {key: member for key, member in value.items() if member is not None}
        schema = schema_of(value)
        assert isinstance(schema, dict)
        return {**schema, "required": list(value)}, value

    def draw(self, depth: int) -> Drawn:
        simple = [self.text, self.text, self.number, self.choice, self.formatted, self.patterned]
        nested = [self.record, self.array, self.array, self.union, self.reference, self.mapping]
        nested += [self.all_of, self.one_of, self.tuple]
        if depth == 0 or self.random.random() < 0.65:
            schema, value = self.random.choice([*simple, self.flag])()
        else:
            schema, value = self.random.choice(nested)(depth - 1)
        if self.random.random() < 0.5 and "$ref" not in schema:
            schema = {**schema, "description": values.sentence(self.random)}
        if self.random.random() < 0.1 and "$ref" not in schema:
            schema = {**schema, "default": value, "title": values.title(self.random)}
        return schema, value

    def text(self) -> Drawn:
        value = self.random.choice([values.sentence, values.title, values.many_scripts])(
            self.random
        )
        schema: Schema = {"type": "string"}
        shape = self.random.random()
        if shape < 0.1:
            schema["minLength"] = 1
        elif shape < 0.2:
            schema["maxLength"] = self.random.choice([255, 1000])
        return schema, value + self.random.choice(["", "", "", ' "so" \\ é\n'])

    def formatted(self) -> Drawn:
        name, maker = self.random.choice(list(FORMATS.items()))
        return {"type": "string", "format": name}, maker(self.random)

    def patterned(self) -> Drawn:
        pattern, value = self.random.choice(PATTERNS)
        return {"type": "string", "pattern": pattern}, value

    def number(self) -> Drawn:
        shape = self.random.random()
        if shape < 0.5:
            return {"type": "integer"}, self.random.randint(-5, 9999)
        if shape < 0.7:
            return {"type": "integer", "minimum": 0, "maximum": 65535}, self.random.randint(0, 9999)
        if shape < 0.9:
            return {"type": "number"}, self.random.choice([0, 1.5, -2.25e10, 17, 0.001])
        return {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}, 2.5

    def flag(self) -> Drawn:
        return {"type": "boolean"}, self.random.random() < 0.5

    def choice(self) -> Drawn:
        options = self.random.sample(words.ABSTRACT, self.random.randint(2, 8))
        if self.random.random() < 0.15:
            return {"const": options[0]}, options[0]
        schema: Schema = {"enum": options}
        return ({"type": "string"} | schema, options[-1])

    def record(self, depth: int) -> Drawn:
        kind = self.random.choice(KINDS)
        keys = some_keys(self.random, kind)
        members = {key: self.draw(depth) for key in keys}
        required = [key for key in keys if self.random.random() < 0.6]
        schema: Schema = {
            "type": "object",
            "properties": {key: member for key, (member, _) in members.items()},
        }
        value = {
            key: member
            for key, (_, member) in members.items()
            if key in required or self.random.random() < 0.6
        }
        if required:
            schema["required"] = required
        extra = self.random.random()
        if extra < 0.35:
            schema["additionalProperties"] = False
        elif extra < 0.45:
            schema["additionalProperties"] = {"type": "string"}
            value["an extra one"] = "free"
        elif extra < 0.5:
            schema["patternProperties"] = {"^x-": {}}
            schema["additionalProperties"] = False
            value["x-note"] = [1, {"a": None}]
        elif extra < 0.6:
            value["anything"] = {"else": [True, "x"]}
        if self.random.random() < 0.06:
            schema["if"] = {"properties": {keys[0]: {"const": "never"}}, "required": [keys[0]]}
            schema["then"] = {"required": [keys[-1]]}
        if self.random.random() < 0.04:
            schema["dependentRequired"] = {"other": [keys[0]]}
        if self.random.random() < 0.04:
            schema["minProperties"] = 1 if value else 0
        if self.random.random() < 0.04:
            schema["anyOf"] = [{"required": [key]} for key in value] or [{}]
        return schema, value

    def array(self, depth: int) -> Drawn:
        items, value = self.draw(depth)
        schema: Schema = {"type": "array", "items": items}
        if self.random.random() < 0.3:
            schema["minItems"] = 1
        if self.random.random() < 0.1:
            schema["maxItems"] = 20
        if self.random.random() < 0.1:
            return {**schema, "uniqueItems": True}, [value]
        return schema, [value] * self.random.randint(1, 3)

    def tuple(self, depth: int) -> Drawn:
        first, second = self.draw(depth), self.draw(depth)
        schemas, value = zip(first, second, strict=True)
        return {"type": "array", "prefixItems": list(schemas)}, list(value)

    def union(self, depth: int) -> Drawn:
        schema, value = self.draw(depth)
        name = schema.get("type")
        if isinstance(name, str) and self.random.random() < 0.4:
            return {**schema, "type": [name, "null"]}, value
        return {"anyOf": [schema, {"type": "null"}]}, value

    def one_of(self, depth: int) -> Drawn:
        branches = []
        for name in ("circle", "square"):
            schema, value = self.draw(depth)
            properties = {"type": {"enum": [name]}, "value": schema}
            branches.append({"type": "object", "properties": properties, "required": ["type"]})
        return {"oneOf": branches}, {"type": "square", "value": value}

    def all_of(self, depth: int) -> Drawn:
        (first, one), (second, two) = self.record(depth), self.plain()
        first.pop("additionalProperties", None)
        clash = set(first["properties"]) & set(second["properties"])
        if clash:
            return first, one
        return {"allOf": [first, second]}, {**one, **two}

    def mapping(self, depth: int) -> Drawn:
        schema, value = self.draw(depth)
        return {"type": "object", "additionalProperties": schema}, {"one": value, "two": value}

    def reference(self, depth: int) -> Drawn:
        schema, value = self.draw(depth)
        name = f"{self.random.choice(words.THINGS)}{len(self.definitions)}"
        self.definitions[name] = schema
        return {"$ref": name}, value


def _with_references(schema: Any, folder: str) -> Any:
    """The schema with each `$ref` to a name as a pointer into the folder of definitions."""
    if isinstance(schema, list):
        return [_with_references(each, folder) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: folder + value if key == "$ref" else _with_references(value, folder)
        for key, value in schema.items()
    }
