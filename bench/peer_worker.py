"""One engine in its own environment: reads a schema with its texts per line, and answers per line.

Nothing of this repository is imported here, except by the adapter of stencilm itself. A request is
`{"schema": ..., "texts": [[token ids, is valid], ...], "seconds": ...}`. The answer has a status,
the microseconds of compiling with the first mask, and those of every mask with the token after it.
A signal ends an engine that needs more seconds of processor time; other load on the machine does
not count.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any


class Refused(Exception):
    """The engine refuses the schema."""


class Stencilm:
    """stencilm, with keys in any order, as the texts have them."""

    def __init__(self, folder: Path, vocab_size: int, stop: int) -> None:
        import stencilm

        self._stencilm = stencilm
        info = stencilm.TokenizerInfo.from_file(
            folder, vocab_size=vocab_size, stop_token_ids=[stop]
        )
        self._compiler = stencilm.GrammarCompiler(info, cache_enabled=False)
        self._bitmask = stencilm.allocate_token_bitmask(1, vocab_size)

    def compile(self, schema: str) -> Any:
        try:
            return self._compiler.compile_json_schema(schema, property_order="any")
        except self._stencilm.StencilError as error:
            raise Refused(str(error)) from error

    def start(self, compiled: Any) -> Any:
        return self._stencilm.GrammarMatcher(compiled)

    def mask(self, matcher: Any) -> None:
        matcher.fill_next_token_bitmask(self._bitmask)

    def accept(self, matcher: Any, token_id: int) -> bool:
        return bool(matcher.accept_token(token_id))

    def may_end(self, matcher: Any) -> bool:
        return bool(matcher.is_completed())


class XGrammar:
    """xgrammar, within the defaults of the JSON Schema specification."""

    def __init__(self, folder: Path, vocab_size: int, stop: int) -> None:
        import xgrammar
        from transformers import PreTrainedTokenizerFast

        self._xgrammar = xgrammar
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        self._stop = stop
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=vocab_size, stop_token_ids=[self._stop]
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._bitmask = xgrammar.allocate_token_bitmask(1, vocab_size)

    def compile(self, schema: str) -> Any:
        try:
            return self._compiler.compile_json_schema(schema, strict_mode=False)
        except Exception as error:
            raise Refused(str(error)) from error

    def start(self, compiled: Any) -> Any:
        return self._xgrammar.GrammarMatcher(compiled)

    def mask(self, matcher: Any) -> None:
        matcher.fill_next_token_bitmask(self._bitmask)

    def accept(self, matcher: Any, token_id: int) -> bool:
        return bool(matcher.accept_token(token_id))

    def may_end(self, matcher: Any) -> bool:
        return bool(matcher.accept_token(self._stop))


class LLGuidance:
    """llguidance, with its defaults for JSON Schema."""

    def __init__(self, folder: Path, vocab_size: int, stop: int) -> None:
        import llguidance
        import llguidance.numpy

        self._llguidance = llguidance
        self._tokenizer = llguidance.LLTokenizer(
            (folder / "tokenizer.json").read_text(encoding="utf-8"),
            n_vocab=vocab_size,
            eos_token=stop,
        )
        self._bitmask = llguidance.numpy.allocate_token_bitmask(1, vocab_size)

    def compile(self, schema: str) -> Any:
        matcher = self._llguidance.LLMatcher
        try:
            grammar = matcher.grammar_from_json_schema(schema)
        except Exception as error:
            raise Refused(str(error)) from error
        made = matcher(self._tokenizer, grammar, log_level=0)
        if made.is_error():
            raise Refused(made.get_error())
        return made

    def start(self, compiled: Any) -> Any:
        return compiled.deep_copy()

    def mask(self, matcher: Any) -> None:
        self._llguidance.numpy.fill_next_token_bitmask(matcher, self._bitmask, 0)

    def accept(self, matcher: Any, token_id: int) -> bool:
        return bool(matcher.consume_token(token_id)) and not matcher.is_error()

    def may_end(self, matcher: Any) -> bool:
        return bool(matcher.is_accepting())


class OutlinesCore:
    """outlines-core: a schema becomes a regular expression, and that an index over tokens."""

    def __init__(self, folder: Path, vocab_size: int, stop: int) -> None:
        import numpy as np
        import outlines_core

        from tokenizers import Tokenizer

        self._core = outlines_core
        self._stop = stop
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokens: dict[bytes, list[int]] = {}
        for written, token_id in tokenizer.get_vocab().items():
            if token_id != self._stop:
                tokens.setdefault(_bytes_of(written, tokenizer), []).append(token_id)
        tokens.pop(b"", None)
        self._vocabulary = outlines_core.Vocabulary(self._stop, tokens)
        self._bitmask = np.zeros((1, -(-vocab_size // 32)), dtype=np.int32)

    def compile(self, schema: str) -> Any:
        from outlines_core.json_schema import build_regex_from_schema

        try:
            return self._core.Index(build_regex_from_schema(schema), self._vocabulary)
        except Exception as error:
            raise Refused(str(error)) from error

    def start(self, compiled: Any) -> Any:
        return self._core.Guide(compiled)

    def mask(self, matcher: Any) -> None:
        bitmask = self._bitmask
        matcher.write_mask_into(bitmask.ctypes.data, bitmask.size, bitmask.itemsize)

    def accept(self, matcher: Any, token_id: int) -> bool:
        try:
            matcher.advance(token_id, return_tokens=False)
        except ValueError:
            return False
        return True

    def may_end(self, matcher: Any) -> bool:
        return bool(matcher.is_finished()) or self._stop in matcher.get_tokens()


ENGINES = {
    "stencilm": Stencilm,
    "xgrammar": XGrammar,
    "llguidance": LLGuidance,
    "outlines-core": OutlinesCore,
}


def _bytes_of(written: str, tokenizer: Any) -> bytes:
    """The bytes of a token of a byte-level vocabulary."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(0x100 + rank): byte for rank, byte in enumerate(hidden)})
    try:
        return bytes(alphabet[character] for character in written)
    except KeyError:
        return written.encode()


def decide(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Read all texts of a schema."""
    begun = time.perf_counter_ns()
    try:
        compiled = engine.compile(request["schema"])
        matcher = engine.start(compiled)
        engine.mask(matcher)
    except Refused as refused:
        return {"status": "refused", "why": str(refused)[:200]}
    first = (time.perf_counter_ns() - begun) / 1e3
    steps: list[float] = []
    status, why = "passes", ""
    for token_ids, is_valid in request["texts"]:
        matcher = engine.start(compiled)
        accepted = True
        for token_id in token_ids:
            begun = time.perf_counter_ns()
            engine.mask(matcher)
            accepted = engine.accept(matcher, token_id)
            steps.append((time.perf_counter_ns() - begun) / 1e3)
            if not accepted:
                break
        accepted = accepted and engine.may_end(matcher)
        if accepted != is_valid and status == "passes":
            status = "too strict" if is_valid else "too loose"
    return {"status": status, "why": why, "first": [first], "steps": steps}


def main() -> None:
    """Answer requests until there are no more."""
    name, folder, vocab_size, stop = sys.argv[1:]
    engine = ENGINES[name](Path(folder), int(vocab_size), int(stop))
    answers = sys.stdout
    sys.stdout = sys.stderr  # keep what a library prints out of the answers
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, request.get("seconds", 0))
        try:
            answer = decide(engine, request)
        except Exception as error:
            answer = {"status": "failed", "why": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
