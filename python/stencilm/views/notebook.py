"""How a notebook displays a value: a card with facts, a table, a text with its history."""

from __future__ import annotations

import json
from functools import singledispatch
from typing import Any

from stencilm.generation.result import Generation
from stencilm.generation.stats import Stats
from stencilm.generation.trace import Trace
from stencilm.grammars.grammar import Grammar, Report
from stencilm.views.html import (
    fact_list,
    fragment,
    island,
    page,
    table,
    text_block,
    title_line,
)

_MOST_CHARACTERS = 4_000
_MOST_ROWS = 200


@singledispatch
def html(value: Any) -> str:
    """The HTML of a value, for `_repr_html_`."""
    return island(text_block(repr(value)))


@html.register
def _(trace: Trace) -> str:
    return fragment(trace)


@html.register
def _(generation: Generation) -> str:  # type: ignore[type-arg]
    return fragment(generation.trace, **_written(generation))


@html.register
def _(stats: Stats) -> str:
    return island(title_line("Statistics"), fact_list(stats_facts(stats)))


@html.register
def _(report: Report) -> str:
    return island(title_line("Report of a schema"), report_table(report))


@html.register
def _(grammar: Grammar) -> str:
    text = str(grammar)
    cut = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
    facts = {"notation": grammar.notation, "memory": f"{grammar.core.memory_size_bytes:,} bytes"}
    report = grammar.report
    more = report_table(report) if report != Report() else ""
    return island(title_line("Grammar"), fact_list(facts), text_block(cut), more)


def generation_page(generation: Generation[Any]) -> str:
    """A text as a self-contained page."""
    return page(generation.trace, **_written(generation))


def _written(generation: Generation[Any]) -> dict[str, Any]:
    stats = generation.stats
    return {"text": generation.text, "tokens": stats.tokens, "seconds": stats.seconds}


def model_card(name: str, facts: dict[str, str | None]) -> str:
    """A model with its facts."""
    return island(title_line(name), fact_list(facts))


def stats_facts(stats: Stats) -> dict[str, str | None]:
    """Statistics as facts with their units."""
    about = "about " if stats.is_estimate else ""
    return {
        "tokens": f"{about}{stats.tokens:,}",
        "of these forced": f"{stats.forced_tokens:,}",
        "reasoning": f"{stats.reasoning_tokens:,} tokens" if stats.reasoning_tokens else None,
        "prompt": f"{stats.prompt_tokens:,} tokens",
        "forward passes": f"{stats.forward_passes:,}",
        "time": f"{stats.seconds:.3f} s",
        "model": f"{stats.model_seconds:.3f} s",
        "masks": f"{stats.mask_seconds:.3f} s",
        "sampling": f"{stats.sampling_seconds:.3f} s",
        "seed": None if stats.seed is None else json.dumps(stats.seed),
        "cost": f"{stats.cost:g}" if stats.cost else None,
    }


def report_table(report: Report) -> str:
    """A table of all keywords and what became of them."""
    groups = {
        "enforced": report.enforced,
        "annotation": report.annotations,
        "relaxed": report.relaxed,
    }
    rows = [
        (group, finding.place, finding.keyword, finding.note)
        for group, findings in groups.items()
        for finding in findings
    ]
    if not rows:
        return fact_list({"enforced": "as a whole"})
    more = [("", f"and {len(rows) - _MOST_ROWS:,} more", "", "")] if len(rows) > _MOST_ROWS else []
    return table(("", "place", "keyword", "note"), rows[:_MOST_ROWS] + more)
