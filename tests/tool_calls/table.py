"""The table of families in the documentation, made from the data.

`python -m tool_calls.table`, run in `tests`, writes it anew into `docs/tool-calls.md`.
"""

from __future__ import annotations

import json
from pathlib import Path

from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.registry import model_structural_tags
from stencilm.tool_calls.writer import write_calls
from tool_calls import checked, rendered

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tool-calls.md"
BEGIN, END = "<!-- families: begin -->\n", "<!-- families: end -->\n"
CALL = ("weather", {"city": "Rome"})
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
HARMONY = (
    "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>"
    '{"city": "Rome"}<|call|>'
)


def table() -> str:
    """The table as Markdown."""
    templates: dict[str, list[str]] = {}
    for model, entry in json.loads(rendered.TABLE.read_text()).items():
        templates.setdefault(entry["family"], []).append(model)
    lines = [
        "| family | models | a call | chat templates | vLLM | SGLang |",
        "|---|---|---|---|---|---|",
    ]
    for family, models in model_structural_tags().items():
        if family not in TEMPLATES and family != "harmony":
            continue  # registered by somebody else
        template = TEMPLATES.get(family)
        call = write_calls(template, [CALL], {CALL[0]: SCHEMA}) if template else HARMONY
        cells = [
            f"`{family}`",
            ", ".join(_shown(model) for model in models),
            _shown(call.replace("\n", "⏎")),
            ", ".join(templates.get(family, [])),
            _parser("vllm", family, checked.VLLM),
            _parser("sglang", family, checked.SGLANG),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _parser(package: str, family: str, parsers: dict[str, str]) -> str:
    if family not in parsers:
        return ""
    whys = {why for (one, _), why in checked.NOT_READ[package].items() if one == family}
    return f"`{parsers[family]}`" + "".join(f", which {why}" for why in sorted(whys))


def _shown(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def page(text: str) -> str:
    """The page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
