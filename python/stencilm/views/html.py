"""A trace as HTML that needs nothing else: a page, or a fragment for notebooks.

One idea: colours are variables, so that the same spans read in light and in dark, and every part is
told by more than its colour: removed text is struck out, healed text underlined.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from stencilm.generation.trace import Event
from stencilm.views.characters import visible
from stencilm.views.segments import LEGEND, outcome, parts_of, readable, segments

_STYLE = """
.stencilm { --ink: #1c2430; --quiet: #5d6877; --paper: #ffffff; --edge: #d5dbe3;
  --draft: #d3f2da; --chosen: #cfe2ff; --removed: #ffd9d6; --removed-ink: #a1180c;
  --reasoning: #fdf3c7; --healed: #ffe3b8; --forced: #e4e7ec; --closed: #ead9fb;
  color: var(--ink); background: var(--paper); font: 15px/1.7 ui-sans-serif, system-ui, sans-serif;
  border: 1px solid var(--edge); border-radius: 8px; padding: 14px 18px; max-width: 72rem; }
@media (prefers-color-scheme: dark) { .stencilm { --ink: #e6eaf0; --quiet: #98a4b3;
  --paper: #161b22; --edge: #333d49; --draft: #1d4a2b; --chosen: #1c3f75; --removed: #5a1f1b;
  --removed-ink: #ffb4ab; --reasoning: #4d4417; --healed: #664510; --forced: #3a424d;
  --closed: #4a2d6b; } }
.stencilm-legend { display: flex; flex-wrap: wrap; gap: 4px 14px; margin: 0 0 10px; padding: 0;
  list-style: none; color: var(--quiet); font-size: 13px; }
.stencilm .stencilm-legend span { padding: 1px 7px; }
.stencilm-text { position: relative; margin: 0; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 14px/1.9 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
.stencilm .prompt { color: var(--quiet); }
.stencilm .draft, .stencilm .chosen, .stencilm .removed, .stencilm .healed, .stencilm .forced,
.stencilm .closed { color: var(--ink); border-radius: 3px; padding: 2px 0; }
.stencilm .reasoning { background: var(--reasoning); color: var(--quiet); }
.stencilm .draft { background: var(--draft); }
.stencilm .chosen { background: var(--chosen); font-weight: 600; }
.stencilm .removed { background: var(--removed); color: var(--removed-ink);
  text-decoration: line-through; }
.stencilm .healed { background: var(--healed); text-decoration: underline dotted; }
.stencilm .forced { background: var(--forced); }
.stencilm .closed { background: var(--closed); font-style: italic; }
.stencilm-text [data-note] { cursor: help; }
.stencilm-text [data-note]:hover, .stencilm-text [data-note]:focus {
  outline: 2px solid var(--quiet); outline-offset: 1px; }
.stencilm-text [data-note]:hover::after, .stencilm-text [data-note]:focus::after {
  content: attr(data-note); position: absolute; left: 0; margin-top: 2em; z-index: 3;
  width: max-content; max-width: min(44rem, 100%); box-sizing: border-box;
  padding: 6px 10px; border-radius: 6px; white-space: pre-wrap;
  background: var(--ink); color: var(--paper); font: 12px/1.5 ui-sans-serif, system-ui, sans-serif;
  font-style: normal; text-decoration: none; pointer-events: none; }
.stencilm-outcome { margin: 10px 0 0; color: var(--quiet); font-size: 13px; }
"""

_PAGE_STYLE = """
:root { color-scheme: light dark; } body { margin: 24px; background: #f4f6f8; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; } }
"""


def page(events: Iterable[Event], *, title: str = "stencilm") -> str:
    """A whole page, with nothing to load from anywhere."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n<body>\n"
        f"{fragment(events)}\n</body>\n</html>\n"
    )


def fragment(events: Iterable[Event]) -> str:
    """A `div` with its own style, for notebooks and for pages of others."""
    events = list(events)
    found = segments(events)
    legend = "".join(
        f'<li><span class="{part}">{escape(LEGEND[part])}</span></li>' for part in parts_of(found)
    )
    text = "".join(
        f'<span class="{segment.part}" data-note="{_attribute(segment.note)}" tabindex="0">'
        f"{escape(_shown(segment.part, segment.text))}</span>"
        if segment.part != "prompt"
        else f'<span class="prompt">{escape(_plain(segment.text))}</span>'
        for segment in found
        if segment.text
    )
    end = outcome(events)
    ending = "" if end is None else f'<p class="stencilm-outcome">{escape(visible(end))}</p>'
    return (
        f'<div class="stencilm"><style>{_STYLE}</style>'
        f'<ul class="stencilm-legend">{legend}</ul>'
        f'<pre class="stencilm-text">{text}</pre>{ending}</div>'
    )


def _shown(part: str, text: bytes) -> str:
    """Removed line breaks are signs, or they would tear the text that stands."""
    shown = _plain(text)
    return shown.replace("\r", "␍").replace("\n", "↵") if part == "removed" else shown


def _plain(text: bytes) -> str:
    return visible(readable(text), keep="\n\t\r")


def _attribute(text: str) -> str:
    return escape(visible(text)).replace("\n", "&#10;")
