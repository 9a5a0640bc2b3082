"""Example grammars, one or more for each notation."""

from __future__ import annotations

from typing import NamedTuple

from stencilm.playground.questions import Notation


class Example(NamedTuple):
    """A grammar with its tables of names, and a text that demonstrates it.

    If there is text after the text, the latter fills a hole.
    """

    name: str
    notation: Notation
    grammar: str
    text: str
    names: str = ""
    behind: str = ""


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
    Example(
        "Names from a list (JSON Schema)",
        "json-schema",
        """{
  "type": "object",
  "properties": {
    "owner": { "x-stencilm-symbols": "people" },
    "days": { "type": "integer", "minimum": 1, "maximum": 30 }
  },
  "required": ["owner", "days"],
  "additionalProperties": false
}
""",
        '{"owner": "Gr',
        names='{ "people": ["Ada Lovelace", "Grace Hopper", "Edsger Dijkstra"] }',
    ),
    Example(
        "Variables that were declared (EBNF)",
        "ebnf",
        r"""root      ::= statement+
statement ::= "let " %declares("variables": [a-z]+) " = " value ";\n" | "print " value ";\n"
value     ::= %refers("variables") | [0-9]+
""",
        "let width = 7;\nlet height = 9;\nprint ",
    ),
    Example(
        "A hole in a document (JSON Schema)",
        "json-schema",
        """{
  "type": "object",
  "properties": {
    "name": { "type": "string" },
    "age": { "type": "integer" }
  },
  "required": ["name", "age"]
}
""",
        '{"name": "Ada", "a',
        behind='6, "city": "London"}',
    ),
    Example(
        "A query over two tables (SQL)",
        "sql",
        """CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  user_id INTEGER REFERENCES users(id),
  price REAL
);
""",
        "SELECT price FROM ",
    ),
)
