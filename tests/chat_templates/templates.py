"""Chat templates like those of models, each with what others do not use, and conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEMPLATES: dict[str, str] = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent / "written").glob("*.jinja"))
}

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Où?"},
        "unit": {"enum": ["C", "F"]},
        "days": {"type": "array", "items": {"type": ["integer", "null"]}},
        "place": {"type": "object", "properties": {"x": {"type": "number"}}},
    },
    "required": ["city"],
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": f"What {name} does.", "parameters": SCHEMA},
    }
    for name in ("weather", "time")
]
USER = {"role": "user", "content": "How is the weather in Köln? <b> & 'so' \"on\""}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "type": "function",
            "id": "call12345",
            "function": {"name": "weather", "arguments": {"city": "Köln", "days": [1, None]}},
        }
    ],
}
RESULT = {"role": "tool", "name": "weather", "tool_call_id": "call12345", "content": "21 °C 🌤"}
ANSWER = {"role": "assistant", "content": "<think>\nWell.\n</think>\n\n  It is 21 °C.  "}
SYSTEM = {"role": "system", "content": "  Be brief.\n"}
CONVERSATIONS: list[list[dict[str, Any]]] = [
    [USER],
    [SYSTEM, USER],
    [USER, ANSWER, USER],
    [SYSTEM, USER, CALL, RESULT, ANSWER, USER],
    [USER, {**ANSWER, "reasoning_content": "So."}, {"role": "user", "content": "a" * 3000}],
    [USER, CALL, RESULT],
    [USER, USER],
    [{"role": "strange", "content": None}, ANSWER],
    [USER, ANSWER] * 12,
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"tools": TOOLS},
    {"tools": TOOLS, "enable_thinking": False, "date_string": "1 May 2026"},
]
