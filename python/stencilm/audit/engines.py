"""The interface of engines for the audit, and the built-in engines.

One idea: an engine is four calls over the ids of one vocabulary, with masks as bits. Each engine
runs in its own process, which imports only its class and its package.
"""

from __future__ import annotations

import importlib
import importlib.util
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stencilm.files import run_file
from stencilm.shown import shown_value

if TYPE_CHECKING:
    from stencilm.tokenizers import TokenizerInfo


class Engine(Protocol):
    """A mask engine behind four calls; any class that has them will do.

    The class is named `module:Class` or `file.py:Class`. It is made with a `TokenizerInfo`, whose
    `decoded_vocab`, `stop_token_ids` and `special_token_ids` say all there is about the tokens.
    An optional `script` is Python text that replays a finding without this package: see
    `stencilm.audit.replay`.

    >>> import numpy as np
    >>> from stencilm import TokenizerInfo
    >>> class Everything:
    ...     "Allows every token, always."
    ...
    ...     def __init__(self, tokenizer):
    ...         self.words = -(-tokenizer.vocab_size // 32)
    ...
    ...     def compile(self, schema):
    ...         return schema
    ...
    ...     def start(self, compiled):
    ...         return []
    ...
    ...     def mask(self, matcher):
    ...         return np.full(self.words, -1, dtype=np.int32)
    ...
    ...     def accept(self, matcher, token_id):
    ...         matcher.append(token_id)
    ...         return True
    >>> engine = Everything(TokenizerInfo([b"a", b"</s>"], stop_token_ids=[1]))
    >>> engine.accept(engine.start(engine.compile("{}")), 0)
    True
    """

    def __init__(self, tokenizer: TokenizerInfo) -> None: ...

    def compile(self, schema: str) -> Any:
        """Compile a JSON Schema, for `start`; any exception means that the schema is refused."""

    def start(self, compiled: Any) -> Any:
        """A matcher before the first token of a text."""

    def mask(self, matcher: Any) -> NDArray[np.int32]:
        """The tokens that may come next, int32 of shape [ceil(vocab_size / 32)].

        Bit `i % 32` of word `i // 32` is 1 where token `i` is allowed. A stop token is allowed
        where the text may end. The array may be the same one each time.
        """

    def accept(self, matcher: Any, token_id: int) -> bool:
        """Write a token; returns False if the engine refuses it."""


class Stencilm:
    """stencilm, with keys in any order."""

    name = "stencilm"
    package = "stencilm"
    order: Any = "any"
    script = """
import stencilm
info = stencilm.TokenizerInfo(TOKENS, stop_token_ids=[STOP])
grammar = stencilm.GrammarCompiler(info).compile_json_schema(SCHEMA, property_order="any")
matcher = stencilm.GrammarMatcher(grammar)
print([matcher.accept_token(token) for token in PREFIX])
mask = stencilm.allocate_token_bitmask(1, info.vocab_size)
matcher.fill_next_token_bitmask(mask)
MASK = mask[0].tolist()
"""

    def __init__(self, tokenizer: TokenizerInfo) -> None:
        from stencilm.matching.compiler import GrammarCompiler

        self._compiler = GrammarCompiler(tokenizer, cache_enabled=False)
        self._words = _words(tokenizer)

    def compile(self, schema: str) -> Any:
        """Compile a grammar."""
        return self._compiler.compile_json_schema(schema, property_order=self.order)

    def start(self, compiled: Any) -> Any:
        """Start a `GrammarMatcher`."""
        from stencilm.matching.matcher import GrammarMatcher

        return GrammarMatcher(compiled)

    def mask(self, matcher: Any) -> NDArray[np.int32]:
        """Fill the mask."""
        matcher.fill_next_token_bitmask(self._words)
        return self._words

    def accept(self, matcher: Any, token_id: int) -> bool:
        """Accept a token; False if it is refused."""
        return bool(matcher.accept_token(token_id))


class DeclaredOrder(Stencilm):
    """stencilm with its defaults: declared keys in the order of the schema."""

    name = "stencilm-declared"
    order = "declared"
    script = Stencilm.script.replace('"any"', '"declared"')


class XGrammar:
    """xgrammar within the JSON Schema specification: undeclared members are allowed."""

    name = package = "xgrammar"
    script = """
import xgrammar
info = xgrammar.TokenizerInfo(TOKENS, stop_token_ids=[STOP])
grammar = xgrammar.GrammarCompiler(info).compile_json_schema(SCHEMA, strict_mode=False)
matcher = xgrammar.GrammarMatcher(grammar)
print([matcher.accept_token(token) for token in PREFIX])
mask = xgrammar.allocate_token_bitmask(1, info.vocab_size)
matcher.fill_next_token_bitmask(mask)
MASK = mask[0].tolist()
"""

    def __init__(self, tokenizer: TokenizerInfo) -> None:
        import xgrammar

        self._xgrammar = xgrammar
        info = xgrammar.TokenizerInfo(
            tokenizer.decoded_vocab,
            vocab_size=tokenizer.vocab_size,
            stop_token_ids=tokenizer.stop_token_ids,
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._mask = xgrammar.allocate_token_bitmask(1, tokenizer.vocab_size)
        self._words = self._mask.numpy()[0]  # a view of the same memory

    def compile(self, schema: str) -> Any:
        """Compile a grammar."""
        return self._compiler.compile_json_schema(schema, strict_mode=False)

    def start(self, compiled: Any) -> Any:
        """Start a `GrammarMatcher`."""
        return self._xgrammar.GrammarMatcher(compiled)

    def mask(self, matcher: Any) -> Any:
        """Fill the mask; xgrammar returns False if all tokens are allowed."""
        if not matcher.fill_next_token_bitmask(self._mask):
            self._words.fill(-1)
        return self._words

    def accept(self, matcher: Any, token_id: int) -> bool:
        """Accept a token; False if it is refused."""
        return bool(matcher.accept_token(token_id))


class LLGuidance:
    """llguidance with its defaults for JSON Schema."""

    name = package = "llguidance"
    script = """
import llguidance, numpy
class Bytes:
    tokens, eos_token_id, bos_token_id, special_token_ids = TOKENS, STOP, None, [STOP]
    __call__ = staticmethod(list)
tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))
grammar = llguidance.LLMatcher.grammar_from_json_schema(SCHEMA)
matcher = llguidance.LLMatcher(tokenizer, grammar)
print([matcher.consume_token(token) for token in PREFIX])
MASK = numpy.frombuffer(matcher.compute_bitmask(), dtype=numpy.int32).tolist()
"""

    def __init__(self, tokenizer: TokenizerInfo) -> None:
        import llguidance

        class Tokens:
            tokens = tokenizer.decoded_vocab
            eos_token_id = tokenizer.stop_token_ids[0]
            bos_token_id = None
            special_token_ids = tokenizer.special_token_ids

            def __call__(self, text: bytes) -> list[int]:
                return tokenizer.tokenize_bytes(text)

        self._llguidance = llguidance
        self._tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))
        self._words = _words(tokenizer)

    def compile(self, schema: str) -> Any:
        """Make a matcher, which `start` copies."""
        grammar = self._llguidance.LLMatcher.grammar_from_json_schema(schema)
        matcher = self._llguidance.LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def start(self, compiled: Any) -> Any:
        """Copy the matcher."""
        return compiled.deep_copy()

    def mask(self, matcher: Any) -> NDArray[np.int32]:
        """Compute the mask."""
        matcher.unsafe_compute_mask_ptr(self._words.ctypes.data, self._words.nbytes)
        if matcher.is_error():
            raise RuntimeError(matcher.get_error())
        return self._words

    def accept(self, matcher: Any, token_id: int) -> bool:
        """Consume a token; False if it is refused."""
        return bool(matcher.consume_token(token_id))


class OutlinesCore:
    """outlines-core: the schema as a pattern, and an index of it over the tokens."""

    name = package = "outlines-core"
    script = """
import outlines_core, numpy
from outlines_core.json_schema import build_regex_from_schema
ids = {text: [token] for token, text in enumerate(TOKENS) if token != STOP}
vocabulary = outlines_core.Vocabulary(STOP, ids)
guide = outlines_core.Guide(outlines_core.Index(build_regex_from_schema(SCHEMA), vocabulary))
print([guide.advance(token, False) for token in PREFIX])
mask = numpy.zeros(-(-len(TOKENS) // 32), dtype=numpy.int32)
guide.write_mask_into(mask.ctypes.data, mask.size, mask.itemsize)
MASK = mask.tolist()
"""

    def __init__(self, tokenizer: TokenizerInfo) -> None:
        import outlines_core
        from outlines_core.json_schema import build_regex_from_schema

        self._core, self._pattern = outlines_core, build_regex_from_schema
        stop = tokenizer.stop_token_ids[0]
        self._vocabulary = outlines_core.Vocabulary(stop, _ids_by_bytes(tokenizer))
        self._words = _words(tokenizer)

    def compile(self, schema: str) -> Any:
        """Build an index."""
        return self._core.Index(self._pattern(schema), self._vocabulary)

    def start(self, compiled: Any) -> Any:
        """Make a guide in its first state."""
        return self._core.Guide(compiled)

    def mask(self, matcher: Any) -> NDArray[np.int32]:
        """Write the mask."""
        words = self._words
        matcher.write_mask_into(words.ctypes.data, words.size, words.itemsize)
        return words

    def accept(self, matcher: Any, token_id: int) -> bool:
        """Advance the guide; False if the token is refused."""
        try:
            matcher.advance(token_id, False)
        except ValueError:
            return False
        return True


class GLRMask:
    """glrmask, with the stop token after the text."""

    name = package = "glrmask"
    script = """
import glrmask
texts = {token: text for token, text in enumerate(TOKENS) if token != STOP}
parts = [glrmask.Grammar.from_json_schema(SCHEMA), glrmask.TokenSet([STOP])]
grammar = glrmask.Grammar.from_expr(glrmask.Expr.sequence(*parts))
matcher = grammar.compile(glrmask.Vocab.from_id_to_bytes(texts)).start()
print([matcher.commit_token(token) for token in PREFIX])
import numpy
mask = numpy.zeros(-(-len(TOKENS) // 32), dtype=numpy.int32)
matcher.fill_mask(mask)
MASK = mask.tolist()
"""

    def __init__(self, tokenizer: TokenizerInfo) -> None:
        import glrmask

        self._lib = glrmask
        self._stop = glrmask.TokenSet(tokenizer.stop_token_ids)
        ids = _ids_by_bytes(tokenizer)
        self._vocabulary = glrmask.Vocab.from_id_to_bytes(
            {token_id: text for text, same in ids.items() for token_id in same}
        )
        self._words = _words(tokenizer)

    def compile(self, schema: str) -> Any:
        """Compile a constraint."""
        parts = self._lib.Grammar.from_json_schema(schema), self._stop
        grammar = self._lib.Grammar.from_expr(self._lib.Expr.sequence(*parts))
        return grammar.compile(self._vocabulary)

    def start(self, compiled: Any) -> Any:
        """Start a state before the first token."""
        return compiled.start()

    def mask(self, matcher: Any) -> NDArray[np.int32]:
        """Fill the mask."""
        self._words.fill(0)
        matcher.fill_mask(self._words)
        return self._words

    def accept(self, matcher: Any, token_id: int) -> bool:
        """Commit a token; False if it is refused."""
        return bool(matcher.commit_token(token_id))


GIVEN: dict[str, Any] = {
    engine.name: engine
    for engine in (Stencilm, DeclaredOrder, XGrammar, LLGuidance, OutlinesCore, GLRMask)
}
"""The built-in engines by name; all but the first two need a package of their own."""


def find_engine(name: str) -> type[Engine]:
    """The class of an engine: a built-in one, `module:Class`, or `file.py:Class`.

    Raises:
        TypeError: `name` is not a str.
        ValueError: There is no such class.
    """
    if not isinstance(name, str):
        raise TypeError(f"name is {shown_value(name):.80}, but must be a str, such as 'stencilm'")
    if name in GIVEN:
        found: type[Engine] = GIVEN[name]
        return found
    module_name, colon, class_name = name.rpartition(":")
    if not colon or not class_name.isidentifier():
        raise ValueError(
            f"there is no engine {name!r}: give one of {', '.join(GIVEN)}, or module:Class or "
            "file.py:Class"
        )
    module = _module(module_name)
    if not hasattr(module, class_name):
        raise ValueError(f"{module_name!r} has no class {class_name!r}")
    found = getattr(module, class_name)
    return found


def missing(name: str) -> str | None:
    """The package that a built-in engine needs, if it is not installed."""
    package = getattr(GIVEN.get(name), "package", None)
    if package in (None, "stencilm"):
        return None
    return None if importlib.util.find_spec(package.replace("-", "_")) else str(package)


def version_of(name: str) -> str:
    """The version of an engine's package; empty if it is not known."""
    package = getattr(GIVEN.get(name), "package", "")
    try:
        return version(package) if package else ""
    except PackageNotFoundError:
        return ""


def _module(name: str) -> Any:
    return run_file(name) if name.endswith(".py") else importlib.import_module(name)


def _words(tokenizer: TokenizerInfo) -> NDArray[np.int32]:
    return np.zeros(-(-tokenizer.vocab_size // 32), dtype=np.int32)


def _ids_by_bytes(tokenizer: TokenizerInfo) -> dict[bytes, list[int]]:
    """The tokens that spell text, grouped by their bytes."""
    special = {*tokenizer.special_token_ids, *tokenizer.stop_token_ids}
    found: dict[bytes, list[int]] = {}
    for token_id, text in enumerate(tokenizer.decoded_vocab):
        if text and token_id not in special:
            found.setdefault(text, []).append(token_id)
    return found
