"""The results of an audit, for one position and for one schema, as plain values."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

ERRORS = {
    "dead end": "a token is allowed after which nothing is, and the text is not complete",
    "broken mask": "the mask allows a token that the engine itself then refuses",
    "not JSON": "a token or the end is allowed after which no JSON text can come",
    "violation": "a token or the end is allowed after which no text is valid",
    "refused": "a token of a valid text is refused, however the value was written",
}
"""The kinds of finding that prove an error in a mask."""
NOTES = {
    "writing": "a valid text is refused, and taken when the same value is written in another way",
    "tokens": "a valid text is refused in some tokens, and taken in the tokenizer's own",
    "format": "a valid text is taken when `format` is left out, which no validator decides here",
    "failure": "the engine raises an exception instead of giving a mask",
}
"""The kinds that prove no error."""
STATUSES = {
    "clean": "no error was found",
    "errors": "an error is proved",
    "refused": "the engine does not take the schema",
    "unjudged": "the validator cannot judge the schema",
    "failure": "the engine raised an exception after it took the schema",
    "crash": "the engine's process ended",
    "time out": "the engine was not done within the time limit",
    "memory": "the engine took more memory than allowed",
}


@dataclass(frozen=True)
class Finding:
    """A place at which a mask is wrong, or narrower than the schema.

    `prefix` and `token` are ids of the tokenizer, and `text` and `token_text` what they spell;
    `token` is a stop token where the end of the text is meant. `witness` is a valid text that the
    engine refuses, or an invalid one that it takes. `why` says what the validator says, `script` is
    a Python program that replays it with that engine alone, and `needs_tokenizer` says whether that
    program reads the tokenizer, because the fault does not show with the tokens of `prefix` alone.
    """

    engine: str
    schema: str
    kind: str
    prefix: tuple[int, ...]
    token: int
    text: str
    token_text: str
    why: str
    witness: str | None = None
    script: str = ""
    needs_tokenizer: bool = False

    @property
    def is_error(self) -> bool:
        """Whether it proves an error in a mask."""
        return self.kind in ERRORS

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON value."""
        return asdict(self)


@dataclass
class Outcome:
    """What became of one schema with one engine.

    `counts` has how many `masks` were looked at, `walks` made, `texts` read, `valid` and `invalid`
    ones, how many prefixes and texts were `judged` or `unjudged`, and how many of the two parts,
    walks and texts, were `cut short` when half of the time limit was over.
    """

    status: str = "clean"
    why: str = ""
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def worsen(self, status: str, why: str) -> None:
        """Set the status, unless the current one is more severe."""
        if _WORST.index(status) < _WORST.index(self.status):
            self.status, self.why = status, why


_WORST = ["errors", "crash", "memory", "time out", "failure", "refused", "unjudged", "clean"]
