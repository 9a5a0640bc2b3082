"""What an audit finds, and what it says of each schema: plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

ERRORS = {
    "dead end": "a token is allowed after which nothing is, and the text is not complete",
    "broken mask": "the mask allows a token that the engine itself then refuses",
    "not JSON": "a token or the end is allowed after which no JSON text can come",
    "violation": "a token or the end is allowed after which no text is valid",
    "refused": "a token of a valid text is refused, however the value was written",
}
"""The kinds of finding that prove an error of a mask."""
NOTES = {
    "writing": "a valid text is refused, and taken when the same value is written in another way",
    "format": "a valid text is taken when `format` is left out, which no validator decides here",
    "failure": "the engine raises an exception instead of giving a mask",
}
"""The kinds that prove none."""
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
        """Whether an error of a mask is proved."""
        return self.kind in ERRORS

    def to_json(self) -> dict[str, Any]:
        """A value for JSON."""
        return asdict(self)


@dataclass
class Outcome:
    """What became of one schema with one engine.

    `counts` has how many `masks` were looked at, `walks` made, `texts` read, `valid` and `invalid`
    ones, and how many prefixes and texts were `judged` or `unjudged`.
    """

    status: str = "clean"
    why: str = ""
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def worsen(self, status: str, why: str) -> None:
        """Take a status that matters more than the one there is."""
        if _WORST.index(status) < _WORST.index(self.status):
            self.status, self.why = status, why


_WORST = ["errors", "crash", "memory", "time out", "failure", "refused", "unjudged", "clean"]


@dataclass(frozen=True)
class Report:
    """What an audit found.

    `outcomes` has an `Outcome` for each name of a schema and each engine; `engines` has the version
    of each, and `options` what the audit was asked for.
    """

    engines: dict[str, str]
    outcomes: dict[str, dict[str, Outcome]]
    options: dict[str, Any]
    seconds: float

    @property
    def findings(self) -> list[Finding]:
        """All findings, those of one schema together."""
        return [
            finding
            for row in self.outcomes.values()
            for outcome in row.values()
            for finding in outcome.findings
        ]

    @property
    def errors(self) -> list[Finding]:
        """The findings that prove an error of a mask."""
        return [finding for finding in self.findings if finding.is_error]

    def statuses(self, engine: str) -> Counter[str]:
        """How many schemas have each status."""
        return Counter(row[engine].status for row in self.outcomes.values() if engine in row)

    def kinds(self, engine: str) -> Counter[str]:
        """In how many schemas each kind of finding was made."""
        return Counter(
            kind
            for row in self.outcomes.values()
            if engine in row
            for kind in {finding.kind for finding in row[engine].findings}
        )

    def counts(self, engine: str) -> Counter[str]:
        """What was done, over all schemas."""
        total: Counter[str] = Counter()
        for row in self.outcomes.values():
            if engine in row:
                total += row[engine].counts
        return total

    def tables(self) -> dict[str, list[tuple[str, list[int]]]]:
        """Rows of numbers under a title, one number for each engine."""

        def rows(names: Any, count: Any, empty: bool = False) -> list[tuple[str, list[int]]]:
            found = [(name, [count(engine)[name] for engine in self.engines]) for name in names]
            return [row for row in found if empty or any(row[1])]

        return {
            "schemas": rows(STATUSES, self.statuses),
            "schemas with errors": rows(ERRORS, self.kinds, empty=True),
            "schemas with notes": rows(NOTES, self.kinds),
            "looked at": rows(_COUNTED, self.counts),
        }

    def to_json(self) -> dict[str, Any]:
        """A value for JSON: all of it."""
        return {
            "engines": self.engines,
            "options": self.options,
            "seconds": round(self.seconds, 1),
            "schemas": {
                name: {
                    engine: {
                        "status": outcome.status,
                        "why": outcome.why,
                        "counts": dict(outcome.counts),
                        "findings": [finding.to_json() for finding in outcome.findings],
                    }
                    for engine, outcome in row.items()
                }
                for name, row in self.outcomes.items()
            },
        }

    def to_html(self) -> str:
        """A page that needs nothing else."""
        from stencilm.audit.page import page

        return page(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        names = [f"{name} {version}".strip() for name, version in self.engines.items()]
        widths = [max(len(name), 9) + 2 for name in names]
        yield " " * 22 + "".join(f"{name:>{width}}" for name, width in zip(names, widths))
        for title, rows in self.tables().items():
            if rows:
                yield title
            for name, numbers in rows:
                cells = (f"{number:>{width},}" for number, width in zip(numbers, widths))
                yield f"  {name:<20}" + "".join(cells)


_COUNTED = ("walks", "texts", "valid", "invalid", "masks", "judged", "unjudged")
