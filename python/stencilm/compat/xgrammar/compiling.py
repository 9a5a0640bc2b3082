"""The original's `GrammarCompiler` and `CompiledGrammar`."""

from __future__ import annotations

from typing import Any

from stencilm.compat.xgrammar.escapes import read_ebnf
from stencilm.compat.xgrammar.failures import DeserializeFormatError, translated
from stencilm.compat.xgrammar.grammars import (
    ANY_JSON,
    Grammar,
    Schema,
    read_named,
    read_regex,
    read_schema,
    read_tag,
)
from stencilm.compat.xgrammar.saved import load, save
from stencilm.compat.xgrammar.vocabularies import TokenizerInfo, checked_info
from stencilm.matching.compiler import CompiledGrammar as _CompiledGrammar
from stencilm.matching.compiler import GrammarCompiler as _GrammarCompiler
from stencilm.shown import shown_value
from stencilm.whole_numbers import as_whole

_NO_LIMIT = 1 << 48


class CompiledGrammar:
    """A grammar compiled for a vocabulary; made by a `GrammarCompiler`."""

    _compiled: _CompiledGrammar
    _info: TokenizerInfo

    @property
    def grammar(self) -> Grammar:
        """The grammar that it was compiled from."""
        return Grammar._of(self._compiled.grammar)

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary that it was compiled for."""
        return self._info

    @property
    def memory_size_bytes(self) -> int:
        """Its current size in memory, in bytes; it grows with use."""
        return self._compiled.memory_size_bytes

    def serialize_json(self) -> str:
        """JSON text for `deserialize_json` of this package; the vocabulary is not in it."""
        return save("CompiledGrammar", {"value": self._compiled.serialize_json()})

    @staticmethod
    def deserialize_json(json_str: str, tokenizer_info: TokenizerInfo) -> CompiledGrammar:
        """Read what `serialize_json` wrote.

        Raises:
            InvalidJSONError: The text is not JSON.
            DeserializeVersionError: Another version, or another package, wrote it.
            DeserializeFormatError: It is damaged, not a compiled grammar, or of another tokenizer.
            ValueError: `tokenizer_info` is not a TokenizerInfo.
        """
        checked_info(tokenizer_info)
        text = str(load("CompiledGrammar", json_str)["value"])
        with translated(DeserializeFormatError):
            compiled = _CompiledGrammar.deserialize_json(text, tokenizer_info._info)
        return CompiledGrammar._of(compiled, tokenizer_info)

    @classmethod
    def _of(cls, compiled: _CompiledGrammar, info: TokenizerInfo) -> CompiledGrammar:
        made = cls.__new__(cls)
        made._compiled, made._info = compiled, info
        return made


class GrammarCompiler:
    """Compiles grammars for one vocabulary, and caches the latest.

    Args:
        tokenizer_info: The vocabulary.
        max_threads: Accepted for compatibility.
        cache_enabled: If False, every call compiles again.
        cache_limit_bytes: The total size of cached grammars; -1 for no limit.
        enable_dynamic_compilation: Accepted for compatibility: masks are always computed when they
            are first needed.

    Raises:
        ValueError: `tokenizer_info` is not a TokenizerInfo.
        TypeError: `max_threads` or `cache_limit_bytes` is not an integer.
        RuntimeError: `cache_limit_bytes` is below -1.
    """

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
        enable_dynamic_compilation: bool = False,
    ) -> None:
        self._info = checked_info(tokenizer_info)
        for name, value in (("max_threads", max_threads), ("cache_limit_bytes", cache_limit_bytes)):
            if as_whole(value) is None:
                raise TypeError(f"{name} is {shown_value(value):.80}, but must be an int")
        if cache_limit_bytes < -1:
            raise RuntimeError(
                f"cache_limit_bytes is {cache_limit_bytes}, but must be -1 for no limit, or more"
            )
        self._limit = cache_limit_bytes
        self._compiler = _GrammarCompiler(
            tokenizer_info._info,
            max_threads=max(max_threads, 1),
            cache_enabled=cache_enabled,
            cache_limit_bytes=_NO_LIMIT if cache_limit_bytes == -1 else cache_limit_bytes,
        )

    def compile_json_schema(
        self,
        schema: Schema,
        *,
        any_whitespace: bool = True,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        strict_mode: bool = True,
        max_whitespace_cnt: int | None = None,
        any_order: bool = False,
    ) -> CompiledGrammar:
        """The compiled form of `Grammar.from_json_schema`; raises what that raises."""
        text, options = read_schema(
            schema,
            any_whitespace,
            indent,
            separators,
            strict_mode,
            max_whitespace_cnt,
            any_order,
        )
        with translated(also=(ValueError,)):  # of indent and separators
            return self._made(self._compiler.compile_json_schema(text, **options))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """The compiled form of `Grammar.builtin_json_grammar`."""
        with translated():
            return self._made(self._compiler.compile_json_schema(ANY_JSON, max_whitespace=None))

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """The compiled form of `Grammar.from_regex`; raises what that raises."""
        with translated():
            return self._made(self._compiler.compile_grammar(read_regex(regex)))

    def compile_lark(
        self, lark_string: str, *, named_grammars: dict[str, Grammar | str] | None = None
    ) -> CompiledGrammar:
        """The compiled form of `Grammar.from_lark`; raises what that raises."""
        named = read_named(named_grammars)
        with translated():
            return self._made(self._compiler.compile_lark(lark_string, grammars=named))

    def compile_structural_tag(self, *args: Any, **kwargs: Any) -> CompiledGrammar:
        """The compiled form of `Grammar.from_structural_tag`, which describes the arguments.

        Raises:
            RuntimeError: It is not a structural tag, or cannot be enforced.
            TypeError: The arguments are of another form.
        """
        tag = read_tag(args, kwargs)
        with translated():
            return self._made(self._compiler.compile_structural_tag(tag))

    def compile_grammar(
        self, grammar: str | Grammar, *, root_rule_name: str = "root"
    ) -> CompiledGrammar:
        """The compiled form of a grammar, or of an EBNF text.

        Raises:
            RuntimeError: The text is not well-formed, or no token can begin it.
            ValueError: `grammar` is something else.
        """
        if not isinstance(grammar, (str, Grammar)):
            raise ValueError(
                f"grammar is a {type(grammar).__name__}, but must be a Grammar or an EBNF text"
            )
        if isinstance(grammar, str):
            with read_ebnf(grammar) as text:
                compiled = self._compiler.compile_grammar(text, root_rule_name=root_rule_name)
            return self._made(compiled)
        with translated():
            compiled = self._compiler.compile_grammar(
                grammar._grammar, root_rule_name=root_rule_name
            )
            return self._made(compiled)

    def clear_cache(self) -> None:
        """Drop all cached grammars."""
        self._compiler.clear_cache()

    def get_cache_size_bytes(self) -> int:
        """The current size of the cached grammars, in bytes."""
        return self._compiler.get_cache_size_bytes()

    @property
    def cache_limit_bytes(self) -> int:
        """As given: -1 for no limit."""
        return self._limit

    def _made(self, compiled: _CompiledGrammar) -> CompiledGrammar:
        return CompiledGrammar._of(compiled, self._info)
