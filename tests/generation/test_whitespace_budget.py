"""A budget of whitespace for the whole text, beside the bound for one run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, Field

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

BYTES = TokenizerInfo([*(bytes([byte]) for byte in range(256)), "</s>"], stop_token_ids=[256])
# Whitespace at the end, at the beginning and within tokens, and such as ends a string first.
WORDS = TokenizerInfo(
    [*(bytes([byte]) for byte in range(256)), b", ", b": ", b' "', b'": ', b'", "', b"    ",
     b"\n  ", b"{ ", b"a b", b" 1", b'\\" ', "</s>"],
    stop_token_ids=[267],
)  # fmt: skip
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"a b": {"enum": ['" ', "x y"]}, "size": {"type": "integer"}},
        "required": ["a b", "size"],
        "additionalProperties": False,
    },
    "minItems": 4,
    "maxItems": 6,
}


def between(text: bytes) -> int:
    """The slow twin: the whitespace of a JSON text, less that in its strings."""
    count, at = 0, 0
    while at < len(text):
        if text[at : at + 1] == b'"':
            at += 1
            while at < len(text) and text[at : at + 1] != b'"':
                at += 2 if text[at : at + 1] == b"\\" else 1
        count += text[at : at + 1] in (b" ", b"\t", b"\n", b"\r")
        at += 1
    return count


def bits_of(mask: Any, size: int) -> list[int]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[:size]).tolist()


def drawn(matcher: GrammarMatcher, info: TokenizerInfo, seed: int) -> bytes:
    """A text of a model that likes whitespace."""
    random = np.random.default_rng(seed)
    mask = np.zeros(-(-info.vocab_size // 32), dtype=np.int32)
    text = b""
    while not matcher.is_terminated():
        matcher.fill_next_token_bitmask(mask)
        tokens = bits_of(mask, info.vocab_size)
        blank = [token for token in tokens if b" " in info.decoded_vocab[token]]
        token = int(random.choice(blank if blank and random.random() < 0.7 else tokens))
        assert matcher.accept_token(token)
        text += info.decode_bytes([token])
        assert matcher.whitespace_budget_left is None or (
            matcher.whitespace_budget_left == (matcher.whitespace_budget or 0) - between(text)
        )
        assert len(text) < 20_000
    return text


@pytest.mark.parametrize("info", [BYTES, WORDS], ids=["bytes", "words"])
def test_no_text_has_more(info: TokenizerInfo) -> None:
    compiled = GrammarCompiler(info).compile(Grammar.from_json_schema(SCHEMA))
    free = [between(drawn(GrammarMatcher(compiled), info, seed)) for seed in range(3)]
    assert min(free) > 60
    for budget in (0, 1, 2, 7, 30, 60):
        for seed in range(3):
            text = drawn(GrammarMatcher(compiled, whitespace_budget=budget), info, seed)
            assert 4 <= len(json.loads(text)) <= 6
            assert between(text) <= budget
    used = drawn(GrammarMatcher(compiled, whitespace_budget=30), info, 1)
    assert between(used) == 30  # whitespace is not kept back before


def test_both_budgets_are_kept() -> None:
    compiled = GrammarCompiler(WORDS).compile(Grammar.from_json_schema(SCHEMA))
    shortest = GrammarMatcher(compiled).tokens_to_end()
    for tokens in range(shortest, shortest + 40, 5):
        matcher = GrammarMatcher(compiled, token_budget=tokens, whitespace_budget=0)
        text = drawn(matcher, WORDS, tokens)
        json.loads(text)
        assert matcher.num_accepted_tokens - 1 <= tokens  # the stop token is not counted


def test_what_must_come_comes() -> None:
    grammar = Grammar.from_json_schema(SCHEMA, any_whitespace=False)
    matcher = GrammarMatcher(GrammarCompiler(BYTES).compile(grammar), whitespace_budget=2)
    text = drawn(matcher, BYTES, 0)
    assert text == json.dumps(json.loads(text), ensure_ascii=False).encode()
    assert matcher.whitespace_budget_left is not None and matcher.whitespace_budget_left < 0


def test_masks_forks_and_rollback_agree() -> None:
    compiled = GrammarCompiler(WORDS).compile(Grammar.from_json_schema(SCHEMA))
    matcher = GrammarMatcher(compiled, whitespace_budget=3)
    mask = np.zeros(-(-WORDS.vocab_size // 32), dtype=np.int32)
    patched = mask.copy()
    for text, left in (("[ {", 2), ('  "a', 0), (' b": "', -1), ('\\" ", "size":1', -2)):
        before = matcher.num_accepted_tokens
        for _ in range(2):  # and once more after it was taken back
            assert matcher.accept_string(text)
            assert matcher.whitespace_budget_left == left
            other = matcher.fork()
            other.fill_next_token_bitmask(mask)
            allowed = set(bits_of(mask, WORDS.vocab_size))
            assert allowed == {
                token for token in range(WORDS.vocab_size) if matcher.is_allowed(token)
            }
            patch = matcher.find_mask_patch()
            WORDS.fill_mask_row(patch.row, patched)
            found = set(bits_of(patched, WORDS.vocab_size)) ^ set(patch.flipped)
            assert found == allowed
            matcher.rollback(matcher.num_accepted_tokens - before)
        assert matcher.accept_string(text)


class Row(BaseModel):
    name: str = Field(max_length=8)
    sizes: list[int] = Field(max_length=3)


def test_calls_take_it() -> None:
    pytest.importorskip("transformers")
    model = stencilm.load("tiny")
    options: dict[str, Any] = {"temperature": 3.0, "max_tokens": 200}
    for seed in range(3):
        for budget in (0, 3):
            generation = model.generate(
                "Rows:\n", list[Row], seed=seed, whitespace_budget=budget, **options
            )
            assert generation.error is None
            assert between(generation.text.encode()) <= budget
            many = model.generate_batch(
                ["Rows:\n", "Row:"], list[Row], seed=seed, whitespace_budget=budget, **options
            )
            assert all(between(one.text.encode()) <= budget for one in many)
    assert model("Once ", str, max_tokens=5, whitespace_budget=0) == model(
        "Once ", str, max_tokens=5
    )


def test_loops_of_transformers_take_it() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    model = stencilm.load("tiny")
    backend: Any = model.backend
    compiled = model.compile(list[Row])
    inputs = backend.tokenizer("Rows:\n", return_tensors="pt")
    options: dict[str, Any] = {"max_new_tokens": 80, "do_sample": True, "temperature": 3.0}
    for seed in range(3):
        torch.manual_seed(seed)
        processor = stencilm.LogitsProcessor(compiled, max_new_tokens=80, whitespace_budget=1)
        custom = stencilm.CustomGenerate(compiled, whitespace_budget=1)
        for how in (
            {"logits_processor": [processor.__copy__()]},
            {"custom_generate": custom.__copy__()},
        ):
            ids = backend.model.generate(**inputs, **how, **options)
            start = inputs["input_ids"].shape[1]
            text = backend.tokenizer.decode(ids[0, start:], skip_special_tokens=True)
            json.loads(text)
            assert between(text.encode()) <= 1
    for make in (stencilm.LogitsProcessor, stencilm.CustomGenerate):
        with pytest.raises(ValueError, match="whitespace_budget is -1"):
            make(compiled, whitespace_budget=-1)


def fond_of_whitespace() -> stencilm.Model:
    """A model that writes whitespace wherever it may."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    model = stencilm.load("tiny")
    backend: Any = model.backend
    vocab = model.tokenizer_info.decoded_vocab
    likes = [30.0 * (text != b"" and not text.strip(b" \t\n\r")) for text in vocab]
    bias = torch.tensor(likes + [0.0] * (backend.model.lm_head.out_features - len(likes)))
    backend.model.lm_head.bias = torch.nn.Parameter(bias)
    return model


def test_beams_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fond_of_whitespace()
    monkeypatch.setattr("stencilm.models.model.by_value", lambda texts, output: texts)
    options: dict[str, Any] = {"beams": 3, "max_tokens": 50}
    for budget in (None, 0, 4):
        found = model.beam_search("Rows:\n", list[int], whitespace_budget=budget, **options)
        blanks = [between(str(text).encode()) for text, _ in found]
        assert found and (min(blanks) > 4 if budget is None else max(blanks) <= budget)
    with pytest.raises(ValueError, match="whitespace_budget is -1"):
        model.beam_search("Rows:\n", list[int], whitespace_budget=-1)


def test_batches_of_ray_keep_it() -> None:
    engines = pytest.importorskip("stencilm.integrations.ray.engines")
    model = fond_of_whitespace()
    for budget in (None, 0, 4):
        given = {"max_tokens": 50} | ({} if budget is None else {"whitespace_budget": budget})
        answers = engines.OwnEngine(model, list[int], given).write(["Rows:\n", "Row:"], [1, 2])
        blanks = [between(answer.text.encode()) for answer in answers]
        assert min(blanks) > 4 if budget is None else max(blanks) <= budget


def test_budgets_that_are_none() -> None:
    compiled = GrammarCompiler(BYTES).compile(Grammar.from_json_schema(SCHEMA))
    for wrong in (-1, "3", 1.5):
        with pytest.raises((TypeError, ValueError, OverflowError), match="whitespace_budget"):
            GrammarMatcher(compiled, whitespace_budget=wrong)  # type: ignore[arg-type]
    pytest.importorskip("transformers")
    model = stencilm.load("tiny")
    with pytest.raises(ValueError, match="whitespace_budget is -1"):
        model("A number:", int, whitespace_budget=-1)
    with pytest.raises(ValueError, match="whitespace_budget"):
        model("A number:", int, whitespace_budget=1, sampling="exact")
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url="http://localhost:1/v1", api_key="none")
    with pytest.raises(stencilm.UnsupportedFeature, match="whitespace_budget"):
        stencilm.from_openai(client, "m")("A number:", int, whitespace_budget=1)
