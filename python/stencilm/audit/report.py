"""The results of an audit: counted, printed, as JSON and as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stencilm.audit.findings import ERRORS, NOTES, STATUSES, Finding, Outcome
from stencilm.audit.page import page

_COUNTED = ("walks", "texts", "valid", "invalid", "masks", "judged", "unjudged", "cut short")


@dataclass(frozen=True)
class Report:
    """The results of an audit.

    `outcomes` has an `Outcome` for each name of a schema and each engine; `engines` has the version
    of each, and `options` the arguments of the audit.
    """

    engines: dict[str, str]
    outcomes: dict[str, dict[str, Outcome]]
    options: dict[str, Any]
    seconds: float

    @property
    def findings(self) -> list[Finding]:
        """All findings, grouped by schema."""
        return [
            finding
            for row in self.outcomes.values()
            for outcome in row.values()
            for finding in outcome.findings
        ]

    @property
    def errors(self) -> list[Finding]:
        """The findings that prove an error in a mask."""
        return [finding for finding in self.findings if finding.is_error]

    def statuses(self, engine: str) -> Counter[str]:
        """The number of schemas with each status."""
        return Counter(row[engine].status for row in self.outcomes.values() if engine in row)

    def kinds(self, engine: str) -> Counter[str]:
        """The number of schemas with each kind of finding."""
        return Counter(
            kind
            for row in self.outcomes.values()
            if engine in row
            for kind in {finding.kind for finding in row[engine].findings}
        )

    def counts(self, engine: str) -> Counter[str]:
        """The totals of all counts, over all schemas."""
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
        """The report as a JSON value."""
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
        """A self-contained page."""
        return page(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        names = [f"{name} {version}".strip() for name, version in self.engines.items()]
        widths = [max(len(name), 9) + 2 for name in names]
        yield " " * 22 + "".join(
            f"{name:>{width}}" for name, width in zip(names, widths, strict=True)
        )
        for title, rows in self.tables().items():
            if rows:
                yield title
            for name, numbers in rows:
                cells = (
                    f"{number:>{width},}" for number, width in zip(numbers, widths, strict=True)
                )
                yield f"  {name:<20}" + "".join(cells)
