"""The work by which the extension's profile is taken: python -m pgo (`make profile` does the rest).

Schemas and their texts are most of it, because they are most of what servers do, and each schema is
compiled but once: what a first mask runs through should lie together. The other notations and
questions follow, so that the compiler does not take them for code that never runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

import stencilm
from pgo.schemas import Drawer
from stencilm import GrammarCompiler, GrammarMatcher, TokenIndex, TokenizerInfo
from stencilm.errors import StencilError
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = 1500
VOCABULARY = 32_000
PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How tokenizers of the day cut text before they merge."""


def tokenizer() -> Any:
    """Byte-level BPE, learnt from this repository's own sources and pages."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    learner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    learner.train_from_iterator(texts(), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=learner, eos_token="<|end|>")


def texts() -> Iterable[str]:
    folders = ("bench", "crates", "docs", "examples", "fuzz", "python", "tests", "training")
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".json", ".md", ".py", ".rs"):
                yield path.read_text(encoding="utf-8")


class Work:
    """One vocabulary, and what is asked of it."""

    def __init__(self, encode: Any, info: TokenizerInfo) -> None:
        self.encode = encode
        self.info = info
        self.compiler = GrammarCompiler(info, cache_enabled=False)
        self.mask = stencilm.allocate_token_bitmask(1, info.vocab_size)
        self.masks = self.walks = self.refused = 0

    def walk(self, matcher: GrammarMatcher, tokens: Iterable[int]) -> None:
        """A mask and a token at a time, as far as the grammar allows them."""
        self.walks += 1
        for token in tokens:
            matcher.fill_next_token_bitmask(self.mask)
            self.masks += 1
            if not matcher.accept_token(token):
                self.refused += 1
                return
        matcher.fill_next_token_bitmask(self.mask)

    def tokens(self, text: str) -> list[int]:
        return list(self.encode(text))

    def schemas(self, count: int) -> None:
        for seed in range(count):
            schema, value = Drawer(seed).document()
            order = "any" if seed % 2 else "declared"
            compiled = self.compiler.compile_json_schema(json.dumps(schema), property_order=order)
            for text in (json.dumps(value), json.dumps(value, indent=2, ensure_ascii=False)):
                self.walk(GrammarMatcher(compiled), self.tokens(text))
            if seed % 8 == 0:
                self.questions(compiled, json.dumps(value))

    def questions(self, compiled: stencilm.CompiledGrammar, text: str) -> None:
        """What else is asked of a matcher: undoing, forced text, verdicts, canonical masks."""
        tokens = self.tokens(text)
        matcher = GrammarMatcher(compiled, max_rollback_tokens=len(tokens) + 1)
        for token in tokens[: len(tokens) // 2]:
            matcher.find_jump_forward_string()
            matcher.find_jump_forward_tokens()
            if not matcher.accept_token(token):
                break
        copy = matcher.fork()
        copy.rollback(copy.num_accepted_tokens // 2)
        copy.fill_next_token_bitmask(self.mask)
        copy.candidates()
        matcher.shortest_completion()
        matcher.reset()
        matcher.longest_valid_prefix(text + "}")
        matcher.validate_tokens(tokens)
        self.walk(GrammarMatcher(compiled, canonical=True), tokens)

    def tables(self) -> None:
        """The cases of the tests, in all notations."""
        make = {
            "ebnf": self.compiler.compile_grammar,
            "lark": self.compiler.compile_lark,
            "regex": self.compiler.compile_regex,
        }
        for name, compile_it in make.items():
            for case in _cases(ROOT / f"tests/tables/{name}.json"):
                self.case(compile_it, case["grammar"], case.get("accept", []))
        for case in _cases(ROOT / "tests/structural_tags/cases.json"):
            self.case(self.compiler.compile_structural_tag, case["tag"], case.get("inside", []))

    def case(self, compile_it: Any, grammar: Any, accepted: list[Any]) -> None:
        if not accepted or isinstance(grammar, list):
            return  # hostile ones, which must be refused
        try:
            compiled = compile_it(grammar)
        except StencilError:
            return
        for text in accepted:
            if isinstance(text, str):
                self.walk(GrammarMatcher(compiled), self.tokens(text))

    def indexes(self) -> None:
        for pattern in (r"\d{4}-\d{2}-\d{2}", r"(https?://)?([a-z]+\.)+[a-z]{2,4}(/\w*)*"):
            index = TokenIndex.from_regex(pattern, self.info)
            index.coalesce()
            index.fill_bitmask(index.initial_state, self.mask)

    def saved(self) -> None:
        grammar = stencilm.Grammar.from_json_schema(Drawer(5).document()[0])
        assert str(stencilm.Grammar.deserialize_json(grammar.serialize_json())) == str(grammar)

    def batch(self) -> None:
        compiled = [
            self.compiler.compile_json_schema(Drawer(seed).document()[0]) for seed in (5, 7)
        ]
        matchers = [GrammarMatcher(compiled[number % 2]) for number in range(32)]
        masks = np.zeros((len(matchers), self.mask.shape[1]), dtype=np.int32)
        for _ in range(50):
            stencilm.BatchGrammarMatcher().batch_fill_next_token_bitmask(matchers, masks)


def _cases(path: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return cases


def main() -> None:
    learnt = tokenizer()
    work = Work(
        lambda text: learnt.encode(text, add_special_tokens=False),
        TokenizerInfo.from_huggingface(learnt),
    )
    work.schemas(SCHEMAS)
    for each in (work.tables, work.indexes, work.saved, work.batch):
        each()
    print(f"{work.masks} masks along {work.walks} texts, {work.refused} of them refused on the way")


if __name__ == "__main__":
    main()
