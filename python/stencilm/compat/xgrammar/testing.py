"""The original's helpers for tests, except those that depend on its internals."""

from __future__ import annotations

from typing import Any, Literal

import torch

from stencilm.compat.xgrammar.compiling import GrammarCompiler
from stencilm.compat.xgrammar.grammars import Grammar, Schema
from stencilm.compat.xgrammar.matching import GrammarMatcher
from stencilm.compat.xgrammar.vocabularies import TokenizerInfo


def _json_schema_to_ebnf(
    schema: Schema,
    *,
    any_whitespace: bool = True,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    max_whitespace_cnt: int | None = None,
    strict_mode: bool = True,
    json_format: Literal[
        "json",
        "qwen_xml",
        "minimax_xml",
        "minimax_m3_xml",
        "deepseek_xml",
        "glm_xml",
        "cohere_xml",
        "kimi_k3_xml",
        "deepseek_v4_1_xml",
    ] = "json",
    any_order: bool = False,
) -> str:
    if json_format != "json":
        raise RuntimeError(
            f"json_format {json_format!r} is a format of structural tags here: use "
            "Grammar.from_structural_tag with a JSONSchemaFormat of this style"
        )
    return str(
        Grammar.from_json_schema(
            schema,
            any_whitespace=any_whitespace,
            indent=indent,
            separators=separators,
            max_whitespace_cnt=max_whitespace_cnt,
            strict_mode=strict_mode,
            any_order=any_order,
        )
    )


def _regex_to_ebnf(regex: str, with_rule_name: bool = True) -> str:
    text = str(Grammar.from_regex(regex))
    return text if with_rule_name else text.removeprefix("root ::= ").rstrip("\n")


def _byte_vocabulary() -> TokenizerInfo:
    return TokenizerInfo([bytes([byte]) for byte in range(256)], stop_token_ids=[])


def _get_matcher_from_grammar(grammar: Grammar | str, **kwargs: Any) -> GrammarMatcher:
    compiler = GrammarCompiler(_byte_vocabulary(), cache_enabled=False)
    return GrammarMatcher(
        compiler.compile_grammar(grammar), terminate_without_stop_token=True, **kwargs
    )


def _get_matcher_from_grammar_and_tokenizer_info(
    grammar: Grammar | str, tokenizer_info: TokenizerInfo | None = None, **kwargs: Any
) -> GrammarMatcher:
    info = _byte_vocabulary() if tokenizer_info is None else tokenizer_info
    compiler = GrammarCompiler(info, cache_enabled=False)
    return GrammarMatcher(compiler.compile_grammar(grammar), **kwargs)


def _is_grammar_accept_string(
    grammar: Grammar | str,
    input_str: str,
    *,
    debug_print: bool = False,
    print_time: bool = False,
    require_termination: bool = True,
) -> bool:
    matcher = _get_matcher_from_grammar(grammar)
    if not matcher.accept_string(input_str):
        return False
    return matcher.is_completed() if require_termination else True


def _get_masked_tokens_from_bitmask(
    bitmask: torch.Tensor, vocab_size: int, index: int = 0
) -> list[int]:
    closed: list[int] = (~bitmask_to_bool_mask(bitmask, vocab_size)[index]).nonzero()[:, 0].tolist()
    return closed


def _is_single_token_bitmask(
    bitmask: torch.Tensor, vocab_size: int, index: int = 0
) -> tuple[bool, int]:
    open_ones = bitmask_to_bool_mask(bitmask, vocab_size)[index].nonzero()[:, 0].tolist()
    return (True, open_ones[0]) if len(open_ones) == 1 else (False, -1)


def bool_mask_to_bitmask(bool_mask: torch.Tensor) -> torch.Tensor:
    """Convert bools of shape (batch, tokens) to a bitmask; bits beyond the tokens are set."""
    padded = torch.nn.functional.pad(bool_mask.bool(), (0, -bool_mask.shape[1] % 32), value=True)
    bits = padded.view(bool_mask.shape[0], -1, 32).to(torch.int64)
    weights = 1 << torch.arange(32, device=bool_mask.device, dtype=torch.int64)
    # Converting to 32 bits keeps the lower half: the same bits, as a signed word.
    return (bits * weights).sum(dim=2).to(torch.int32)


def bitmask_to_bool_mask(bit_mask: torch.Tensor, vocab_size: int | None = None) -> torch.Tensor:
    """Convert a bitmask of shape (batch, words) to bools of shape (batch, tokens)."""
    positions = torch.arange(32, device=bit_mask.device, dtype=torch.int32)
    bits = ((bit_mask.unsqueeze(-1) >> positions) & 1).bool().flatten(1)
    return bits if vocab_size is None else bits[:, :vocab_size]


def _traverse_draft_tree(
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    draft_tokens: torch.Tensor,
    matcher: GrammarMatcher,
    allocate_token_bitmask: torch.Tensor,
    time_threshold: float = -1.0,
) -> bool:
    return matcher.traverse_draft_tree(
        retrieve_next_token,
        retrieve_next_sibling,
        draft_tokens,
        allocate_token_bitmask,
        time_threshold,
    )


def __getattr__(name: str) -> object:
    if name in _INSIDES:
        raise AttributeError(
            f"{name} shows the insides of the original, which this package has not: compare masks "
            "with GrammarMatcher.fill_next_token_bitmask instead"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_INSIDES = frozenset(
    {
        *("GrammarFunctor", "_ebnf_to_grammar_no_normalization", "_is_rule_fsm_accept_string"),
        *("_get_allow_empty_rule_ids", "_generate_range_regex", "_generate_float_regex"),
        "_print_grammar_fsms",
    }
)
