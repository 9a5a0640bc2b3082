"""Chat templates are written exactly as transformers writes them."""

from __future__ import annotations

from typing import Any

import pytest

from chat_templates.templates import CONVERSATIONS, OPTIONS, TEMPLATES, TOOLS, USER
from stencilm.chat_templates.huggingface import chat_text_of
from stencilm.models.prompts import Conversation, chat_text

pytest.importorskip("transformers")

from generation.small_models import byte_tokenizer


def outcome(write: Any, *args: Any, **options: Any) -> str:
    try:
        return str(write(*args, **options))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", TEMPLATES)
def test_texts_are_those_of_transformers(name: str) -> None:
    tokenizer = byte_tokenizer(chat_template=TEMPLATES[name])
    written = 0
    for messages in CONVERSATIONS:
        for options in OPTIONS:
            how = {"add_generation_prompt": True, **options}
            theirs = outcome(tokenizer.apply_chat_template, messages, tokenize=False, **how)
            ours = outcome(chat_text_of, tokenizer, messages, **how)
            assert ours == theirs
            written += "Error" not in theirs[:40]
    assert written >= 6


def test_templates_by_name() -> None:
    tokenizer = byte_tokenizer(
        chat_template={"default": "plain {{ tools }}", "tool_use": "tools {{ tools | length }}"}
    )
    assert chat_text(tokenizer, [USER]) == "plain None"
    assert chat_text(tokenizer, Conversation([USER], TOOLS)) == "tools 2"


def test_a_tokenizer_with_a_method_of_its_own_uses_it() -> None:
    class Tokenizer:
        chat_template = "{{ 'a' * 10**10 }}"

        def apply_chat_template(self, messages: Any, **options: Any) -> str:
            return f"{len(messages)} {sorted(options)}"

    assert chat_text(Tokenizer(), [USER]) == "1 ['add_generation_prompt', 'tokenize']"
