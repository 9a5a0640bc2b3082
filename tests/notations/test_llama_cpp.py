"""Grammars as GBNF in llama.cpp itself: it reads them, and has the same masks."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest

import stencilm
from grammar_kinds import KINDS
from notations.test_conversion import GRAMMARS

llama_cpp = pytest.importorskip("llama_cpp")
pytest.importorskip("gguf")

from gguf_files import write_tiny  # noqa: E402

SAID = {name: grammar for name, (grammar, said) in GRAMMARS.items() if "gbnf" in said}
SAID |= {name: kind.grammar for name, kind in KINDS.items() if name != "structural tags"}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = write_tiny(tmp_path_factory.mktemp("gguf") / "tiny.gguf")
    return llama_cpp.Llama(model_path=str(path), vocab_only=True, verbose=False)


class Twin:
    """A grammar as llama.cpp holds it."""

    def __init__(self, llama: Any, text: str) -> None:
        vocab = llama_cpp.llama_model_get_vocab(llama.model)
        self.sampler = llama_cpp.llama_sampler_init_grammar(vocab, text.encode(), b"root")
        assert self.sampler, text
        self.rows = (llama_cpp.llama_token_data * llama.n_vocab())()

    def allowed(self) -> Any:
        rows = np.ctypeslib.as_array(self.rows)
        rows["id"], rows["logit"], rows["p"] = np.arange(len(rows)), 0, 0
        given = llama_cpp.llama_token_data_array(self.rows, len(rows), -1, False)
        llama_cpp.llama_sampler_apply(self.sampler, ctypes.byref(given))
        return np.ctypeslib.as_array(self.rows)["logit"] == 0

    def accept(self, token_id: int) -> None:
        llama_cpp.llama_sampler_accept(self.sampler, token_id)

    def close(self) -> None:
        llama_cpp.llama_sampler_free(self.sampler)


def comparable(info: stencilm.TokenizerInfo) -> Any:
    """Not the bytes of a character, which llama.cpp guesses, nor NUL, which it never takes."""
    pieces = [info.decode_bytes([token_id]) for token_id in range(info.vocab_size)]
    return np.array(
        [
            token_id in info.stop_token_ids
            or (bool(piece) and b"\0" not in piece and not (len(piece) == 1 and piece[0] >= 0x80))
            for token_id, piece in enumerate(pieces)
        ]
    )


@pytest.mark.parametrize("name", SAID)
def test_llama_cpp_has_the_same_masks(llama: Any, name: str) -> None:
    info = stencilm.TokenizerInfo.from_llama_cpp(llama)
    counts = comparable(info)
    grammar = SAID[name]
    compiled = stencilm.GrammarCompiler(info).compile(grammar)
    words = np.zeros((1, -(-info.vocab_size // 32)), dtype=np.int32)
    rng = random.Random(name)
    for _ in range(3):
        matcher, twin = stencilm.GrammarMatcher(compiled), Twin(llama, grammar.converted("gbnf"))
        for _ in range(12):
            if not matcher.fill_next_token_bitmask(words):
                words.fill(-1)
            bits = np.unpackbits(words.view(np.uint8), bitorder="little")
            allowed = bits[: info.vocab_size].astype(bool)
            differing = np.flatnonzero((allowed != twin.allowed()) & counts)
            assert not differing.size, info.decode_bytes(differing[:9].tolist())
            going_on = [one for one in np.flatnonzero(allowed & counts).tolist() if one != 2]
            if not going_on:
                break
            token_id = rng.choice(going_on)
            assert matcher.accept_token(token_id)
            twin.accept(token_id)
        twin.close()
