"""The backend's objects, called as SGLang's scheduler calls them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("sglang", reason="SGLang is not installed: tests/engines/sglang/install.sh")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from sglang.srt.constrained.base_grammar_backend import (  # noqa: E402
    GRAMMAR_BACKEND_REGISTRY,
    GrammarRow,
    InvalidGrammarObject,
)

import stencilm  # noqa: E402
from stencilm.integrations.sglang import create, register  # noqa: E402
from stencilm.integrations.sglang.backend import (  # noqa: E402
    LatestGrammars,
    StencilmBackend,
)
from stencilm.integrations.sglang.grammars import StencilmGrammar, no_text_token  # noqa: E402

TINY = Path(stencilm.__file__).with_name("tiny")
SHARED = Path(os.environ.get("STENCILM_SHARED", Path(__file__).parents[4] / "shared"))
WIDTH = 4672
STOP = 2


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(TINY)


@pytest.fixture(scope="module")
def backend(tokenizer: Any) -> StencilmBackend:
    return StencilmBackend(tokenizer, WIDTH, {STOP})


def allowed(mask: Any, row: int = 0) -> set[int]:
    bits = mask[row].view(torch.uint8).numpy()
    return {word * 8 + bit for word, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1}


def written(grammar: Any, tokenizer: Any, text: str) -> None:
    for token in tokenizer.encode(text, add_special_tokens=False):
        grammar.accept_token(token)


def test_the_entry_point_adds_the_name_once() -> None:
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    for _ in range(2):
        register()
    assert GRAMMAR_BACKEND_CHOICES.count("stencilm") == 1
    assert GRAMMAR_BACKEND_REGISTRY["stencilm"] is create


def test_a_tokenizer_may_have_more_tokens_than_the_model_has_logits(tokenizer: Any) -> None:
    """As that of Llama 3.2 Vision has, whose server did not start."""
    narrow = len(tokenizer) - 1
    grammar = StencilmBackend(tokenizer, narrow, {STOP}).dispatch_regex("[^z]*")
    mask = grammar.allocate_vocab_mask(narrow, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    wide = StencilmBackend(tokenizer, WIDTH, {STOP}).dispatch_regex("[^z]*")
    whole = wide.allocate_vocab_mask(WIDTH, 1, "cpu")
    wide.fill_vocab_mask(whole, 0)
    assert allowed(mask) == {one for one in allowed(whole) if one < narrow}
    assert narrow in allowed(whole)


def test_a_text_to_its_end_and_back(backend: StencilmBackend, tokenizer: Any) -> None:
    grammar = backend.dispatch_regex("yes|no")
    written(grammar, tokenizer, "yes")
    taken = len(tokenizer.encode("yes", add_special_tokens=False))
    assert not grammar.is_terminated()
    grammar.accept_token(STOP)
    assert grammar.is_terminated() and grammar.current_token == STOP
    # The loop may run on for some steps, and takes them back as well.
    grammar.accept_token(5)
    grammar.accept_token(6)
    grammar.rollback(2)
    assert grammar.is_terminated()
    grammar.accept_token(5)
    grammar.rollback(2)
    assert not grammar.is_terminated()
    grammar.rollback(taken)
    written(grammar, tokenizer, "no")
    grammar.accept_token(STOP)
    assert grammar.is_terminated()


def test_a_refused_token_says_why_and_changes_nothing(
    backend: StencilmBackend, tokenizer: Any
) -> None:
    grammar = backend.dispatch_regex("yes|no")
    (wrong,) = tokenizer.encode("z", add_special_tokens=False)[:1]
    with pytest.raises(ValueError, match=f"refuses token {wrong}"):
        grammar.accept_token(wrong)
    written(grammar, tokenizer, "no")


def test_a_copy_begins_anew(backend: StencilmBackend, tokenizer: Any) -> None:
    grammar = backend.dispatch_regex("yes|no")
    written(grammar, tokenizer, "yes")
    again = grammar.copy()
    written(again, tokenizer, "no")
    grammar.accept_token(STOP)
    assert grammar.is_terminated() and not again.is_terminated()
    assert again.grammar_stats.is_cache_hit and not grammar.grammar_stats.is_cache_hit


def test_rows_that_were_used_are_written_whole(backend: StencilmBackend, tokenizer: Any) -> None:
    mask = backend.allocate_vocab_mask(WIDTH, 3, "cpu")
    assert mask.shape == (3, WIDTH // 32) and (mask == -1).all()
    mask[:] = 0x55555555
    free, bound = backend.dispatch_ebnf("root ::= [^z]*"), backend.dispatch_regex("yes|no")
    fresh = backend.allocate_vocab_mask(WIDTH, 3, "cpu")
    for row, grammar in enumerate((free, bound)):
        grammar.fill_vocab_mask(mask, row)
        grammar.copy().fill_vocab_mask(fresh, row)
    assert torch.equal(mask[:2], fresh[:2])
    assert (mask[2] == 0x55555555).all()
    written(bound, tokenizer, "no")
    bound.accept_token(STOP)
    bound.fill_vocab_mask(mask, 1)
    assert (mask[1] == -1).all()


def test_a_batch_is_filled_as_its_rows_are(backend: StencilmBackend) -> None:
    patterns = ["yes|no", "[0-9]+", ".*", "a{3}"]
    grammars = [backend.dispatch_regex(pattern) for pattern in patterns]
    mask = torch.full((6, WIDTH // 32), 0x55555555, dtype=torch.int32)
    rows = [
        GrammarRow(row=row, grammar=one) for row, one in zip((4, 0, 2, 5), grammars, strict=True)
    ]
    StencilmGrammar.fill_vocab_mask_batched(rows, mask)
    for row, grammar in rows:
        alone = backend.allocate_vocab_mask(WIDTH, 1, "cpu")
        grammar.copy().fill_vocab_mask(alone, 0)
        assert torch.equal(mask[row], alone[0])
    assert (mask[[1, 3]] == 0x55555555).all()  # rows of requests without a grammar
    StencilmGrammar.reset_vocab_mask(mask)
    assert (mask == -1).all()


def test_closed_logits_are_minus_infinity(backend: StencilmBackend) -> None:
    grammar = backend.dispatch_regex("yes|no")
    mask = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    logits = torch.zeros(1, WIDTH)
    grammar.apply_vocab_mask(logits, grammar.move_vocab_mask(mask, "cpu"))
    assert set(torch.nonzero(logits[0] == 0).flatten().tolist()) == allowed(mask)


class Failing:
    """A matcher whose next mask costs more than its limits allow."""

    def __init__(self, matcher: Any) -> None:
        self.matcher = matcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self.matcher, name)

    def fill_next_token_bitmask(self, *_: Any) -> bool:
        raise stencilm.LimitExceeded("the mask costs too much")


def test_a_grammar_that_cannot_go_on_fails_its_own_request(
    backend: StencilmBackend, tokenizer: Any
) -> None:
    grammar = backend.dispatch_regex("yes|no")
    grammar._matcher = Failing(grammar._matcher)
    mask = backend.allocate_vocab_mask(WIDTH, 2, "cpu")
    grammar.fill_vocab_mask(mask, 1)  # raises nothing: it is called for all requests
    (only,) = allowed(mask, 1)
    assert only == no_text_token(
        stencilm.TokenizerInfo.from_huggingface(tokenizer, vocab_size=WIDTH)
    )
    with pytest.raises(ValueError, match="the mask costs too much"):
        grammar.accept_token(only)


def test_a_batch_with_one_that_cannot_go_on(backend: StencilmBackend) -> None:
    limits = stencilm.Limits(derived_expressions=30)  # fewer than the first mask derives
    info = backend._info
    tight = stencilm.GrammarCompiler(info, limits=limits)
    failing = StencilmGrammar(
        tight.compile_regex("(?s).*(foo|bar|baz){3,9}.*"), no_text_token(info), None
    )
    fine = backend.dispatch_regex("yes|no")
    mask = backend.allocate_vocab_mask(WIDTH, 2, "cpu")
    rows = [GrammarRow(row=0, grammar=failing), GrammarRow(row=1, grammar=fine)]
    StencilmGrammar.fill_vocab_mask_batched(rows, mask)
    assert len(allowed(mask, 0)) == 1
    with pytest.raises(ValueError, match="derived_expressions"):
        failing.accept_token(next(iter(allowed(mask, 0))))
    alone = backend.allocate_vocab_mask(WIDTH, 1, "cpu")
    fine.copy().fill_vocab_mask(alone, 0)
    assert torch.equal(mask[1], alone[0])


def test_drafted_trees_are_walked_as_the_engine_walks_them(
    backend: StencilmBackend, tokenizer: Any
) -> None:
    from sglang.srt.speculative.spec_utils import traverse_tree

    grammar = backend.dispatch_regex("yes|no")
    yes = tokenizer.encode("yes", add_special_tokens=False)
    no = tokenizer.encode("no", add_special_tokens=False)
    wrong = tokenizer.encode("z", add_special_tokens=False)[0]
    # The root, a chain that ends the text, and siblings of its first token: one fits, one does not.
    chain = [*yes, STOP]
    tokens = torch.tensor([0, *chain, no[0], wrong])
    n = len(chain)
    next_token = torch.tensor([1, *range(2, n + 1), -1, -1, -1])
    sibling = torch.tensor([-1, n + 1, *[-1] * (n - 1), n + 2, -1])
    mask = backend.allocate_vocab_mask(WIDTH, len(tokens), "cpu")
    traverse_tree(next_token, sibling, tokens, grammar, mask, vocab_size=WIDTH)
    assert not grammar.is_terminated()
    alone = backend.allocate_vocab_mask(WIDTH, 1, "cpu")
    again = grammar.copy()
    for row, token in enumerate([None, *yes]):
        if token is not None:
            again.accept_token(token)
        again.fill_vocab_mask(alone, 0)
        assert torch.equal(mask[row], alone[0]), row
    written(grammar, tokenizer, "no")  # it stands where it stood


def test_a_draft_that_costs_too_much_ends_no_walk(backend: StencilmBackend, tokenizer: Any) -> None:
    """The engine takes no exception there, so that one request ended the server."""
    from sglang.srt.speculative.spec_utils import traverse_tree

    tight = stencilm.GrammarCompiler(backend._info, limits=stencilm.Limits(stack_bytes=4_000))
    compiled = tight.compile_grammar('root ::= "(" root ")" | ""')
    grammar = StencilmGrammar(compiled, no_text_token(backend._info), None)
    (opened,) = tokenizer.encode("(", add_special_tokens=False)
    tokens = torch.tensor([0, *[opened] * 60])
    following = torch.tensor([*range(1, 61), -1])
    mask = backend.allocate_vocab_mask(WIDTH, len(tokens), "cpu")
    mask.fill_(0)
    traverse_tree(following, torch.full((61,), -1), tokens, grammar, mask, vocab_size=WIDTH)
    rows = [allowed(mask, row) for row in range(len(tokens))]
    failed = rows.index({grammar._no_text})
    assert failed > 1 and all(opened in row for row in rows[:failed])
    assert not any(rows[failed + 1 :])
    assert opened in allowed_by(backend, grammar), "it stands where it stood"
    # A text that comes there fails at the next token.
    grammar = grammar.copy()
    with pytest.raises(ValueError, match="bytes of stacks"):
        for _ in range(100):
            grammar.accept_token(opened)
    assert allowed_by(backend, grammar) == {grammar._no_text}
    batch = backend.allocate_vocab_mask(WIDTH, 1, "cpu")
    StencilmGrammar.fill_vocab_mask_batched([GrammarRow(row=0, grammar=grammar)], batch)
    assert allowed(batch, 0) == {grammar._no_text}
    grammar.rollback(2)
    assert opened in allowed_by(backend, grammar)


def allowed_by(backend: StencilmBackend, grammar: StencilmGrammar) -> set[int]:
    """What one grammar allows."""
    mask = backend.allocate_vocab_mask(WIDTH, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    return allowed(mask, 0)


def test_what_is_forced_comes_as_the_tokenizer_writes_it(
    backend: StencilmBackend, tokenizer: Any
) -> None:
    grammar = backend.dispatch_regex("Describe a person as (JSON|text)")
    helper = grammar.try_jump_forward(tokenizer)
    tokens, text = helper
    assert tokenizer.decode(tokens) == text and "Describe a person as".startswith(text)
    assert len(text) > 10
    assert (
        tokens
        == tokenizer.encode("Describe a person as JSON", add_special_tokens=False)[: len(tokens)]
    )
    assert grammar.jump_forward_str_state(helper) == (text, -1)
    grammar.jump_and_retokenize([], tokens, -1)
    # Other tokens of the same text: back to where they part.
    bytewise = [token for c in text for token in tokenizer.encode(c, add_special_tokens=False)]
    grammar.jump_and_retokenize(tokens, bytewise, -1)
    assert grammar._matcher.num_accepted_tokens == len(bytewise)
    with pytest.raises(ValueError, match="refuses"):
        grammar.jump_and_retokenize(bytewise, [*bytewise, *tokenizer.encode("zz")], -1)
    assert backend.dispatch_regex("yes|no").try_jump_forward(tokenizer) is None


@pytest.mark.parametrize(
    ("kind", "request_", "words"),
    [
        ("json", '{"type": "integer", "minimum": 3, "maximum": 2}', "minimum 3 is above"),
        ("json", "{", "line 1, column 2"),
        ("json", '{"$ref": "http://example.com/x"}', "example.com"),
        ("regex", "([", "never closed"),
        ("ebnf", "root ::= (", "no closing `)`"),
        ("structural_tag", "{", "line 1, column 2"),
        ("structural_tag", '{"format": {"type": "none"}}', "none"),
        ("structural_tag", "[" * 3000, "recursion"),
    ],
)
def test_what_cannot_be_enforced_is_an_invalid_grammar(
    backend: StencilmBackend, kind: str, request_: str, words: str
) -> None:
    found = getattr(backend, f"dispatch_{kind}")(request_)
    assert isinstance(found, InvalidGrammarObject)
    assert words in found.error_message


def test_any_json(backend: StencilmBackend, tokenizer: Any) -> None:
    grammar = backend.dispatch_json("$$ANY$$")
    written(grammar, tokenizer, '{"a": [1, null]}')
    grammar.accept_token(STOP)
    assert grammar.is_terminated()


def test_whitespace_is_as_the_flags_say(tokenizer: Any) -> None:
    def takes(text: str, **options: Any) -> bool:
        made = StencilmBackend(tokenizer, WIDTH, {STOP}, **options).dispatch_json('{"const": [1]}')
        try:
            written(made, tokenizer, text)
            made.accept_token(STOP)
        except ValueError:
            return False
        return True

    assert takes("[1]") and takes("[  1]")
    assert takes("[1]", any_whitespace=False) and not takes("[ 1]", any_whitespace=False)
    assert takes("[ 1]", max_whitespace=1) and not takes("[  1]", max_whitespace=1)


def test_the_whitespace_of_a_text_is_bounded_by_a_variable(tokenizer: Any) -> None:
    from stencilm.integrations.sglang import backend as module

    name = "STENCILM_SGLANG_WHITESPACE_BUDGET"
    assert module.whitespace_budget_of({}) is None
    assert module.whitespace_budget_of({name: " 9 "}) == 9
    with pytest.raises(ValueError, match=f"{name} is '-1', but must be a number of bytes"):
        module.whitespace_budget_of({name: "-1"})
    made = module.StencilmBackend(tokenizer, WIDTH, {STOP}, whitespace_budget=1)
    grammar = made.dispatch_json('{"type": "array"}')
    for one in (grammar, grammar.copy()):
        written(one, tokenizer, "[ ")
        assert one._matcher.whitespace_budget_left == 0
    assert made.dispatch_regex("a b")._matcher.whitespace_budget is None


def test_older_tags_may_ask_for_at_least_one(backend: StencilmBackend, tokenizer: Any) -> None:
    older = {
        "type": "structural_tag",
        "structures": [{"begin": "<f>", "schema": {"const": 1}, "end": "</f>"}],
        "triggers": ["<f>"],
        "at_least_one": True,
    }
    grammar = backend.dispatch_structural_tag(json.dumps(older))
    with pytest.raises(ValueError, match="refuses"):
        grammar.accept_token(STOP)
    written(grammar, tokenizer, "<f>1</f>")
    grammar.accept_token(STOP)
    assert grammar.is_terminated()


def test_tags_of_all_tool_formats_compile(backend: StencilmBackend) -> None:
    path = SHARED / "cases" / "vllm_tags.json"
    if not path.exists():
        pytest.skip("the tags are not here")
    for name, tag in json.loads(path.read_text(encoding="utf-8")).items():
        found = backend.dispatch_structural_tag(tag if isinstance(tag, str) else json.dumps(tag))
        message = getattr(found, "error_message", "")
        # Tags of other vocabularies name tokens that this one lacks.
        assert not message or "token" in message, (name, message)


def test_a_grammar_within_a_frame(backend: StencilmBackend, tokenizer: Any) -> None:
    (mark,) = tokenizer.encode("z", add_special_tokens=False)
    made = StencilmBackend(tokenizer, WIDTH, {STOP})
    made.reserve_framing_tokens([mark])
    inner = made.dispatch_regex("[a-z]{2}")

    def frame(content: dict[str, Any]) -> dict[str, Any]:
        end = {"type": "token", "token": mark}
        return {
            "type": "structural_tag",
            "format": {"type": "sequence", "elements": [content, end]},
        }

    framed = made.compile_framed_grammar(inner, frame)
    mask = made.allocate_vocab_mask(WIDTH, 1, "cpu")
    framed.fill_vocab_mask(mask, 0)
    assert mark not in allowed(mask)  # the text is not made of it
    written(framed, tokenizer, "ab")
    framed.fill_vocab_mask(mask, 0)
    assert allowed(mask) == {mark}
    framed.accept_token(mark)
    framed.accept_token(STOP)
    assert framed.is_terminated()


def test_the_latest_grammars_are_kept() -> None:
    kept = LatestGrammars()
    for number in range(600):
        kept[number] = number
        kept.get(0)
    assert len(kept) == 512 and 0 in kept and 599 in kept and 1 not in kept


def backend_that_waits(tokenizer: Any, monkeypatch: pytest.MonkeyPatch, strict: bool) -> Any:
    """The backend of a server with a parser of reasoning."""
    from stencilm.integrations.sglang import backend as module

    serving = SimpleNamespace(
        constrained_json_whitespace_pattern=None,
        constrained_json_disable_any_whitespace=False,
        constrained_json_max_whitespace_cnt=None,
        reasoning_parser="qwen3",
        enable_strict_thinking=strict,
    )
    monkeypatch.setattr(module, "get_serving", lambda: serving)
    return module.create(tokenizer, WIDTH, {STOP})


@pytest.fixture
def waiting(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    return backend_that_waits(tokenizer, monkeypatch, strict=False)


def test_strict_reasoning_ends_within_its_budget(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGLANG_MAX_THINK_TOKENS", "2")
    strict = backend_that_waits(tokenizer, monkeypatch, strict=True)
    with_grammar = strict._init_value_dispatch(("regex", "yes|no"), True)
    without = strict.init_strict_reasoning_grammar(True)
    for grammar in (with_grammar, without):
        mask = grammar.allocate_vocab_mask(WIDTH, 2, "cpu")
        grammar.fill_vocab_mask_batched([GrammarRow(row=1, grammar=grammar)], mask)
        assert (mask[0] == -1).all() and len(allowed(mask, 1)) > 1000
        for token in tokenizer.encode("one two", add_special_tokens=False)[:2]:
            grammar.accept_token(token)
        for token in strict.think_end_ids:
            grammar.fill_vocab_mask_batched([GrammarRow(row=1, grammar=grammar)], mask)
            assert allowed(mask, 1) == {token}
            logits = torch.zeros(2, WIDTH)
            grammar.apply_vocab_mask(logits, grammar.move_vocab_mask(mask, "cpu"))
            assert torch.nonzero(logits[1] == 0).flatten().tolist() == [token]
            grammar.accept_token(token)
    written(with_grammar, tokenizer, "no")


def test_a_batch_of_requests_that_reason_and_that_answer(waiting: Any, tokenizer: Any) -> None:
    reasons = waiting._init_value_dispatch(("regex", "yes|no"), True)
    answers = waiting._init_value_dispatch(("regex", "yes|no"), True).copy()
    for token in waiting.think_end_ids:
        answers.accept_token(token)
    plain = waiting.grammar_backend.dispatch_regex("[0-9]")
    over = waiting._init_value_dispatch(("regex", "yes|no"), False)
    written(over, tokenizer, "no")
    over.accept_token(STOP)
    entries = [
        GrammarRow(row=row, grammar=grammar)
        for row, grammar in ((3, reasons), (0, answers), (4, plain), (1, over))
    ]
    alone = torch.full((5, WIDTH // 32), 123, dtype=torch.int32)
    for entry in entries:
        entry.grammar.fill_vocab_mask(alone, entry.row)
    for first in (reasons, answers, plain):
        together = torch.full((5, WIDTH // 32), 123, dtype=torch.int32)
        first.fill_vocab_mask_batched(entries, together)
        assert torch.equal(together, alone)


def test_reasoning_comes_before_the_grammar(waiting: Any, tokenizer: Any) -> None:
    grammar = waiting._init_value_dispatch(("regex", "yes|no"), True)
    end = waiting.think_end_ids
    mask = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")
    written(grammar, tokenizer, "any thoughts")
    grammar.fill_vocab_mask(mask, 0)
    assert (mask == -1).all()
    for token in end:
        grammar.accept_token(token)
    grammar.fill_vocab_mask(mask, 0)
    assert 0 < len(allowed(mask)) < 100
    written(grammar, tokenizer, "no")
    grammar.accept_token(STOP)
    assert grammar.is_terminated()
    # A draft that crossed the end of reasoning is taken back.
    grammar.rollback(1 + len(tokenizer.encode("no", add_special_tokens=False)) + 1)
    mask.fill_(-1)
    grammar.fill_vocab_mask(mask, 0)
    assert (mask == -1).all()


def test_any_json_is_written_as_the_flags_say(tokenizer: Any) -> None:
    compact = StencilmBackend(tokenizer, WIDTH, {STOP}, any_whitespace=False)
    for key in ("$$ANY$$", "true"):
        written(compact.dispatch_json(key), tokenizer, '{"a": [1, 2]}')
        with pytest.raises(ValueError, match="refuses"):
            written(compact.dispatch_json(key), tokenizer, '{ "a":[1,2]}')


def test_the_numbers_of_a_tag_are_left_as_they_are(
    backend: StencilmBackend, tokenizer: Any
) -> None:
    schema = '{"type": "number", "minimum": 1e400}'
    value = f'{{"type": "json_schema", "json_schema": {schema}}}'
    tag = f'{{"type": "structural_tag", "format": {value}}}'
    written(backend.dispatch_structural_tag(tag), tokenizer, "2" + "0" * 400)
    twice = tag.replace('"type": "number"', '"type": "number", "type": "string"')
    refused = backend.dispatch_structural_tag(twice)
    assert "stands twice" in refused.error_message


def test_a_grammar_that_cannot_be_framed_is_refused(
    backend: StencilmBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unprintable(grammar: Any) -> str:
        raise stencilm.LimitExceeded("too large to print")

    inner = backend.dispatch_regex("a")
    monkeypatch.setattr(type(inner.compiled.grammar), "__str__", unprintable)
    refused = backend.compile_framed_grammar(inner, lambda content: content)
    assert "too large to print" in refused.error_message
