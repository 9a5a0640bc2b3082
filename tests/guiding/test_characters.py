"""Texts are cut between characters, though a grammar may refuse one in its middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stencilm
from endpoints.scripted import served
from stencilm.characters import whole_length
from stencilm.generation.trace import Rejected

DAYS = stencilm.Regex("[日火](本|曜|月)x")  # all but the last byte of 木 begins 本 and 月


@pytest.mark.parametrize(
    "text", ["", "a", "aé", "日本", "😀x", "x😀", "\u07ff\u0800\uffff\U00010000"]
)
def test_the_length_in_whole_characters(text: str) -> None:
    spelled = text.encode()
    for end in range(len(spelled) + 1):
        whole = spelled[:end].decode("utf-8", "ignore").encode()
        assert whole_length(spelled[:end]) == len(whole)


def test_a_complaint_shows_the_character_that_is_refused() -> None:
    result = stencilm.guide(lambda prompt: "日木x", DAYS, "Which?")
    reasons = [event.reason for event in result.trace if isinstance(event, Rejected)]
    assert reasons[0] == "nothing of the grammar goes on with '木x'"


def test_a_part_of_a_character_is_no_choice_of_a_model() -> None:
    """An endpoint that takes no notice of the bias may name a character that is not allowed."""
    openai = pytest.importorskip("openai")
    info = stencilm.TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")

    def answer(body: dict[str, Any], number: int) -> Any:
        return "木" if "logit_bias" in body else "日木x"

    with served(answer) as (address, script):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities="transformers", tokenizer_info=info)
        with pytest.raises(stencilm.ModelRefused, match="日木x"):
            model.generate("Which?", DAYS)
    assert any("logit_bias" in body for _, body in script.requests)
