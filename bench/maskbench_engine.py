"""stencilm as an engine of a MaskBench-style runner: one class with the calls that it times.

The runner is not part of this repository. It imports this file as ``ours=maskbench_engine:Engine``
with ``--path bench``, and provides ``engine_api``.
"""

from __future__ import annotations

from typing import Literal

from engine_api import CompileError, TokenizerBundle
from engine_api import Engine as Base

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo


class Engine(Base):
    """Keys in any order, free white space, and no grammar cache, so that compiling is timed.

    The instances of the data have their keys in any order, which is valid.
    """

    name = "stencilm"
    property_order: Literal["declared", "any"] = "any"

    def __init__(self, tok: TokenizerBundle) -> None:
        super().__init__(tok)
        info = TokenizerInfo.from_huggingface(
            tok.hf, vocab_size=tok.vocab_size, stop_token_ids=[tok.eos_id]
        )
        self._compiler = GrammarCompiler(info, cache_enabled=False)
        self._matcher: GrammarMatcher
        self._compiled: stencilm.CompiledGrammar

    def version(self) -> str:
        return stencilm.__version__

    def compile(self, schema: str) -> None:
        try:
            self._compiled = self._compiler.compile_json_schema(
                schema, property_order=self.property_order
            )
        except stencilm.StencilError as error:
            raise CompileError(str(error)) from error

    def start(self) -> None:
        self._matcher = GrammarMatcher(self._compiled)

    def fill_mask(self) -> None:
        self._matcher.fill_next_token_bitmask(self.mask)

    def commit(self, token: int) -> bool:
        return self._matcher.accept_token(token)

    def release(self) -> None:
        self.__dict__.pop("_matcher", None)
        self.__dict__.pop("_compiled", None)


class DeclaredOrder(Engine):
    """Declared keys in the order of the schema, which is the package's default.

    Between one thirtieth and one hundredth of the schemas then refuse a valid instance because of
    the order of its keys.
    """

    name = "stencilm, declared order"
    property_order = "declared"


class Prepared(Engine):
    """The same, but likely masks are prepared when a schema is compiled, in at most 5 ms.

    Here this time counts for the first mask; an engine prepares while a prompt is read.
    """

    name = "stencilm-prepared"

    def compile(self, schema: str) -> None:
        super().compile(schema)
        self._compiled.prepare(milliseconds=5, background=False)
