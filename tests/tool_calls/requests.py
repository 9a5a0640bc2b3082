"""The tools, and calls of them, that the tests of tool calls share."""

from __future__ import annotations

from typing import Any

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["C", "F"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "exact": {"type": "boolean"},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
POINT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "x": {"type": "number"},
        "y": {"type": "number"},
        "label": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "size": {"type": "integer"}},
            "required": ["text"],
            "additionalProperties": False,
        },
    },
    "required": ["x"],
    "additionalProperties": False,
}
CLOCK: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
SCHEMAS: dict[str, dict[str, Any]] = {"weather": WEATHER, "weather_map": POINT, "clock": CLOCK}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}
    for name, schema in SCHEMAS.items()
]

Call = tuple[str, dict[str, Any]]
# Arguments in the order of their schemas.
CALLS: dict[str, list[Call]] = {
    "one": [("weather", {"city": "Rome", "days": 2})],
    "of nothing": [("clock", {})],
    "two": [("weather", {"city": "Rome", "days": 2}), ("weather_map", {"x": 1.5, "y": -2})],
    "twice the same": [("weather", {"city": "Oslo", "days": 1})] * 2,
    "all arguments": [
        (
            "weather",
            {
                "city": "Sankt Pölten",
                "days": 14,
                "unit": "F",
                "tags": ["dry", "no wind"],
                "exact": True,
                "code": "AT-3100",
            },
        )
    ],
    "nested": [("weather_map", {"x": 0, "label": {"text": "Here", "size": 3}})],
    "signs": [("weather", {"city": "a \"b\" {c} [d] & e, f: (g) = 'h'", "days": 3})],
    "letters": [("weather", {"city": "東京 — naïve 😀", "days": 3})],
}
