"""Answers to the page's queries, without HTTP.

One idea: a query brings the whole state with it, and each answer starts at the empty text. Only
objects that take time to make are kept between queries: tokenizers, compiled grammars, the model.

Every operation of the engine has a deadline, and so has a query as a whole: a hostile grammar gets
an error, and the page keeps working.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stencilm
from stencilm.errors import LimitExceeded, OperationCancelled, StencilError
from stencilm.generation.trace import Event
from stencilm.limits import CancelToken, Limits
from stencilm.matching.compiler import CompiledGrammar, GrammarCompiler
from stencilm.matching.matcher import GrammarMatcher
from stencilm.playground.grammars import grammar_of
from stencilm.playground.places import find_place, nearest_place, position_of, utf16_length
from stencilm.playground.questions import (
    BadQuestion,
    Drawing,
    Listing,
    State,
    read_drawing,
    read_listing,
    read_state,
    read_token_id,
)
from stencilm.tokenizers import TokenizerInfo
from stencilm.tokenizers.embedded import embedded_tokenizer as saved_tokenizer
from stencilm.views.characters import visible
from stencilm.views.segments import LEGEND, outcome, readable, segments

LIMITS = Limits(
    working_bytes=128 << 20,
    stack_bytes=64 << 20,
    lexicon_bytes=64 << 20,
    milliseconds=2_000,
)
"""The limits of one operation for the page; tighter than the defaults, because a person waits."""

EMBEDDED = "tiny"
SECONDS_FOR_TEXT = 8.0
SECONDS_FOR_GENERATION = 20.0
_CACHE_BYTES = 64 << 20
_CANDIDATES = 12
_FINDINGS = 200
_MOST_EBNF = 20_000
_WORDS = LEGEND | {"masked": "drawn by the model among the allowed tokens"}

Answer = dict[str, Any]


def embedded_tokenizer() -> TokenizerInfo:
    """The tokenizer of the model that comes with the package."""
    return saved_tokenizer()


class Session:
    """Answers queries; any number of threads may ask at the same time.

    Args:
        tokenizers: Functions that load the tokenizers, by the names that the page shows. They are
            called when a query first names them. The embedded one is always available.
        limits: The limits of one operation.
    """

    def __init__(
        self,
        tokenizers: Mapping[str, Callable[[], TokenizerInfo]] | None = None,
        *,
        limits: Limits = LIMITS,
    ) -> None:
        self._limits = limits
        self._loaders = {EMBEDDED: embedded_tokenizer, **(tokenizers or {})}
        self._tokenizers: dict[str, _Tokenizer] = {}
        self._model: Any = None
        self._loading = threading.Lock()
        self._loading_model = threading.Lock()

    @property
    def tokenizers(self) -> list[str]:
        """The names of the tokenizers."""
        return list(self._loaders)

    def read(self, record: Mapping[str, Any], cancel: CancelToken | None = None) -> Answer:
        """The state of the text in the grammar, token by token, and what may come next.

        Args:
            record: The state of the page.
            cancel: Stops the work between two operations of the engine when it is cancelled, as it
                does in the other answers.

        Returns:
            `ok`, and then what the page shows; or `error` with kind, message, place and stretch.

        Raises:
            BadQuestion: The record is not of this form.
        """
        return self._answered(
            read_state(record), lambda state, compiled: self._read(state, compiled, _Asker(cancel))
        )

    def tokens(self, record: Mapping[str, Any], cancel: CancelToken | None = None) -> Answer:
        """The tokens that are allowed, or not, after the tokens that the state has read.

        Raises:
            BadQuestion: The record is not of this form.
        """
        listing = read_listing(record)
        return self._answered(
            read_state(record),
            lambda state, compiled: self._tokens(state, compiled, listing, _Asker(cancel)),
        )

    def explain(self, record: Mapping[str, Any], cancel: CancelToken | None = None) -> Answer:
        """Why one token is allowed or not.

        Raises:
            BadQuestion: The record is not of this form.
        """
        token_id = read_token_id(record)
        return self._answered(
            read_state(record),
            lambda state, compiled: self._explain(state, compiled, token_id, _Asker(cancel)),
        )

    def generate(self, record: Mapping[str, Any], cancel: CancelToken | None = None) -> Answer:
        """A text that the embedded model generates within the grammar, with its trace.

        Raises:
            BadQuestion: The record is not of this form.
        """
        drawing = read_drawing(record)
        state = replace(read_state(record), tokenizer=EMBEDDED)
        return self._answered(
            state, lambda state, compiled: self._generate(compiled, drawing, _Asker(cancel))
        )

    def _answered(self, state: State, answer: Callable[[State, CompiledGrammar], Answer]) -> Answer:
        if state.tokenizer not in self._loaders:
            names = ", ".join(self._loaders)
            raise BadQuestion(
                f"there is no tokenizer {state.tokenizer!r:.80}: the page has {names}"
            )
        try:
            start = time.perf_counter()
            compiled = self._tokenizer(state.tokenizer).compiler.compile(
                grammar_of(state, self._limits)
            )
            seconds = time.perf_counter() - start
            return {"ok": True, "compile_seconds": seconds, **answer(state, compiled)}
        except StencilError as error:
            return {"ok": False, "error": _error(state.grammar, error)}

    def _tokenizer(self, name: str) -> _Tokenizer:
        found = self._tokenizers.get(name)
        if found is None:
            with self._loading:
                found = self._tokenizers.get(name)
                if found is None:
                    found = _Tokenizer(self._loaders[name](), self._limits)
                    self._tokenizers[name] = found
        return found

    def _read(self, state: State, compiled: CompiledGrammar, asker: _Asker) -> Answer:
        walk = self._walk(state, compiled, asker)
        matcher, tokenizer = walk.matcher, walk.tokenizer
        at: Answer = {
            "position": walk.position,
            "may_end": matcher.is_completed(),
            "terminated": matcher.is_terminated(),
            "vocab_size": tokenizer.info.vocab_size,
        }
        if not matcher.is_terminated():
            mask, seconds = walk.mask()
            at["mask_seconds"] = seconds
            at["allowed"] = int(mask.sum())
            at["forced"] = asker.asked(lambda: visible(matcher.find_jump_forward_string(), keep=""))
            at["candidates"] = asker.asked(
                lambda: [
                    {kind: visible(text, keep="") for kind, text in candidate._asdict().items()}
                    for candidate in matcher.candidates(_CANDIDATES)
                ]
            )
            at["completion"] = asker.asked(
                lambda: visible(readable(matcher.shortest_completion()), keep="")
            )
        written = walk.written
        verdict = GrammarMatcher(compiled).longest_valid_prefix(written)
        valid = written[: verdict.valid_bytes].decode(errors="ignore")
        report = compiled.grammar.report
        return {
            "text": readable(written),
            "status": "cut" if walk.cut else verdict.status,
            "valid_units": utf16_length(valid),
            "steps": walk.steps,
            "cut": walk.cut,
            "at": at,
            "ebnf": asker.asked(lambda: _shortened(str(compiled.grammar))),
            "report": {
                group: [
                    {"place": each.place, "keyword": each.keyword, "note": each.note or ""}
                    for each in list(findings)[:_FINDINGS]
                ]
                for group, findings in (
                    ("enforced", report.enforced),
                    ("annotations", report.annotations),
                    ("relaxed", report.relaxed),
                )
            },
            "memory_bytes": compiled.memory_size_bytes,
        }

    def _walk(self, state: State, compiled: CompiledGrammar, asker: _Asker) -> _Walk:
        tokenizer = self._tokenizer(state.tokenizer)
        if state.token_ids is None:
            token_ids = tokenizer.info.tokenize_bytes((state.text or "").encode())
        else:
            token_ids = list(state.token_ids)
            for token_id in token_ids:
                _check_token(token_id, tokenizer.info)
        walk = _Walk(tokenizer, GrammarMatcher(compiled), asker)
        walk.read(token_ids, state.position)
        return walk

    def _tokens(
        self, state: State, compiled: CompiledGrammar, listing: Listing, asker: _Asker
    ) -> Answer:
        walk = self._place(state, compiled, asker)
        tokenizer = walk.tokenizer
        if walk.matcher.is_terminated():
            mask = np.zeros(tokenizer.info.vocab_size, dtype=bool)
        else:
            mask, _ = walk.mask()
        if listing.which == "allowed":
            chosen = np.flatnonzero(mask)
        elif listing.which == "refused":
            chosen = np.flatnonzero(~mask)
        else:
            chosen = np.arange(len(mask))
        found = tokenizer.search(chosen.tolist(), listing.search)
        page = found[listing.offset : listing.offset + listing.count]
        return {
            "allowed": int(mask.sum()),
            "vocab_size": tokenizer.info.vocab_size,
            "found": len(found),
            "offset": listing.offset,
            "tokens": [
                {"id": each, "text": tokenizer.shown(each), "allowed": bool(mask[each])}
                for each in page
            ],
        }

    def _explain(
        self, state: State, compiled: CompiledGrammar, token_id: int, asker: _Asker
    ) -> Answer:
        walk = self._place(state, compiled, asker)
        _check_token(token_id, walk.tokenizer.info)
        allowed = not walk.matcher.is_terminated() and walk.matcher.is_allowed(token_id)
        return {
            "id": token_id,
            "text": walk.tokenizer.shown(token_id),
            "allowed": allowed,
            "why": visible(walk.matcher.explain(token_id)),
        }

    def _place(self, state: State, compiled: CompiledGrammar, asker: _Asker) -> _Walk:
        """Walk to the position of the query, and no further."""
        walk = self._walk(state, compiled, asker)
        if walk.cut:
            raise LimitExceeded(
                f"reading the text took more than {SECONDS_FOR_TEXT:.0f} s: give a shorter one"
            )
        return walk

    def _generate(self, compiled: CompiledGrammar, drawing: Drawing, asker: _Asker) -> Answer:
        events: list[Event] = []
        deadline = time.monotonic() + SECONDS_FOR_GENERATION

        def keep(event: Event) -> None:
            events.append(event)
            asker.check()
            if time.monotonic() > deadline:
                raise LimitExceeded(
                    f"writing took more than {SECONDS_FOR_GENERATION:.0f} s: ask for fewer tokens"
                )

        answer: Answer = {"text": "", "problem": None, "stats": None}
        try:
            generation = self._loaded_model().generate(
                drawing.prompt,
                compiled.grammar,
                max_tokens=drawing.max_tokens,
                temperature=drawing.temperature,
                seed=drawing.seed,
                limits=self._limits,
                on_event=keep,
            )
        except StencilError as error:
            answer["problem"] = str(error)
        else:
            answer["text"] = generation.text
            answer["stats"] = generation.stats.to_json()
            answer["problem"] = None if generation.error is None else str(generation.error)
        found = segments(events)
        answer["segments"] = [
            {"part": each.part, "text": visible(readable(each.text)), "note": visible(each.note)}
            for each in found
        ]
        occurring = {each.part for each in found}
        answer["legend"] = {part: words for part, words in _WORDS.items() if part in occurring}
        answer["outcome"] = outcome(events)
        return answer

    def _loaded_model(self) -> Any:
        with self._loading_model:
            if self._model is None:
                self._model = stencilm.load(EMBEDDED)
            return self._model


class _Asker:
    """The client of a query, while it is connected."""

    def __init__(self, cancel: CancelToken | None) -> None:
        self._cancel = cancel

    def check(self) -> None:
        """Raise OperationCancelled if the client has disconnected."""
        if self._cancel is not None and self._cancel.is_cancelled:
            raise OperationCancelled("nobody waits for this answer any more: ask again")

    def asked(self, question: Callable[[], Any]) -> Answer:
        """One of several answers: if it fails, the others are still given."""
        self.check()
        try:
            return {"value": question()}
        except StencilError as error:
            return {"error": visible(str(error))}


class _Tokenizer:
    """A tokenizer with its compiler and the texts of its tokens."""

    def __init__(self, info: TokenizerInfo, limits: Limits) -> None:
        self.info = info
        self.compiler = GrammarCompiler(info, limits=limits, cache_limit_bytes=_CACHE_BYTES)
        self._vocabulary = info.decoded_vocab
        self._special = frozenset((*info.special_token_ids, *info.stop_token_ids))

    def shown(self, token_id: int) -> str:
        """The text or the name of a token, with escapes for invisible characters."""
        spelled = self._vocabulary[token_id]
        if token_id in self._special or not spelled:
            return visible(self.info.dbg_tokens([token_id]), keep="")
        return visible(readable(spelled), keep="")

    def search(self, token_ids: list[int], wanted: str) -> list[int]:
        """Those of the tokens whose text contains the search text, or that have it as id."""
        if not wanted:
            return token_ids
        spelled = wanted.encode()
        is_id = wanted.isascii() and wanted.isdecimal() and len(wanted) < 10
        number = int(wanted) if is_id else None
        return [
            each
            for each in token_ids
            if each == number
            or spelled in self._vocabulary[each]
            or (each in self._special and wanted in self.shown(each))
        ]


class _Walk:
    """A text read token by token, up to the position of the query, and the rest of it."""

    def __init__(self, tokenizer: _Tokenizer, matcher: GrammarMatcher, asker: _Asker) -> None:
        self.tokenizer = tokenizer
        self._asker = asker
        self.matcher = matcher
        self.steps: list[Answer] = []
        self.written = b""
        self.position = 0
        self.cut = False
        self._words = np.zeros((1, -(-tokenizer.info.vocab_size // 32)), dtype=np.int32)

    def mask(self) -> tuple[NDArray[np.bool_], float]:
        """The tokens that may come next, and how long the engine took."""
        start = time.perf_counter()
        self.matcher.fill_next_token_bitmask(self._words)
        seconds = time.perf_counter() - start
        bits = np.unpackbits(self._words.view(np.uint8), bitorder="little", axis=None)
        return bits[: self.tokenizer.info.vocab_size].astype(bool), seconds

    def read(self, token_ids: list[int], until: int | None) -> None:
        """Read the tokens; leave the matcher after the first `until` of them."""
        deadline = time.monotonic() + SECONDS_FOR_TEXT
        info, matcher = self.tokenizer.info, self.matcher
        self.written = info.decode_bytes(token_ids)
        kept: GrammarMatcher | None = None
        forced: list[int] = []
        for index, token_id in enumerate(token_ids):
            self._asker.check()
            if index == until:
                kept = matcher.fork()
            if time.monotonic() > deadline:
                self.cut = True
                break
            step: Answer = {"id": token_id, "text": self.tokenizer.shown(token_id)}
            if matcher.is_terminated():
                self.steps.append({**step, "kind": "refused", "why": matcher.explain(token_id)})
                break
            mask, seconds = self.mask()
            step |= {"allowed": int(mask.sum()), "mask_seconds": seconds}
            if not forced:
                forced = matcher.find_jump_forward_tokens()[::-1]
            is_forced = bool(forced) and forced.pop() == token_id
            if not is_forced:
                forced = []
            why = None if mask[token_id] else visible(matcher.explain(token_id))
            if not matcher.accept_token(token_id):
                self.steps.append({**step, "kind": "refused", "why": why})
                break
            self.steps.append({**step, "kind": "forced" if is_forced else "chosen"})
            if kept is None:
                self.position = index + 1
        if kept is not None:
            self.matcher = kept


def _check_token(token_id: int, info: TokenizerInfo) -> None:
    if token_id >= info.vocab_size:
        raise BadQuestion(
            f"token {token_id} is none of this tokenizer, whose ids end at {info.vocab_size - 1}"
        )


def _error(grammar: str, error: StencilError) -> Answer:
    stretch = find_place(grammar, nearest_place(error.place, error.message))
    return {
        "kind": type(error).__name__,
        "message": visible(error.message),
        "place": error.place and visible(error.place),
        "stretch": stretch,
        "position": stretch and position_of(grammar, stretch),
    }


def _shortened(text: str) -> str:
    if len(text) <= _MOST_EBNF:
        return text
    return f"{text[:_MOST_EBNF]}\n# and {len(text) - _MOST_EBNF:,} characters more"
