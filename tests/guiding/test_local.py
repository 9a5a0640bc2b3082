"""Guiding local models: the text of masked decoding, no pass for a correction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stencilm
from generation.conftest import STOP, ByteModel, ByteSequence, spelling
from generation.small_models import byte_tokenizer, random_llama, random_mistral
from stencilm import Budget, Grammar
from stencilm.generation.trace import (
    Closed,
    Corrected,
    Ended,
    Forced,
    Healed,
    Rejected,
    Sampled,
    Trace,
)

LISTS = 'root ::= "[" item ("," item){0,5} "]"\nitem ::= "ab" | "cd" | [0-9]{1,3}'


class ManyRows(ByteSequence):
    """A sequence over bytes that checks several tokens at once."""

    def append_rows(self, token_ids: Any, rows: int) -> Any:
        before = list(self.token_ids)
        self.token_ids.extend(token_ids)
        self.model.calls.append(list(token_ids))
        ends = range(len(self.token_ids) - rows + 1, len(self.token_ids) + 1)
        assert len(before) + len(token_ids) == len(self.token_ids)
        return np.array(
            [self.model.logits_after(self.token_ids[:end]) for end in ends], dtype=np.float32
        )


class ManyRowsModel(ByteModel):
    def start(self, prompt_ids: Any) -> Any:
        return ManyRows(self, list(prompt_ids))


def wants(text: str, model: Any = ByteModel) -> Any:
    return model(spelling(text))


def guided(model: Any, grammar: Any, prompt: str = ">", **options: Any) -> stencilm.Guided:
    options.setdefault("token_healing", False)
    options.setdefault("debug", True)
    result = stencilm.guide(model, grammar, prompt, **options)
    assert isinstance(result.trace[-1], Ended)
    assert Trace.loads(result.trace.dumps()) == result.trace
    kept = [
        event.text[getattr(event, "healed", 0) :]
        for event in result.trace
        if isinstance(event, (Sampled, Forced, Corrected, Healed, Closed))
    ]
    if not options.get("seed_str") and not options.get("stop_at"):
        assert b"".join(kept).decode() == result.response
    return result


@pytest.mark.parametrize(
    ("writes", "pattern", "response", "corrections", "status"),
    [
        ("cat", "cat|dog", "cat", [], "valid"),
        ("cow", "c[ab]t|dog", "cat", [(1, "o", "a")], "valid"),
        ("xat", "cat|dog", "cat", [(0, "x", "c")], "valid"),
        ("do", "do[gh]", "dog", [(2, "</s>", "g")], "valid"),  # ends too early
        ("dogs", "dog", "dog", [], "valid"),  # nothing but the end can follow: not asked
        ("12", "[0-9]+", "12", [], "valid"),
        ("12x", "[0-9]{2,3}", "12", [(2, "x", "")], "valid"),  # the masked draw is the end
    ],
)
def test_what_is_kept_and_what_is_corrected(
    writes: str, pattern: str, response: str, corrections: list[Any], status: str
) -> None:
    if response == "12" and corrections:
        # A model that would rather stop than write any digit.
        def logits(token_ids: list[int]) -> Any:
            row = spelling("12x")(token_ids)
            row[STOP] = 4.0
            return row

        model: Any = ByteModel(logits)
    else:
        model = wants(writes)
    result = guided(model, Grammar.from_regex(pattern))
    assert (result.response, result.status) == (response, status)
    found = [(c.position, c.rejected.replace("\\", ""), c.choice) for c in result.correction_log]
    expected = [(at, "" if text == "</s>" else text, choice) for at, text, choice in corrections]
    assert found == expected
    assert result.num_grammar_corrections == len(corrections)


def test_a_correction_costs_no_pass() -> None:
    model = wants("xyz0")
    result = guided(model, Grammar.from_regex("[a-c][a-c][a-c][0-9]"), debug=False)
    assert result.num_grammar_corrections == 3
    assert result.usage.calls == len(model.calls) == 4
    assert result.usage.discarded_tokens == 3


def test_forced_text_is_read_in_one_pass() -> None:
    model = wants("abcdefg7", ManyRowsModel)
    result = guided(model, Grammar.from_regex("abcdefg[0-9]"), debug=False)
    assert result.response == "abcdefg7"
    assert result.usage.forced_tokens == 7
    assert result.usage.calls == len(model.calls) == 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_guesses_change_no_text(seed: int, temperature: float) -> None:
    """With and without several rows at once: the same tokens from the same draws."""

    def logits(token_ids: list[int]) -> Any:
        random = np.random.default_rng([seed, *token_ids[-2:]])
        row = random.normal(size=257).astype(np.float32)
        row[[ord(c) for c in "abcd0123[],"]] += 3.0
        return row

    results = [
        guided(
            model(logits), Grammar.from_ebnf(LISTS), temperature=temperature, seed=seed,
            max_grammar_corrections=999,
        )
        for model in (ByteModel, ManyRowsModel)
    ]  # fmt: skip
    assert results[0].response == results[1].response
    assert results[0].correction_log == results[1].correction_log
    assert results[1].usage.calls <= results[0].usage.calls


def test_runs_that_stood_before_are_confirmed_several_at_a_time() -> None:
    text = "[" + ",".join(["ab"] * 6) + "]"
    model = wants(text, ManyRowsModel)
    result = guided(model, Grammar.from_ebnf(LISTS))
    assert result.response == text
    assert result.usage.guessed_tokens > 0
    assert result.usage.calls < len(text) - result.usage.forced_tokens


@pytest.mark.parametrize("make", [random_llama, random_mistral])
@pytest.mark.parametrize("static_cache", [None, 64])
@pytest.mark.parametrize("pattern", ["(ab|ba|[0-9]{2}){4,12}!", '\\["x"(, "[a-z]{1,4}"){3,6}\\]'])
def test_greedy_text_is_that_of_masked_decoding(
    make: Any, static_cache: int | None, pattern: str
) -> None:
    model = stencilm.from_transformers(
        make(max_position_embeddings=64) if make is random_llama else make(),
        byte_tokenizer(),
        static_cache=static_cache,
    )
    grammar = Grammar.from_regex(pattern)
    for prompt in ("a", "hello", "[1, 2"):
        masked = model.generate(prompt, grammar, max_tokens=40, finish="cut")
        result = guided(model, grammar, prompt, max_grammar_corrections=999)
        assert result.response.startswith(masked.text)
        assert result.status == "valid"


def masked_twin(model: stencilm.Model, grammar: Any, prompt: str) -> str:
    """Greedy masked decoding with forced text, each row from a fresh pass over everything."""
    info, backend = model.tokenizer_info, model.backend
    prompt_ids = backend.encode(prompt)
    matcher = stencilm.GrammarMatcher(model.compile(grammar))
    mask = stencilm.allocate_token_bitmask(1, info.vocab_size)
    written: list[int] = []
    while True:
        forced = matcher.find_jump_forward_tokens([*prompt_ids, *written][-8:])
        for token_id in forced:
            assert matcher.accept_token(token_id)
        written += forced
        row = backend.start([*prompt_ids, *written]).append([])
        if matcher.fill_next_token_bitmask(mask, 0):
            stencilm.apply_token_bitmask_inplace(row[None, :], mask)
        token_id = int(row.argmax())
        assert matcher.accept_token(token_id)
        if matcher.is_terminated():
            return info.decode_str(written)
        written.append(token_id)


def test_the_embedded_model_writes_what_it_writes_under_a_mask() -> None:
    model = stencilm.load("tiny")
    schema = stencilm.JsonSchema(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 12},
                "tags": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 9},
                    "maxItems": 4,
                },
                "city": {"enum": ["Oslo", "Bergen"]},
            },
            "required": ["name", "tags", "city"],
            "additionalProperties": False,
        }
    )
    for prompt in ("Describe a person as JSON.\n", "A list:\n", "{"):
        result = guided(model, schema, prompt, max_grammar_corrections=999)
        assert result.response == masked_twin(model, schema, prompt)
        assert result.usage.calls <= len(model.tokenizer_info.encode(result.response))


# Ends


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_grammar_corrections": 0}, "0 corrections"),
        ({"max_grammar_corrections": 2}, "2 corrections"),
        ({"budget": Budget(tokens=2)}, "budget of 2 tokens"),
        ({"budget": Budget(calls=2)}, "budget of 2 calls"),
        ({"budget": Budget(seconds=1e-9)}, "seconds"),
    ],
)
def test_budgets_close_the_text(options: dict[str, Any], reason: str) -> None:
    result = guided(wants("[[[[[[["), Grammar.from_regex("([a-z][0-9]){3,9};"), **options)
    assert result.status == "closed"
    assert reason in result.reason
    assert result.response == "a0a0a0;"


def test_a_budget_that_ends_at_a_whole_text_is_no_closing() -> None:
    result = guided(wants("1111111"), Grammar.from_regex("[0-9]+"), budget=Budget(tokens=3))
    assert (result.response, result.status) == ("111", "valid")


def test_what_cannot_be_completed_says_so() -> None:
    grammar = Grammar.from_regex("a{100000}")
    result = guided(wants("b"), grammar, max_grammar_corrections=1, budget=Budget(tokens=5))
    assert result.status == "truncated"
    assert not result.is_valid
    assert result.response == "aaaa" or set(result.response) == {"a"}


@pytest.mark.parametrize(
    ("stop_at", "response", "status"),
    [
        (["```"], "12 ", "valid"),
        ("2", "1", "valid"),
        (["x", "`"], "12 ", "valid"),
    ],
)
def test_stop_texts_end_the_draft_and_are_left_out(
    stop_at: Any, response: str, status: str
) -> None:
    result = guided(wants("12 ```34"), Grammar.from_regex("[0-9` ]+"), stop_at=stop_at)
    assert (result.response, result.status) == (response, status)
    assert "stop text" in result.reason


def test_a_stop_text_inside_a_value_closes_it() -> None:
    result = guided(wants('"ab\n'), Grammar.from_regex('"[a-z]{3}"'), stop_at=["b"])
    assert result.status == "closed"
    assert result.response[:2] == '"a' and result.response[-1] == '"'


def test_a_full_context_closes_the_text() -> None:
    model = ByteModel(spelling("1" * 50), context_size=6)
    result = guided(model, Grammar.from_regex('"?[0-9]+;'))
    assert (result.status, result.reason) == ("closed", "the model's context is full")
    assert result.response == "1" * 6 + ";"


# Seeds, healing, choosers


def test_the_response_begins_with_the_seed() -> None:
    model = wants("?")
    result = guided(model, Grammar.from_regex("ab[0-9]c"), seed_str="ab", max_grammar_corrections=9)
    assert result.response.startswith("ab") and result.response.endswith("c")
    assert model.calls[0] == []
    with pytest.raises(stencilm.MatcherError, match=r"'abx' does not fit.*first 2 bytes"):
        guided(model, Grammar.from_regex("ab[0-9]c"), seed_str="abx")


TOKENS = [*(bytes([b]) for b in range(256)), b"http", b"://", b"http://", b":/", b"ht", b"</s>"]
IDS = {text: number for number, text in enumerate(TOKENS)}


@pytest.mark.parametrize(
    ("prompt_tokens", "likes", "response", "healed"),
    [
        ([b"x", b"http"], b"http://", "://a", b"http"),
        ([b"x", b"http", b":"], b"http://", "//a", b"http:"),
        ([b"x", b"http", b":", b"/"], b"http://", "/a", b"http:/"),  # three tokens back
        ([b"x", b"http"], b"http", "://a", b"http"),  # the tokens that were there are allowed
        ([b"x", b"q"], b"q", "://a", b""),
    ],
)
def test_healing_takes_back_any_number_of_tokens(
    prompt_tokens: list[bytes], likes: bytes, response: str, healed: bytes
) -> None:
    info = stencilm.TokenizerInfo(TOKENS, stop_token_ids=[IDS[b"</s>"]])

    def logits(token_ids: list[int]) -> Any:
        row = np.zeros(len(TOKENS), dtype=np.float32)
        row[IDS[likes]] = 3.0
        row[ord("a")] = 1.0
        return row

    model = ByteModel(logits, tokenizer_info=info)
    model.encode = lambda prompt: [IDS[token] for token in prompt_tokens]  # type: ignore[method-assign]
    result = guided(model, Grammar.from_regex(f"{response[:-1]}a"), "any", token_healing=True)
    assert result.response == response
    events = [event for event in result.trace if isinstance(event, Healed)]
    assert b"".join(event.text[: event.healed] for event in events) == healed
    without = guided(model, Grammar.from_regex(f"{response[:-1]}a"), "any", token_healing=False)
    assert without.response == response
    assert not any(isinstance(event, Healed) for event in without.trace)


def test_a_target_model_chooses_where_the_draft_fails() -> None:
    asked = []

    def target(prompt: str) -> str:
        asked.append(prompt)
        return "2"

    grammar = Grammar.from_ebnf(
        'root ::= "name " ("LIKE" | "IN" | "BETWEEN") blanks [0-9]+\nblanks ::= " "+'
    )
    result = guided(wants("name SIMILAR"), grammar, target_model=target, max_grammar_corrections=9)
    assert "1. BETWEEN" in asked[0] and "2. IN" in asked[0]
    assert result.response.startswith("name IN ")
    assert result.correction_log[0].means == "chooser"
    assert result.correction_log[0].choice.strip() == "IN"


def test_rejections_tell_token_probability_and_reason() -> None:
    result = guided(wants("x"), Grammar.from_regex("[ab]"), max_grammar_corrections=3)
    rejected = next(event for event in result.trace if isinstance(event, Rejected))
    assert (rejected.text, rejected.token_id, rejected.position) == (b"x", ord("x"), 0)
    assert rejected.logprob is not None and rejected.logprob < 0
    assert "x" in rejected.reason


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"token_lookahead": 0}, ValueError, "token_lookahead is 0"),
        ({"max_grammar_corrections": -1}, ValueError, "max_grammar_corrections is -1"),
        ({"temperature": -1}, ValueError, "temperature is -1"),
        ({"stop_at": [""]}, ValueError, "stop_at holds ''"),
        ({"stop_at": 3}, TypeError, "stop_at is 3, but must be a text"),
        ({"seed_str": 3}, TypeError, "seed_str is 3, but must be a str"),
        ({"budget": 3}, TypeError, "budget is 3, but must be a Budget"),
    ],
)
def test_options_out_of_range_are_named(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        stencilm.guide(wants("a"), Grammar.from_regex("a"), ">", **options)
    with pytest.raises(TypeError, match=r"the prompt is \['>'\]"):
        stencilm.guide(wants("a"), Grammar.from_regex("a"), [">"])
    for name in ("calls", "tokens", "seconds", "cost"):
        with pytest.raises(ValueError, match=f"the budget of {name} is 0"):
            Budget(**{name: 0})
