"""The table of families in the documentation is the data of today."""

from __future__ import annotations

from stencilm.tool_calls.families import TEMPLATES
from tool_calls import checked, rendered, table


def test_the_table_of_the_page_is_made_from_the_data() -> None:
    text = table.PAGE.read_text()
    assert table.BEGIN in text and table.END in text
    assert table.page(text) == text, "run `python -m tool_calls.table` in tests"


def test_the_data_names_families() -> None:
    known = {*TEMPLATES, "harmony"}
    assert {*checked.VLLM, *checked.SGLANG} <= known
    assert {*rendered.FAMILIES.values()} <= known
    assert len(known) >= 40
    for package, parsers in (("vllm", checked.VLLM), ("sglang", checked.SGLANG)):
        assert {family for family, _ in checked.NOT_READ[package]} <= {*parsers}
