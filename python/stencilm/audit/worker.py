"""The process of one engine, or of the validator alone: each request and each answer is a line.

`main` reads the command line arguments ENGINE and TOKENIZER, where ENGINE is "-" for the validator.
A request names an action on a schema: "walk" and "read" use the engine; "prepare" makes texts and
has them judged. Each finding is written at once, on a line of its own, so that none is lost if the
process dies; the last line of an answer has `done`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from stencilm.audit.engines import find_engine
from stencilm.audit.findings import Finding
from stencilm.audit.judge import Judge, Unjudged
from stencilm.audit.probe import WALKS, Found, Probe, Vocabulary
from stencilm.audit.replay import Small, replayed, script
from stencilm.audit.texts import changed, draw
from stencilm.tokenizers import TokenizerInfo

EMBEDDED = "tiny"
SERIALIZED = ".tokenizer-info.json"
"""The suffix of files with a serialized `TokenizerInfo`."""
_PROBES = 1.0
_CHANGES = 6
_DRAWN = 8
_MOST_TEXTS = 24
_SHARE = 0.5
"""The share of the time limit after which the engine is not called any more."""


def load_tokenizer(source: str) -> TokenizerInfo:
    """The tokenizer of a file or folder, or the embedded one."""
    from stencilm.tokenizers.embedded import embedded_tokenizer

    if source == EMBEDDED:
        return embedded_tokenizer()
    if source.endswith(SERIALIZED):
        return TokenizerInfo.deserialize_json(Path(source).read_text(encoding="utf-8"))
    return TokenizerInfo.from_file(source)


class EngineWorker:
    """An engine that answers requests."""

    def __init__(self, name: str, source: str, write: Callable[[dict[str, Any]], None]) -> None:
        self.name, self.source, self.write = name, source, write
        self.kind: Any = find_engine(name)
        self.vocabulary = Vocabulary(load_tokenizer(source))
        self.engine = self.kind(self.vocabulary.info)
        self._probe: Probe | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out a request; returns the last line of the answer."""
        seconds = request["seconds"] * _SHARE
        if request["do"] == "walk":
            self._probe = None
            try:
                judge = Judge(request["schema"], seconds)
            except Unjudged as error:
                return {"status": "unjudged", "why": str(error)}
            try:
                compiled = self.engine.compile(request["schema"])
            except Exception as error:
                # Engines refuse a schema with any exception they like.
                return {"status": "refused", "why": f"{type(error).__name__}: {error}"[:500]}
            self._probe = Probe(
                self.engine,
                compiled,
                schema=request["schema"],
                vocabulary=self.vocabulary,
                judge=judge,
                tell=lambda found: self._tell(found, request),
                until=0.0,
            )
        probe = self._probe
        if probe is None:
            return {"status": "clean", "why": ""}
        probe.until = time.process_time() + seconds
        probe.counts = Counter()
        texts = self._walks(probe, request) if request["do"] == "walk" else []
        for number, (text, is_valid, why) in enumerate(request.get("texts", ())):
            if probe.is_done():
                break
            random = Random(f"{request['seed']} {number}")
            probe.guarded(probe.read, text, is_valid, why, random)
        return {"status": "clean", "why": "", "texts": texts, "counts": probe.counts}

    def _walks(self, probe: Probe, request: dict[str, Any]) -> list[str]:
        texts = []
        for number, length in enumerate(WALKS):
            if probe.is_done():
                break
            # Without the folder of the engine's file, so that walks do not depend on where it is.
            name = self.name.rpartition(":")[2]
            random = Random(f"{request['seed']} {request['name']} {name} {number}")
            text = probe.guarded(probe.walk, length, random, _PROBES)
            if text is not None:
                texts.append(text)
        return texts

    def _tell(self, found: Found, request: dict[str, Any]) -> None:
        vocabulary = self.vocabulary
        stop = vocabulary.stops[0]
        ends = found.token in vocabulary.stops
        finding = Finding(
            engine=self.name,
            schema=request["name"],
            kind=found.kind,
            prefix=tuple(found.prefix),
            token=found.token,
            text=vocabulary.decode(found.prefix).decode("utf-8", "backslashreplace"),
            token_text="the end"
            if ends
            else vocabulary.texts[found.token].decode("utf-8", "backslashreplace"),
            why=found.why,
            witness=found.witness,
        )
        texts = [vocabulary.texts[token] for token in found.prefix]
        texts_and_end = [*texts, None if ends else vocabulary.texts[found.token]]
        small = Small([text for text in texts_and_end if text is not None])
        is_shown = self._is_shown_by(small, finding, texts_and_end, request["schema"])
        program = script(
            finding,
            request["schema"],
            self.kind,
            small=small,
            texts=texts_and_end,
            tokenizer=None if is_shown else self.source,
            stop=stop,
        )
        finding = replace(finding, script=program, needs_tokenizer=not is_shown)
        self.write({"finding": finding.to_json()})

    def _is_shown_by(
        self, small: Small, finding: Finding, texts: list[bytes | None], schema: str
    ) -> bool:
        """Whether the fault shows with the tokens of the finding alone."""
        ids = [small.id_of(text) for text in texts]
        prefix, token = replayed(finding, ids[:-1], ids[-1], small.stop)
        try:
            engine = self.kind(TokenizerInfo(small.tokens, stop_token_ids=[small.stop]))
            matcher = engine.start(engine.compile(schema))
            accepted = [engine.accept(matcher, one) for one in prefix]
            if finding.kind == "broken mask":
                return all(accepted[:-1]) and not accepted[-1]
            words = [int(word) for word in engine.mask(matcher)]
        except Exception:
            return finding.kind == "failure"
        if 32 * len(words) < len(small.tokens):
            return finding.kind == "failure"
        is_allowed = bool(words[token // 32] >> token % 32 & 1)
        if finding.kind == "dead end":
            return all(accepted) and not any(words)
        return all(accepted) and is_allowed == (finding.kind in ("not JSON", "violation"))


def prepare(request: dict[str, Any]) -> dict[str, Any]:
    """Texts with the validator's verdicts: instances, values close to them, and random values."""
    try:
        judge = Judge(request["schema"], request["seconds"] * _SHARE)
    except Unjudged as error:
        return {"status": "unjudged", "why": str(error)}
    random = Random(f"{request['seed']} {request['name']}")
    texts: dict[str, tuple[bool, str]] = {}
    counts: Counter[str] = Counter()

    def add(text: str) -> bool:
        verdict = judge.verdict(text.encode())
        counts["unjudged" if verdict.status == "unjudged" else "judged"] += 1
        if verdict.status != "unjudged":
            texts.setdefault(text, (verdict.status == "valid", verdict.why))
        return verdict.status == "valid"

    bases = [text for text in request["instances"] if _is_text(text) and add(text)]
    bases += [text for text in request["walked"] if add(text)]
    schema = json.loads(request["schema"])
    for _ in range(_DRAWN if len(bases) < 2 else 1):
        text = _dumped(draw, schema, random)
        if text is not None and add(text):
            bases.append(text)
    for _ in range(_CHANGES if bases else 0):
        base = json.loads(random.choice(bases))
        text = _dumped(changed, base, random)
        if text is not None:
            add(text)
    rows: list[list[Any]] = [[text, *verdict] for text, verdict in texts.items()]
    rows.sort(key=lambda row: (not row[1], len(row[0])))
    return {"status": "clean", "why": "", "texts": rows[:_MOST_TEXTS], "counts": counts}


def _dumped(make: Callable[..., Any], *arguments: Any) -> str | None:
    """A value as JSON; None if writing it fails, as it may for an unusual schema."""
    try:
        text = json.dumps(make(*arguments), ensure_ascii=False, allow_nan=False)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    return text if _is_text(text) else None


def _is_text(text: str) -> bool:
    """Whether it has no lone surrogate."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def main() -> None:
    """Answer requests until there are no more."""
    name, source = sys.argv[1:]
    # Keep everything that libraries and their child processes print out of the answers, and keep
    # the requests from child processes.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout = sys.stderr

    def write(line: dict[str, Any]) -> None:
        print(json.dumps(line), file=answers, flush=True)

    answer = prepare if name == "-" else EngineWorker(name, source, write).answer
    write({"done": True, "status": "ready"})
    for line in requests:
        write({"done": True, **answer(json.loads(line))})
