"""Grammars to begin with, one or more of each notation."""

from __future__ import annotations

from typing import NamedTuple

from stencilm.playground.questions import Notation


class Example(NamedTuple):
    """A grammar, and a text that shows something in it."""

    name: str
    notation: Notation
    grammar: str
    text: str


EXAMPLES: tuple[Example, ...] = (
    Example(
        "A person (JSON Schema)",
        "json-schema",
        """{
  "type": "object",
  "title": "A person",
  "properties": {
    "name": { "type": "string", "minLength": 1, "maxLength": 20 },
    "age": { "type": "integer", "minimum": 0, "maximum": 120 },
    "job": { "enum": ["baker", "doctor", "pilot", "teacher"] }
  },
  "required": ["name", "age", "job"],
  "additionalProperties": false
}
""",
        '{"name": "Ada", "age": 36, "job": "p',
    ),
    Example(
        "A date that breaks (regular expression)",
        "regex",
        r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
        "2024-17-03",
    ),
    Example(
        "Arithmetic (EBNF)",
        "ebnf",
        """root ::= term (("+" | "-") term)*
term ::= [0-9]{1,4} | "(" root ")"
""",
        "(12+7",
    ),
    Example(
        "A query (Lark)",
        "lark",
        """start: "SELECT " columns " FROM " NAME (" WHERE " condition)?
columns: "*" | NAME (", " NAME)*
condition: NAME " " ("=" | "<" | ">") " " NUMBER
NAME: /[a-z_]{1,16}/
NUMBER: /[0-9]{1,6}/
""",
        "SELECT name, age FROM people WHERE age > ",
    ),
    Example(
        "A tool call in free text (structural tag)",
        "structural-tag",
        """{
  "type": "structural_tag",
  "format": {
    "type": "triggered_tags",
    "triggers": ["<call"],
    "tags": [
      {
        "begin": "<call weather>",
        "content": {
          "type": "json_schema",
          "json_schema": {
            "type": "object",
            "properties": { "city": { "type": "string" } },
            "required": ["city"],
            "additionalProperties": false
          }
        },
        "end": "</call>"
      }
    ]
  }
}
""",
        'Let me look. <call weather>{"city": "Bern',
    ),
)
