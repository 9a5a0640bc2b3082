"""Reasoning before the answer: markers in odd places, exact budgets, every loop."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import numpy as np
import pytest

from stencilm import Grammar, GrammarCompiler, GrammarMatcher, ReasoningFormat, TokenizerInfo
from stencilm.generation.trace import Reasoned
from stencilm.matching.reasoning import ReasoningMatcher, ReasoningTokens
from stencilm.tool_calls.reasoning import reasoning_format

MARKERS = ["</think>", "aba", "aa", "[/T]", "</think>\n</think>", "é|"]
ALPHABET = 'ab</think>[]T\né|{}"x: 1'


def vocabulary(marker: str, rng: random.Random) -> TokenizerInfo:
    """Every byte, pieces of the marker with more around them, `</s>`, and sometimes the marker."""
    tokens = {bytes([byte]) for byte in range(256)}
    raw = marker.encode()
    for _ in range(120):
        begin, end = sorted(rng.choices(range(len(raw) + 1), k=2))
        before = "".join(rng.choices(ALPHABET, k=rng.randint(0, 2))).encode()
        after = "".join(rng.choices(ALPHABET, k=rng.randint(0, 2))).encode()
        tokens.add(before + raw[begin:end] + after)
    if rng.random() < 0.5:
        tokens.add(raw)
    listed: list[Any] = sorted(one for one in tokens if one)
    return TokenizerInfo([*listed, "</s>"], stop_token_ids=[len(listed)])


def pushed(info: TokenizerInfo, marker: str, rng: random.Random) -> np.ndarray[Any, Any]:
    """Logits that like pieces of the marker, so that it comes by chance."""
    raw = marker.encode()
    liked = [
        2.0 * any(raw[at : at + 2] in one for at in range(len(raw))) for one in info.decoded_vocab
    ]
    noise = np.array([rng.gauss(0, 1) for _ in liked])
    return (noise + liked).astype(np.float32)


def first_end(tokens: list[bytes], marker: bytes, answer: bytes) -> int | None:
    """The slow twin: how many tokens there are when the marker is first in the text."""
    text = b""
    for count, token in enumerate(tokens, 1):
        text += token
        place = text.find(marker)
        if place >= 0:
            assert answer.startswith(text[place + len(marker) :]), "the answer begins at a token"
            return count
    return None


def check_text(number: int) -> None:
    rng = random.Random(number)
    marker = rng.choice(MARKERS)
    form = ReasoningFormat(
        begin=rng.choice(["<think>\n", "[T]"]),
        end=marker,
        answer=rng.choice(["", "\n\n"]),
        closing=rng.choice(["", "\n"]),
    )
    info = vocabulary(marker, rng)
    tokens = ReasoningTokens(info, form)
    # A string of the answer may hold any marker.
    answer = GrammarMatcher(
        GrammarCompiler(info).compile(Grammar.from_ebnf(r'root ::= "\"" [^"]{0,12} "\""'))
    )
    budget, is_open = rng.randint(0, 24), rng.random() < 0.5
    matcher = ReasoningMatcher(answer, tokens, budget, is_open=is_open)
    mask = np.zeros((1, -(-info.vocab_size // 32)), dtype=np.int32)
    logits = pushed(info, marker, rng)
    held = info.decoded_vocab
    ids: list[int] = []
    drawn: list[int] = []
    while matcher.is_reasoning:
        forced = matcher.find_jump_forward_tokens()
        assert matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: info.vocab_size]
        if forced:
            assert np.flatnonzero(bits).tolist() == forced[:1]
            token_id = forced[0]
        else:
            # All tokens, but the end of the text, and those that end the marker and go on.
            before = [held[one] for one in drawn]
            for other in rng.sample(range(info.vocab_size), 24):
                text = b"".join(before) + held[other]
                place = text.find(marker.encode())
                rest = text[place + len(marker.encode()) :] if place >= 0 else b""
                wanted = other not in info.stop_token_ids and form.answer.encode().startswith(rest)
                assert bool(bits[other]) == wanted == matcher.is_allowed(other)
            weights = np.where(bits, np.exp(logits), 0.0)
            token_id = rng.choices(range(info.vocab_size), weights=weights.tolist())[0]
            drawn.append(token_id)
        refused = np.flatnonzero(bits == 0)
        if len(refused):
            assert not matcher.accept_token(int(rng.choice(refused.tolist())))
        assert matcher.accept_token(token_id)
        ids.append(token_id)
        if rng.random() < 0.1:  # a step back and forward again
            copy = matcher.fork()
            back = rng.randint(1, len(ids))
            matcher.rollback(back)
            for again in ids[len(ids) - back :]:
                assert matcher.accept_token(again)
            assert copy.reasoning_token_ids == matcher.reasoning_token_ids
    raw = marker.encode()
    end = first_end([held[one] for one in drawn], raw, form.answer.encode())
    assert matcher.num_drawn == len(drawn) <= budget
    assert len(drawn) == (budget if end is None else end)
    text = b"".join(held[one] for one in ids)
    begin = b"" if is_open else form.begin.encode()
    assert text.startswith(begin)
    text = text[len(begin) :]
    # The marker comes once, and only what stands between it and the answer follows.
    assert text[text.index(raw) + len(raw) :] == form.answer.encode()
    if end is not None:
        said = text[: text.index(raw)].decode("utf-8", "replace").strip()
        assert matcher.reasoning == said


@pytest.mark.parametrize("part", range(10))
def test_markers_in_odd_places(part: int) -> None:
    for number in range(100 * part, 100 * part + 100):
        check_text(number)


QWEN = (
    "{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)
OPENED = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content.split('</think>')[-1] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
)
SWITCHED = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>"
    "{% if thinking %}<think>{% else %}</think>{% endif %}{% endif %}"
)
PLAIN = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>"
HARMONY = "<|start|>{{ messages[0].content }}<|channel|>final<|message|>"


@pytest.mark.parametrize("name", ["begin", "end", "answer", "closing", "without"])
def test_a_marker_that_is_no_text(name: str) -> None:
    wrong: dict[str, Any] = {"begin": "<a>", "end": "</a>", name: True}
    with pytest.raises(TypeError, match=f"^{name} is True, but must be a str"):
        ReasoningFormat(**wrong)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (QWEN, ("<think>\n", "</think>", "\n\n", "\n", True, ("enable_thinking",))),
        (OPENED, ("<think>\n", "</think>", "", "", True, ())),
        (SWITCHED, ("<think>", "</think>", "", "", False, ("thinking",))),
        (PLAIN, None),
        ("{{ 1 / 0 }}</think>", None),
    ],
)
def test_how_a_model_reasons_is_in_its_chat_template(template: str, expected: Any) -> None:
    form = reasoning_format(template)
    if expected is None:
        assert form is None
        return
    assert form is not None
    found = (form.begin, form.end, form.answer, form.closing, form.is_on, form.switches)
    assert found == expected


def test_a_channel_of_its_own() -> None:
    form = reasoning_format(HARMONY)
    assert form is not None and form.without == "<|channel|>final<|message|>"


@pytest.mark.parametrize("values", [("", ""), ("aba", "aba"), ("</think>", "x</think>")])
def test_formats_that_cannot_be(values: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"end marker"):
        ReasoningFormat(begin="<think>", end=values[0], closing=values[1])


@pytest.fixture(scope="module")
def runner() -> Any:
    small_models = pytest.importorskip("generation.small_models")
    return small_models.random_llama(max_position_embeddings=700)


def model_of(runner: Any, template: str | None) -> Any:
    import stencilm
    from generation.small_models import byte_tokenizer

    tokenizer = byte_tokenizer()
    tokenizer.chat_template = template
    return stencilm.from_transformers(runner, tokenizer)


CHAT = [{"role": "user", "content": "Is it </think> so?"}]


@pytest.mark.parametrize(
    ("template", "reasoning", "begins", "count"),
    [
        (QWEN, "auto", "<think>\n", None),
        (QWEN, 9, "<think>\n", 9),
        (QWEN, 0, "<think>\n", 0),
        (QWEN, False, None, None),
        (OPENED, "auto", "", None),
        (OPENED, 5, "", 5),
        (OPENED, False, "", 0),  # it cannot be switched off, so it is closed at once
        (SWITCHED, "auto", None, None),
        (SWITCHED, 7, "", 7),
        (SWITCHED, False, None, None),
    ],
)
def test_a_template_says_whether_it_reasons(
    runner: Any, template: str, reasoning: Any, begins: str | None, count: int | None
) -> None:
    model = model_of(runner, template)
    found = model.generate(CHAT, bool, reasoning=reasoning, max_tokens=8, temperature=1.0, seed=1)
    assert isinstance(found.value, bool)
    told = [event for event in found.trace if isinstance(event, Reasoned)]
    assert [type(one).from_json(one.to_json()) for one in found.trace] == [*found.trace]
    if begins is None:
        assert (told, found.reasoning, found.stats.reasoning_tokens) == ([], None, 0)
        return
    text = b"".join(event.text for event in told)
    assert text.startswith(begins.encode()) and b"</think>" in text
    drawn = sum(event.logprob is not None for event in told)
    # As many as the context leaves, where none are given.
    assert drawn == count if count is not None else 100 < drawn < 700
    assert found.stats.reasoning_tokens == len(text)
    assert found.stats.tokens == len(found.text) == len(found.token_ids)


def test_a_text_is_gone_on_with_where_its_end_says_so(runner: Any) -> None:
    model = model_of(runner, QWEN)
    assert model.generate("It is <think>\n", bool, reasoning=4, max_tokens=8).reasoning is not None
    assert model.generate("It is ", bool, max_tokens=8).reasoning is None
    assert model.generate("It is ", bool, reasoning=4, max_tokens=8).reasoning is not None


def test_every_loop_reasons_alike(runner: Any) -> None:
    model = model_of(runner, QWEN)
    options: dict[str, Any] = {"reasoning": 6, "max_tokens": 8, "temperature": 1.0, "seed": 3}
    one = model.generate(CHAT, bool, **options)
    assert one.reasoning
    assert model(CHAT, bool, **options) == one.value
    assert list(model.stream(CHAT, bool, **options))[-1] == one.value
    together = model.generate_batch([CHAT, CHAT], bool, **options)
    assert (together[0].text, together[0].reasoning) == (one.text, one.reasoning)
    assert model.samples(CHAT, bool, n=2, **options)[0] == one.value

    async def awaited() -> list[Any]:
        found = (await model.agenerate(CHAT, bool, **options)).value
        return [found, [value async for value in model.astream(CHAT, bool, **options)][-1]]

    assert asyncio.run(awaited()) == [one.value, one.value]


@pytest.mark.parametrize("prompt", ["It is ", CHAT])
def test_a_model_without_markers_is_asked_twice(runner: Any, prompt: Any) -> None:
    model = model_of(runner, PLAIN)
    assert model.generate(prompt, bool, max_tokens=8).reasoning is None
    found = model.generate(prompt, bool, max_tokens=8, reasoning=6, temperature=1.0, seed=0)
    assert isinstance(found.value, bool)
    assert found.stats.reasoning_tokens <= 6 and found.reasoning is not None
    drafted = model.generate(prompt, bool, max_tokens=8, reasoning="draft", temperature=1.0, seed=0)
    assert isinstance(drafted.value, bool)
    assert drafted.reasoning is not None and drafted.stats.reasoning_tokens <= 8
    pair = model.generate_batch([prompt, prompt], bool, max_tokens=8, reasoning=6)
    assert [one.reasoning is not None for one in pair] == [True, True]
    shown = list(model.stream(prompt, bool, max_tokens=8, reasoning=6, temperature=1.0, seed=0))
    assert all(isinstance(value, bool) for value in shown) and shown[-1] == found.value


@pytest.mark.parametrize("reasoning", ["yes", -1, 1.5, ""])
def test_options_that_are_none(runner: Any, reasoning: Any) -> None:
    with pytest.raises(ValueError, match="reasoning is"):
        model_of(runner, QWEN)(CHAT, bool, reasoning=reasoning)


def test_loops_of_transformers(runner: Any) -> None:
    import torch

    import stencilm

    model = model_of(runner, QWEN)
    tokenizer = model.backend.tokenizer
    form = stencilm.reasoning_format(tokenizer)
    compiled = model.compile(bool)
    tokenizer.pad_token = tokenizer.eos_token
    prompt = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    inputs = tokenizer([prompt, prompt + "<think>\n", prompt + "<think>\n\n</think>\n\n"],
                       return_tensors="pt", padding=True, padding_side="left",
                       add_special_tokens=False)  # fmt: skip
    inputs.pop("token_type_ids", None)
    start = inputs["input_ids"].shape[1]

    def texts(**how: Any) -> list[str]:
        torch.manual_seed(0)
        ids = runner.generate(
            **inputs, max_new_tokens=60, pad_token_id=257, eos_token_id=257, **how
        )
        found: list[str] = tokenizer.batch_decode(ids[:, start:], skip_special_tokens=True)
        return found

    processor = stencilm.LogitsProcessor(compiled, reasoning=form, reasoning_budget=5)
    custom = stencilm.CustomGenerate(compiled, reasoning=form, reasoning_budget=5)
    written = texts(logits_processor=[processor], do_sample=False)
    assert written == texts(custom_generate=custom, do_sample=False)
    closed, opened, answered = written
    assert closed.startswith("<think>\n") and "</think>\n\n" in closed
    assert closed.removeprefix("<think>\n").index("</think>") <= 5 + 1
    assert opened.partition("</think>\n\n")[2] in ("true", "false")
    assert answered in ("true", "false")
    beams = texts(logits_processor=[processor], num_beams=3, do_sample=False)
    assert all(text.endswith(("true", "false")) for text in beams)
    with pytest.raises(ValueError, match="budget of reasoning is -1"):
        stencilm.LogitsProcessor(compiled, reasoning=form, reasoning_budget=-1)


@pytest.mark.parametrize("most", [22, 23, 24, 25, 30, 60])
def test_an_answer_has_room_after_a_reasoning_of_any_budget(runner: Any, most: int) -> None:
    """The markers and the text around them take 18 tokens, one for each byte."""
    import torch

    import stencilm

    form = ReasoningFormat(begin="<think>", end="</think>", answer="\n\n\n")
    model = model_of(runner, None)
    compiled, tokenizer = model.compile(bool), model.backend.tokenizer
    ids = torch.tensor([[5, 6]])
    for budget in (3, 20, 2048):
        processor = stencilm.LogitsProcessor(
            compiled, reasoning=form, reasoning_budget=budget, max_new_tokens=most
        )
        custom = stencilm.CustomGenerate(compiled, reasoning=form, reasoning_budget=budget)
        for how in ({"logits_processor": [processor]}, {"custom_generate": custom}):
            written = runner.generate(
                ids, max_new_tokens=most, pad_token_id=257, eos_token_id=257, do_sample=False, **how
            )
            text = tokenizer.decode(written[0, 2:], skip_special_tokens=True)
            reasoned, _, answer = text.partition("</think>\n\n\n")
            assert answer in ("true", "false"), text
            assert len(reasoned.removeprefix("<think>")) <= min(budget, (most - 18) // 2)


WITH_TOOLS = (
    "{% if tools %}<|system|>{{ tools | tojson }}{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ '<tool_call>\\n' ~ {'name': c.function.name, 'arguments': c.function.arguments} | tojson"
    " ~ '\\n</tool_call>' ~ ('' if loop.last else '\\n') }}{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
)


@pytest.mark.parametrize("reasoning", ["auto", 5, False])
def test_turns_of_a_conversation_reason_too(runner: Any, reasoning: Any) -> None:
    def clock() -> str:
        """What time it is."""
        return "noon"

    model = model_of(runner, WITH_TOOLS)
    found = model.chat(
        [{"role": "user", "content": "?"}],
        tools=[clock],
        output_type=bool,
        reasoning=reasoning,
        max_rounds=0,
        max_tokens=16,
        temperature=1.0,
        seed=0,
    )
    assert isinstance(found.value, bool)
    (turn,) = found.turns
    assert turn.generation.text in ("true", "false")
    drawn = [one for one in turn.generation.trace if isinstance(one, Reasoned) and one.logprob]
    assert len(drawn) == {"auto": len(drawn), 5: 5, False: 0}[reasoning]
    assert bool(turn.reasoning) == (reasoning is not False)


@pytest.mark.parametrize("template", [QWEN, OPENED, PLAIN])
@pytest.mark.parametrize("reasoning", [6, "draft", False])
def test_beams_and_probabilities_come_after_the_reasoning(
    runner: Any, template: str, reasoning: Any
) -> None:
    from stencilm import Choice

    model = model_of(runner, template)
    read: list[list[int]] = []
    start, start_batch = model.backend.start, model.backend.start_batch

    class Listened:
        """The model, which tells after which prompts texts begin."""

        runs_batches = True

        def __getattr__(self, name: str) -> Any:
            return getattr(model_backend, name)

        def start(self, prompt_ids: Any) -> Any:
            read.append(list(prompt_ids))
            return start(prompt_ids)

        def start_batch(self, prompts: Any) -> Any:
            read.extend(map(list, prompts))
            return start_batch(prompts)

    model_backend, model.backend = model.backend, Listened()
    wanted = model.generate(CHAT, Choice(["yes", "no"]), reasoning=reasoning, max_tokens=8)
    after = read[-1] + [
        token_id
        for event in wanted.trace
        if isinstance(event, Reasoned)
        for token_id in event.token_ids
    ]
    found = model.probabilities(CHAT, Choice(["yes", "no"]), reasoning=reasoning)
    if reasoning != "draft":  # whose length hangs on max_tokens
        assert read[-1] == after
    assert abs(sum(share for _, share in found) - 1) < 1e-6
    best = model.beam_search(CHAT, Choice(["yes", "no"]), reasoning=reasoning, max_tokens=8)
    assert read[-1] == after
    assert {value for value, _ in best} == {"yes", "no"}
    with pytest.raises(ValueError, match="reasoning is"):
        model.beam_search(CHAT, bool, reasoning="yes")


@pytest.mark.parametrize("template", [QWEN, OPENED, PLAIN, None])
@pytest.mark.parametrize("method", ["exact", "smc"])
def test_whole_texts_are_drawn_after_the_reasoning(
    runner: Any, template: str | None, method: Any
) -> None:
    model = model_of(runner, template)
    options: dict[str, Any] = {"sampling": method, "reasoning": 12, "max_tokens": 8, "seed": 1}
    prompt: Any = "It is " if template is None else CHAT
    both = model.generate_batch([prompt] * 2, bool, **options)
    for one in both:
        assert isinstance(one.value, bool)
        assert one.reasoning is not None
        # A model without markers may have nothing to say.
        assert one.stats.reasoning_tokens > 0 or template in (PLAIN, None)
        assert one.sampling.forward_passes < sum(each.stats.forward_passes for each in both)
        written = [each for event in one.trace for each in getattr(event, "token_ids", ())]
        assert one.stats.prompt_tokens == len(one.trace[0].token_ids) < len(written) + 1


@pytest.mark.parametrize("method", ["exact", "smc"])
def test_each_whole_text_has_reasoning_of_its_own_seed(runner: Any, method: Any) -> None:
    model = model_of(runner, QWEN)
    options: dict[str, Any] = {"sampling": method, "reasoning": 12, "max_tokens": 8}
    all_three = model.generate_batch([CHAT] * 3, bool, seed=5, **options)
    alone = [model.generate(CHAT, bool, seed=5 + number, **options) for number in range(3)]
    assert [one.reasoning for one in all_three] == [one.reasoning for one in alone]
    assert [one.text for one in all_three] == [one.text for one in alone]
    assert len({one.reasoning for one in all_three}) == 3


@pytest.mark.parametrize("template", [QWEN, OPENED, PLAIN])
@pytest.mark.parametrize("prompt", ["It is ", CHAT])
def test_a_guided_text_comes_after_the_reasoning(runner: Any, template: str, prompt: Any) -> None:
    import stencilm

    model = model_of(runner, template)
    told: list[Any] = []
    budget = stencilm.Budget(tokens=8)
    for reasoning in (6, "draft"):
        guided = stencilm.guide(
            model, bool, prompt, reasoning=reasoning, budget=budget, on_event=told.append
        )
        assert guided.response in ("true", "false") and guided.reasoning is not None
        thought = [event for event in guided.trace if isinstance(event, Reasoned)]
        assert thought and told[: len(thought)] == thought
        assert guided.usage.reasoning_tokens > 0
        assert "true" in guided.html or "false" in guided.html
        told.clear()
    plain = stencilm.guide(model, bool, "It is ", budget=budget)
    assert plain.reasoning is None and plain.usage.reasoning_tokens == 0
    with pytest.raises(ValueError, match="reasoning is"):
        stencilm.guide(model, bool, "It is ", reasoning="yes")  # type: ignore[arg-type]


def test_a_function_is_asked_twice() -> None:
    import stencilm

    asked: list[str] = []

    def drafts(prompt: str) -> str:
        asked.append(prompt)
        return "Water is wet." if "Answer:" not in prompt and "form" not in prompt else "true"

    for reasoning in (True, 50, "draft"):
        asked.clear()
        guided = stencilm.guide(drafts, bool, "Is water wet?", reasoning=reasoning)
        assert (guided.response, guided.reasoning) == ("true", "Water is wet.")
        assert len(asked) == 2 and "Water is wet." in asked[1]
    asked.clear()
    stencilm.guide(drafts, bool, "Is water wet? Answer:", reasoning=False)
    assert len(asked) == 1

    async def awaited() -> Any:
        async def coming(prompt: str) -> str:
            return drafts(prompt)

        return await stencilm.aguide(coming, bool, "Is water wet?", reasoning=True)

    assert asyncio.run(awaited()).reasoning == "Water is wet."
