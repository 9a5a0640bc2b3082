"""The known families, as data: taken from their chat templates, encoders and guides.

`docs/tool-calls.md` has them in a table, with the sources that each was checked against.
"""

from __future__ import annotations

from stencilm.tool_calls.families_json import JSON_FAMILIES
from stencilm.tool_calls.families_literal import LITERAL_FAMILIES
from stencilm.tool_calls.families_marked import MARKED_FAMILIES
from stencilm.tool_calls.template import ToolTemplate

TEMPLATES: dict[str, ToolTemplate] = {**JSON_FAMILIES, **MARKED_FAMILIES, **LITERAL_FAMILIES}
