"""Whatever may take long ends at its deadline.

How soon after it, `python -m bench.deadlines` measures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import stencilm
from bench import deadlines
from stencilm import GrammarCompiler, Limits, TokenizerInfo

MOST = 1.0
"""Ten times what is asked for, of processor time: what looks at no clock takes far longer."""


@pytest.mark.parametrize(
    "title", [title for title in deadlines.CASES if title not in deadlines.WITHOUT_DEADLINE]
)
def test_a_call_ends_at_its_deadline(title: str) -> None:
    if "took minutes" in title and not (deadlines.SHARED / "cases").is_dir():
        pytest.skip("its schema is not at hand")
    info = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
    asked = Limits(milliseconds=int(deadlines.ASKED * 1000), schema_bytes=4 << 20)
    made = GrammarCompiler(info, limits=asked)
    took, end = deadlines.timed(deadlines.CASES[title](made), made)
    assert end in ("done", "deadline", "another limit", "BatchError"), end
    assert took < MOST, (took, end)
