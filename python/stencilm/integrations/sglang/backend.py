"""The grammar backend: compiles what requests ask for, and handles the reasoning before it.

One idea: a grammar that cannot be enforced is refused when it is compiled, with the location and
the way out. So the request is answered with status 400, and no other request is affected.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
)
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.runtime_context import get_serving

import stencilm
from stencilm.integrations.sglang.grammars import (
    StencilmGrammar,
    WaitingGrammar,
    allocate_mask,
    apply_mask,
    logger,
    move_mask,
    no_text_token,
)
from stencilm.integrations.sglang.notations import is_lark, with_schemas
from stencilm.shown import shown_value

ANY_JSON = "$$ANY$$"
"""SGLang's notation for any JSON."""

WHITESPACE_BUDGET = "STENCILM_SGLANG_WHITESPACE_BUDGET"
"""The variable that bounds the whitespace of a whole text, for which SGLang has no flag."""

_MOST_CACHED = 512
"""The most grammars in SGLang's cache, besides the compiler's cache, which counts bytes."""


def whitespace_budget_of(environment: Mapping[str, str]) -> int | None:
    """The value of `STENCILM_SGLANG_WHITESPACE_BUDGET`; None if it is not set.

    Raises:
        ValueError: It is not a number, or negative.
    """
    text = environment.get(WHITESPACE_BUDGET, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ValueError(
            f"{WHITESPACE_BUDGET} is {shown_value(text):.80}, "
            f"but must be a number of bytes: the most whitespace "
            "between the parts of a JSON text"
        )
    return int(text)


def create(tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None) -> Any:
    """The backend, within the engine's own wrapper for reasoning if the model reasons."""
    serving = get_serving()
    if serving.constrained_json_whitespace_pattern is not None:
        raise ValueError(
            "--constrained-json-whitespace-pattern is not enforced by --grammar-backend stencilm: "
            "use --constrained-json-max-whitespace-cnt or --constrained-json-disable-any-whitespace"
        )
    backend = StencilmBackend(
        tokenizer,
        vocab_size,
        eos_token_ids,
        any_whitespace=not serving.constrained_json_disable_any_whitespace,
        max_whitespace=serving.constrained_json_max_whitespace_cnt,
        whitespace_budget=whitespace_budget_of(os.environ),
    )
    if not serving.reasoning_parser:
        return backend
    parser = ReasoningParser(
        model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer
    )
    if not parser.detector.get_think_end_token_ids(tokenizer):
        # As in the engine: no token marks the end of such a model's reasoning.
        return backend
    return WaitingBackend(
        backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking
    )


class LatestGrammars(OrderedDict[Any, Any]):
    """The most recently used grammars; the engine's own dict would grow without bound."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The grammar of a key, which becomes the most recently used."""
        if key not in self:
            return default
        self.move_to_end(key)
        return self[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a grammar, and evict the least recently used one."""
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > _MOST_CACHED:
            self.popitem(last=False)


class WaitingBackend(ReasonerGrammarBackend):  # type: ignore[misc]
    """The engine's wrapper that waits for the end of reasoning, but fills batches in one call."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.cache = LatestGrammars()

    def _make_grammar_object(
        self, grammar: BaseGrammarObject | None, reasoning: bool
    ) -> BaseGrammarObject:
        made = super()._make_grammar_object(grammar, reasoning)
        made.__class__ = WaitingGrammar  # as in its `copy`
        return made


class StencilmBackend(BaseGrammarBackend):  # type: ignore[misc]
    """Compiles the grammars of requests.

    Args:
        tokenizer: The model's tokenizer.
        vocab_size: The width of the model's logits.
        eos_token_ids: The tokens that end a text; None for those that the tokenizer declares.
        any_whitespace: Whitespace wherever JSON allows it; if False, the layout of `json.dumps`.
        max_whitespace: The longest run of whitespace; None for the default bound.
        whitespace_budget: The most bytes of whitespace between the parts of a whole JSON text; None
            for no bound.

    Raises:
        TokenizerError: The tokenizer cannot be read.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Iterable[int] | None,
        *,
        any_whitespace: bool = True,
        max_whitespace: int | None = None,
        whitespace_budget: int | None = None,
    ) -> None:
        super().__init__()
        self._whitespace_budget = whitespace_budget
        self.cache = LatestGrammars()
        self._info = stencilm.TokenizerInfo._of_model(
            tokenizer, vocab_size, sorted(eos_token_ids) if eos_token_ids else None
        )
        self._compiler = stencilm.GrammarCompiler(self._info)
        self._framing = self._compiler
        self._no_text = no_text_token(self._info)
        self._json_options: dict[str, Any] = {"any_whitespace": any_whitespace}
        if max_whitespace is not None:
            self._json_options["max_whitespace"] = max_whitespace

    # The engine calls these methods of the backend for requests with reasoning but no grammar.

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """See `allocate_mask`."""
        return allocate_mask(vocab_size, batch_size)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """See `move_mask`."""
        return move_mask(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """See `apply_mask`."""
        apply_mask(logits, vocab_mask)

    @property
    def is_support_token_filter(self) -> bool:
        """Strict reasoning may forbid single tokens."""
        return True

    @staticmethod
    def set_token_filter(
        vocab_mask: torch.Tensor,
        token_ids: list[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or forbid some tokens in a row, in addition to its contents or instead of them."""
        set_token_filter_torch(
            vocab_mask,
            token_ids,
            batch_idx,
            is_allowed=is_allowed,
            reset_vocab_mask=reset_vocab_mask,
        )

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """JSON that is valid under a schema, or any JSON."""
        if key_string == ANY_JSON:
            key_string = "true"  # any JSON, to which the server's flags apply, too
        return self._grammar(
            "json", lambda: self._compiler.compile_json_schema(key_string, **self._json_options)
        )

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """Text that a regular expression matches as a whole."""
        return self._grammar("regex", lambda: self._compiler.compile_regex(key_string))

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Text of a grammar, in EBNF or in Lark."""
        compile_text = (
            self._compiler.compile_lark if is_lark(key_string) else self._compiler.compile_grammar
        )
        return self._grammar("ebnf", lambda: compile_text(key_string))

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """A structural tag of either form."""
        return self._grammar(
            "structural_tag",
            lambda: self._compiler.compile_structural_tag(with_schemas(key_string)),
        )

    def reserve_framing_tokens(self, token_ids: Sequence[int]) -> None:
        """Make these tokens special in framed grammars, so that text never uses them."""
        info = self._info
        self._framing = stencilm.GrammarCompiler(
            stencilm.TokenizerInfo(
                info.decoded_vocab,
                vocab_size=info.vocab_size,
                stop_token_ids=info.stop_token_ids,
                special_token_ids=sorted({*info.special_token_ids, *token_ids}),
            )
        )

    def compile_framed_grammar(
        self, grammar: StencilmGrammar, frame: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> BaseGrammarObject:
        """The grammar as the content of a structural tag."""

        def compile_it() -> stencilm.CompiledGrammar:
            content = {"type": "grammar", "grammar": str(grammar.compiled.grammar)}
            return self._framing.compile_structural_tag(json.dumps(frame(content)))

        return self._grammar("structural_tag", compile_it)

    def reset(self) -> None:
        """Forget all grammars."""
        super().reset()
        self._compiler.clear_cache()
        self._framing.clear_cache()

    def _grammar(
        self, kind: str, compile_it: Callable[[], stencilm.CompiledGrammar]
    ) -> BaseGrammarObject:
        try:
            stats = GrammarStats(dispatch_type=kind)
            budget = self._whitespace_budget if kind == "json" else None
            return StencilmGrammar(compile_it(), self._no_text, stats, budget)
        except (stencilm.StencilError, TypeError, ValueError, RecursionError) as error:
            logger.info("a %s is refused: %s", kind, error)
            return InvalidGrammarObject(str(error))
