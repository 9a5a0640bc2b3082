"""A trace as self-contained HTML: a page, or a fragment for notebooks.

One idea: the fragment is isolated. Its rules are more specific than those of the page around it,
and begin by resetting them. Colours are variables, so that the same spans are readable in light and
in dark mode. Every part is marked by more than its colour: removed text is struck out, healed text
underlined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from stencilm.generation.corrections import Correction, corrections
from stencilm.generation.trace import Called, Event, Prompt, Trace
from stencilm.views.characters import visible
from stencilm.views.segments import (
    LEGEND,
    Segment,
    outcome,
    parts_of,
    readable,
    segments,
    standing,
    written,
)

_LIGHT = """--ink: #1c2430; --quiet: #5d6877; --paper: #ffffff; --edge: #d5dbe3; --field: #f4f6f8;
  --draft: #d3f2da; --masked: #c9eef2; --chosen: #cfe2ff; --removed: #ffd9d6;
  --removed-ink: #a1180c; --reasoning: #fdf3c7; --healed: #ffe3b8; --forced: #e4e7ec;
  --closed: #ead9fb;"""
_DARK = """--ink: #e6eaf0; --quiet: #98a4b3; --paper: #161b22; --edge: #333d49; --field: #1f262f;
  --draft: #1d4a2b; --masked: #134a52; --chosen: #1c3f75; --removed: #5a1f1b;
  --removed-ink: #ffb4ab; --reasoning: #4d4417; --healed: #664510; --forced: #3a424d;
  --closed: #4a2d6b;"""
_PARTS = "\n".join(
    f"& .{part} {{ background: "
    f"color-mix(in srgb, var(--{part}) var(--shade, 100%), var(--paper)); }}"
    for part in LEGEND
)

# `&` stands for the class repeated three times: more specific than the rules of pages and
# notebooks.
_STYLE = f"""
& {{ all: revert; {_LIGHT}
  color: var(--ink); background: var(--paper); font: 15px/1.7 ui-sans-serif, system-ui, sans-serif;
  border: 1px solid var(--edge); border-radius: 8px; padding: 14px 18px; max-width: 72rem;
  text-align: left; user-select: none; -webkit-user-select: none; }}
@media (prefers-color-scheme: dark) {{ & {{ {_DARK} }} }}
[data-jp-theme-light="true"] & {{ {_LIGHT} }}
[data-jp-theme-light="false"] & {{ {_DARK} }}
& * {{ all: revert; box-sizing: border-box; color: inherit; font: inherit; }}
& style {{ display: none; }}
& .stencilm-title {{ margin: 0 0 6px; font-weight: 600; font-size: 17px; }}
& .stencilm-facts {{ display: flex; flex-wrap: wrap; gap: 2px 22px; margin: 0 0 8px; padding: 0;
  font-size: 13px; }}
& .stencilm-facts div {{ display: flex; gap: 6px; min-width: 0; }}
& .stencilm-facts dt {{ color: var(--quiet); }}
& .stencilm-facts dd {{ margin: 0; overflow-wrap: anywhere; }}
& .stencilm-head {{ margin: 12px 0 4px; color: var(--quiet); font-size: 13px; }}
& .stencilm-final {{ margin: 0; padding: 8px 12px; white-space: pre-wrap; overflow-wrap: anywhere;
  background: var(--field); border: 1px solid var(--edge); border-radius: 6px;
  font: 14px/1.6 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace;
  user-select: text; -webkit-user-select: text; }}
& .stencilm-legend {{ display: flex; flex-wrap: wrap; gap: 4px 14px; margin: 0 0 10px; padding: 0;
  list-style: none; color: var(--quiet); font-size: 13px; }}
& .stencilm-legend span {{ padding: 1px 7px; }}
& .stencilm-text {{ position: relative; margin: 0; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 14px/1.9 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }}
& .prompt {{ color: var(--quiet); }}
& .reasoning, & .draft, & .masked, & .chosen, & .removed, & .healed, & .forced, & .closed {{
  color: var(--ink); border-radius: 3px; padding: 2px 0; }}
{_PARTS}
& .chosen {{ font-weight: 600; }}
& .removed {{ color: var(--removed-ink); text-decoration: line-through; }}
& .healed {{ text-decoration: underline dotted; }}
& .closed {{ font-style: italic; }}
& .stencilm-text [data-note] {{ cursor: help; }}
& .stencilm-text [data-note]:hover::after, & .stencilm-text [data-note]:focus::after {{
  content: attr(data-note); position: absolute; left: 0; margin-top: 2em; z-index: 3;
  width: max-content; max-width: min(44rem, 100%); box-sizing: border-box;
  padding: 6px 10px; border-radius: 6px; white-space: pre-wrap;
  background: var(--ink); color: var(--paper); font: 12px/1.5 ui-sans-serif, system-ui, sans-serif;
  font-style: normal; text-decoration: none; pointer-events: none; }}
& .stencilm-corrections {{ margin: 0; padding: 0 0 0 1.6em; font-size: 13px; list-style: decimal; }}
& .stencilm-corrections li {{ margin: 2px 0; overflow-wrap: anywhere; }}
& .stencilm-corrections span {{ padding: 1px 4px;
  font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }}
& .stencilm-table {{ border-collapse: collapse; margin: 4px 0 0; font-size: 13px; }}
& .stencilm-table th, & .stencilm-table td {{ padding: 2px 14px 2px 0; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; background: none; }}
& .stencilm-table th {{ color: var(--quiet); font-weight: 400; }}
& .stencilm-outcome {{ margin: 10px 0 0; color: var(--quiet); font-size: 13px; }}
""".replace("&", ".stencilm.stencilm.stencilm")

_PAGE_STYLE = """
:root { color-scheme: light dark; } body { margin: 24px; background: #f4f6f8; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; } }
"""
_MOST_CORRECTIONS = 100
_PALEST = 30
"""The share of its colour that the most improbable token gets, in percent."""


def page(
    events: Iterable[Event],
    *,
    title: str | None = None,
    text: str | None = None,
    tokens: int | None = None,
    seconds: float | None = None,
) -> str:
    """A self-contained page; the arguments are those of `fragment`."""
    events = events if isinstance(events, Trace) else list(events)
    shown = title_of(events) if title is None else title
    drawn = fragment(events, title=shown, text=text, tokens=tokens, seconds=seconds)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escaped(shown)}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n<body>\n"
        f"{drawn}\n</body>\n</html>\n"
    )


def title_of(events: Iterable[Event]) -> str:
    """The default title of a rendered trace."""
    model = getattr(events, "model", None)
    return "A text, and how it was written" if model is None else f"A text of {model}"


def fragment(
    events: Iterable[Event],
    *,
    title: str | None = None,
    text: str | None = None,
    tokens: int | None = None,
    seconds: float | None = None,
) -> str:
    """A `div` with its own style, for notebooks and other pages.

    Copying all of it gives the final text and nothing else.

    Args:
        events: A trace; its model and grammar are shown if it names them.
        title: The title; by default it contains the model's name.
        text: The final text; by default the text at the end of the trace.
        tokens: The number of generated tokens; by default counted.
        seconds: The duration; by default that of its calls, if there are any.
    """
    model, grammar = getattr(events, "model", None), getattr(events, "grammar", None)
    shown = title_of(events) if title is None else title
    events = list(events)
    found = segments(events)
    called = [event.seconds for event in events if isinstance(event, Called)]
    spent = sum(called) if seconds is None and called else seconds
    count = written(events) if tokens is None else tokens
    facts = {
        "model": model,
        "grammar": grammar,
        "tokens": f"{count:,}" if count else None,
        "time": None if spent is None else f"{spent:.2f} s",
    }
    prompt = any(isinstance(event, Prompt) for event in events)
    end = outcome(events)
    return island(
        f'<p class="stencilm-title">{_escaped(shown)}</p>',
        fact_list(facts),
        _block("Text", _final(standing(found) if text is None else text)),
        f'<p class="stencilm-head">How it was written{", after the prompt" if prompt else ""}</p>',
        _legend(found),
        f'<pre class="stencilm-text">{"".join(map(_span, found))}</pre>',
        _correction_list(list(corrections(events))),
        "" if end is None else f'<p class="stencilm-outcome">{_escaped(end)}</p>',
    )


def island(*parts: str) -> str:
    """A `div` with our style around parts that are already HTML."""
    return f'<div class="stencilm"><style>{_STYLE}</style>{"".join(parts)}</div>'


def fact_list(facts: Mapping[str, str | None]) -> str:
    """Facts side by side, without those that are None."""
    rows = "".join(
        f"<div><dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd></div>"
        for name, value in facts.items()
        if value is not None
    )
    return f'<dl class="stencilm-facts">{rows}</dl>' if rows else ""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of texts."""
    head = "".join(f"<th>{_escaped(name)}</th>" for name in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f'<table class="stencilm-table"><tr>{head}</tr>{body}</table>'


def title_line(text: str) -> str:
    """A title."""
    return f'<p class="stencilm-title">{_escaped(text)}</p>'


def text_block(text: str) -> str:
    """A text that can be copied."""
    return _final(text)


def _block(head: str, content: str) -> str:
    return f'<p class="stencilm-head">{head}</p>{content}'


def _final(text: str) -> str:
    return f'<pre class="stencilm-final">{escape(visible(text, keep=_LAYOUT))}</pre>'


def _legend(found: list[Segment]) -> str:
    items = [
        f'<li><span class="{part}">{escape(LEGEND[part])}</span></li>' for part in parts_of(found)
    ]
    if any(segment.probability is not None for segment in found):
        items.append("<li>paler: less probable to the model</li>")
    return f'<ul class="stencilm-legend">{"".join(items)}</ul>' if items else ""


def _span(segment: Segment) -> str:
    if not segment.text:
        return ""
    if segment.part == "prompt":
        return f'<span class="prompt">{escape(_plain(segment.text))}</span>'
    shade = ""
    if segment.probability is not None:
        share = _PALEST + (100 - _PALEST) * segment.probability
        shade = f' style="--shade: {share:.0f}%"'
    return (
        f'<span class="{segment.part}"{shade} data-note="{_attribute(segment.note)}" '
        f'tabindex="0">{escape(_shown(segment.part, segment.text))}</span>'
    )


def _correction_list(found: list[Correction]) -> str:
    if not found:
        return ""
    items = []
    for one in found[:_MOST_CORRECTIONS]:
        before = f'<span class="removed">{_line(one.rejected)}</span> → ' if one.rejected else ""
        after = f'<span class="chosen">{_line(one.choice)}</span>' if one.choice else "nothing"
        items.append(f"<li>at byte {one.position}: {before}{after}, by {_escaped(one.means)}</li>")
    if len(found) > _MOST_CORRECTIONS:
        items.append(f"<li>and {len(found) - _MOST_CORRECTIONS:,} more</li>")
    head = f"{len(found):,} correction{'s' if len(found) > 1 else ''}"
    return _block(head, f'<ol class="stencilm-corrections">{"".join(items)}</ol>')


_LAYOUT = "\n\t\r"


def _line(text: str) -> str:
    return escape(visible(text.replace("\n", "↵"), keep=""))


def _escaped(text: str) -> str:
    return escape(visible(text))


def _shown(part: str, text: bytes) -> str:
    """Show removed line breaks as symbols, because they would break the remaining text."""
    shown = _plain(text)
    return shown.replace("\r", "␍").replace("\n", "↵") if part == "removed" else shown


def _plain(text: bytes) -> str:
    return visible(readable(text), keep=_LAYOUT)


def _attribute(text: str) -> str:
    return escape(visible(text)).replace("\n", "&#10;")
