"""Drawings of traces: the same parts in HTML, in the terminal and in notebooks."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import damage
import stencilm
from stencilm.generation.trace import (
    Called,
    Closed,
    Corrected,
    Drafted,
    Ended,
    Event,
    Forced,
    Healed,
    Prompt,
    Reasoned,
    Rejected,
    Sampled,
    Stopped,
    Trace,
)
from stencilm.views.html import fragment, page
from stencilm.views.segments import LEGEND, segments, standing
from stencilm.views.terminal import drawn, printer

CALL = {"prompt_tokens": 1, "output_tokens": 1, "cached_tokens": 0, "seconds": 0.1}
EVENTS: list[Event] = [
    Prompt(token_ids=(1,), text=b"Say <it>: "),
    Reasoned(token_ids=(2,), text=b"hm", logprob=-0.5),
    Called(means="function", error=None, **CALL),  # type: ignore[arg-type]
    Drafted(text=b"<b>&"),
    Sampled(token_id=7, text=b' "\xc3', logprob=-0.5, allowed=3),
    Sampled(token_id=8, text=b"\xa9", logprob=-0.1, allowed=None),
    Healed(token_id=9, text=b"\xc3\xa9t\xc3\xa9", healed=2, logprob=-0.2),
    Rejected(text=b"no\nway", position=9, token_id=5, logprob=-1.0, reason='no byte "x" here'),
    Corrected(text=b"yes", token_id=6, logprob=-2.0, candidates=("yes", "ja"), means="mask"),
    Forced(token_ids=(3, 4), text=b"\n]"),
    Called(means="function", error="OSError: <gone>", **CALL),  # type: ignore[arg-type]
    Closed(text=b"}", reason="the budget is spent"),
    Ended(status="closed", reason="the budget is spent"),
]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Spans(HTMLParser):
    """The spans of the text, with their class and note."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[tuple[str, str, str]] = []
        self._open: tuple[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        known = "html head meta title style body div ul li span pre p dl dt dd ol table tr th td"
        assert tag in known.split()
        assert not {"src", "href"} & given.keys()
        self._open = (given.get("class", ""), given.get("data-note", "")) if tag == "span" else None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.spans.append((*self._open, data))
            self._open = None


def spans(html: str) -> list[tuple[str, str, str]]:
    parser = Spans()
    parser.feed(html)
    return parser.spans


def test_every_part_is_told_by_its_class_and_note() -> None:
    html = page(EVENTS)
    drawn, _, log = html.partition('<p class="stencilm-head">1 correction</p>')
    assert [(part, text) for part, _, text in spans(log)] == [
        ("removed", "no↵way"),
        ("chosen", "yes"),
    ]
    found = spans(drawn)
    legend = [(part, "", text) for part, text in LEGEND.items()]
    assert found[: len(legend)] == legend
    assert [(part, text) for part, _, text in found[len(legend) :]] == [
        ("prompt", "Say <it>: "),
        ("reasoning", "hm"),
        ("draft", "<b>&"),
        ("masked", ' "'),  # the half character and its rest were spelled anew
        ("healed", "été"),
        ("removed", "no↵way"),
        ("chosen", "yes"),
        ("forced", "\n]"),
        ("closed", "}"),
    ]
    notes = {part: note for part, note, _ in found if note}
    assert notes["removed"] == "token 5 'no\\nway'\nprobability 0.368\nno byte \"x\" here"
    assert "chosen by: mask\ncandidates: yes, ja" in notes["chosen"]
    assert "closed: the budget is spent" in page(EVENTS)


def test_several_healed_tokens_spell_one_end() -> None:
    """What the prompt lost was cut before it was recorded; a correction is cut where it stands."""
    healed = [
        Healed(token_id=9, text=b": ", healed=2, logprob=-0.2),
        Healed(token_id=8, text=b"{x", healed=1, logprob=-0.2),
    ]
    prompt = Prompt(token_ids=(1,), text=b"Person")
    corrected = Corrected(
        text=b"is: {", token_id=None, logprob=None, candidates=(), means="chooser"
    )
    for events, text in (([prompt, *healed], b"Person: {x"), ([corrected, *healed], b"is: {x")):
        assert b"".join(segment.text for segment in segments(events)) == text


def test_pages_need_nothing_else_and_have_both_schemes() -> None:
    html = page(EVENTS, title="<title>")
    assert html.count("&lt;title&gt;") == 2
    assert not re.search(r"https?://|url\(|@import|<script", html)
    assert "prefers-color-scheme: dark" in html and "color-scheme: light dark" in html
    assert "<title>&lt;title&gt;</title>" in html
    assert fragment(EVENTS, title="<title>") in html


def test_what_stands_is_the_text() -> None:
    result = stencilm.guide(lambda prompt: 'Sure: "x" or so', stencilm.Regex('"[a-z]"'), "p")
    assert standing(segments(result.trace)) == result.response == '"x"'
    facts: dict[str, Any] = {
        "text": result.response,
        "tokens": result.usage.output_tokens,
        "seconds": result.process_time_seconds,
    }
    assert result._repr_html_() == fragment(result.trace, **facts)
    assert result.html == page(result.trace, **facts)
    assert result.trace._repr_html_() == fragment(result.trace)


def test_traces_of_masked_decoding_are_drawn_too() -> None:
    generation = stencilm.load("tiny").generate("Is it? ", stencilm.Choice(["yes", "no"]))
    found = spans(generation.trace._repr_html_())
    assert "".join(text for part, note, text in found if note) == generation.text
    assert {part for part, note, _ in found if note} <= {"masked", "forced"}
    assert generation.trace.model == "tiny"
    for fact in ("A text of tiny", "Choice(options=(&#x27;yes&#x27;, &#x27;no&#x27;))", "Is it? "):
        assert fact in generation._repr_html_()
    assert isinstance(generation.trace[-1], Stopped)
    assert any("allowed tokens" in note for _, note, _ in found)


def test_the_terminal_shows_the_same_parts() -> None:
    text = drawn(EVENTS)
    assert text.plain.endswith("closed: the budget is spent")
    styles = {text.plain[span.start : span.end]: str(span.style) for span in text.spans}
    assert styles["no\nway"] == "red strike"
    assert styles["yes"] == "bold blue"
    assert styles["été"] == "yellow underline"
    assert "drafted freely" not in drawn(EVENTS, legend=False).plain


def test_a_printer_prints_while_it_happens() -> None:
    stream = io.StringIO()
    show = printer(stream)
    for event in EVENTS[:5]:
        show(event)
    assert stream.getvalue() == 'hm<b>& "\\xc3'
    for event in EVENTS[5:]:
        show(event)
    assert "[call failed: OSError: <gone>]" in stream.getvalue()
    assert stream.getvalue().endswith("closed: the budget is spent\n")


def test_an_empty_trace_is_drawn() -> None:
    assert "stencilm-text" in page(Trace())
    assert drawn(Trace()).plain.strip() == ""


# In a browser


PROBE = """<script>
const style = document.querySelector('.stencilm style');
style.textContent = style.textContent.replaceAll(':focus', '.looked-at');
const seen = [];
for (const span of document.querySelectorAll('.stencilm-text span')) {
  span.classList.add('looked-at');
  const look = getComputedStyle(span), note = getComputedStyle(span, '::after');
  const box = span.getBoundingClientRect();
  seen.push({part: span.classList[0], text: span.innerText, ink: look.color,
    paper: look.backgroundColor, line: look.textDecorationLine, width: box.width,
    height: box.height, too_wide: document.documentElement.scrollWidth > innerWidth,
    note: note.content, note_ink: note.color, note_paper:
    note.backgroundColor});
  span.classList.remove('looked-at');
}
const frame = getComputedStyle(document.querySelector('.stencilm'));
const out = document.createElement('output');
out.textContent = JSON.stringify({seen, paper: frame.backgroundColor, ink: frame.color,
  too_wide: document.documentElement.scrollWidth > innerWidth});
document.body.append(out);
</script></body>"""


def looked_at(html: str, folder: Path, *options: str, probe: str = "") -> Any:
    """What a browser makes of a page: the style and the box of every part."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    source = folder / "page.html"
    source.write_text(html.replace("</body>", probe or PROBE), encoding="utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=900,400",
        f"--user-data-dir={folder / 'profile'}", *options, "--dump-dom", source.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=120, text=True)
    found = re.search("<output>(.*)</output>", done.stdout, re.DOTALL)
    if found is None:
        pytest.skip(f"chromium shows nothing here: {done.stderr[-200:]}")
    return json.loads(unescape(found[1]))


def luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of the Web Content Accessibility Guidelines; 4.5 is enough for text."""
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_shows_every_part_so_that_it_can_be_read(dark: bool, tmp_path: Path) -> None:
    found = looked_at(
        page(EVENTS), tmp_path, *(["--blink-settings=preferredColorScheme=0"] if dark else [])
    )
    assert (luminance(found["paper"]) < 0.1) is dark
    assert not found["too_wide"]
    seen = found["seen"]
    assert {span["part"] for span in seen} == {"prompt", *LEGEND}
    parts = [span for span in seen if span["part"] != "prompt"]
    papers = {(span["part"], span["paper"]) for span in parts}
    assert len({paper for _, paper in papers}) == len(papers), "each part has colours of its own"
    for span in parts:
        assert span["width"] > 0 and span["height"] > 0, span
        assert not span["too_wide"], "a note stays within the page"
        assert contrast(span["ink"], span["paper"]) >= 4.5, span
        assert contrast(span["note_ink"], span["note_paper"]) >= 4.5, span
        assert (span["line"] == "line-through") is (span["part"] == "removed"), span
    removed = next(span for span in seen if span["part"] == "removed")
    for fact in ("token 5", "probability 0.368", "here"):
        assert fact in removed["note"]


def test_a_long_text_stays_within_the_page(tmp_path: Path) -> None:
    events = [
        Drafted(text=b"x" * 5000),
        Rejected(text=b"y" * 500, position=1, token_id=None, logprob=None, reason="z" * 300),
    ]
    found = looked_at(page(events), tmp_path)
    assert not found["too_wide"] and not any(span["too_wide"] for span in found["seen"])
    assert found["seen"][0]["height"] > 100


# The rules of a notebook, as its themes write them: of classes and of elements.
NOTEBOOK = """<style>
.jp-RenderedHTMLCommon { font-size: 22px; line-height: 2.5; color: #c00; }
.jp-RenderedHTMLCommon pre, .jp-OutputArea-output pre { background: #fe0; color: #0a0;
  border: 3px solid; margin: 20px; padding: 30px; font-family: serif;
  white-space: pre; text-align: right; }
.jp-RenderedHTMLCommon ul:not(.list-inline), .jp-RenderedHTMLCommon ol:not(.list-inline) {
  padding-left: 6em; list-style: square; margin: 3em; }
.jp-RenderedHTMLCommon p, .jp-RenderedHTMLCommon li { margin: 2em; }
.jp-RenderedHTMLCommon span, .jp-RenderedHTMLCommon [class] { letter-spacing: 4px; }
.jp-RenderedHTMLCommon table tr:nth-child(odd) td { background: #f0f; text-align: right; }
.jp-RenderedHTMLCommon div > * + * { margin-top: 3em; }
.jp-Cell .jp-RenderedHTMLCommon .prompt { display: none; min-width: 14ex; }
</style><div class="jp-Cell"><div class="jp-RenderedHTMLCommon jp-OutputArea-output">"""
STYLES_PROBE = """<script>
const looks = [...document.querySelectorAll('.stencilm, .stencilm *')].map(element => {
  const look = getComputedStyle(element);
  return [element.tagName, element.className, ...['color', 'backgroundColor', 'fontFamily',
    'fontSize', 'lineHeight', 'letterSpacing', 'marginTop', 'marginLeft', 'paddingLeft',
    'paddingTop', 'borderTopWidth', 'whiteSpace', 'textAlign', 'listStyleType', 'display'
  ].map(name => look[name])];
});
const out = document.createElement('output');
getSelection().selectAllChildren(document.body);
out.textContent = JSON.stringify({looks, copied: getSelection().toString()});
document.body.append(out);
</script></body>"""


def test_the_styles_of_a_notebook_do_not_win(tmp_path: Path) -> None:
    report = stencilm.Grammar.from_json_schema({"type": "integer", "title": "x"}).report
    drawn = fragment(EVENTS) + report._repr_html_()
    plain = f"<!doctype html><html><body>{drawn}</body></html>"
    noisy = f"<!doctype html><html><body>{NOTEBOOK}{drawn}</div></div></body></html>"
    looks = [looked_at(html, tmp_path, probe=STYLES_PROBE)["looks"] for html in (plain, noisy)]
    assert len(looks[0]) > 30
    for alone, within in zip(*looks, strict=True):
        assert alone == within


def test_copying_takes_the_final_text_alone(tmp_path: Path) -> None:
    result = stencilm.guide(lambda prompt: "AB+1\n", stencilm.Regex("[A-Z]{2}-1"), "A code:")
    found = looked_at(result.html, tmp_path, probe=STYLES_PROBE)
    assert found["copied"].strip() == result.response == "AB-1"


def test_values_print_in_a_line_and_draw_themselves() -> None:
    model = stencilm.load("tiny")
    generation = model.generate("Is it? ", stencilm.Choice(["yes", "no"]))
    grammar = stencilm.Grammar.from_json_schema({"enum": ["<b>", "\u202e"], "title": "x"})
    values: dict[Any, str] = {
        model: "<Model: tiny>",
        grammar: "<Grammar: JSON Schema ",
        grammar.report: "<Report: 1 enforced, 1 annotations, 0 relaxed>",
        generation.stats: "<Stats: ",
    }
    for value, line in [*values.items(), (generation, "<Generation: ")]:
        shown = repr(value)
        assert shown.startswith(line) and "\n" not in shown and len(shown) < 200, shown
        html = value._repr_html_()
        assert html.startswith('<div class="stencilm">') and "<b>" not in html
        assert "\u202e" not in html
    long = stencilm.Grammar.from_regex("a" * 9_000)
    assert len(repr(long)) < 200 and len(long._repr_html_()) < 20_000


HOSTILE = "a\x1b[2J\x1b]0;title\x07\x9b31m\u202eb\r\x00c\n\td"
SHOWN = "a\\x1b[2J\\x1b]0;title\\a\\x9b31m\\u202eb\\r\\x00c\n\td"


def test_control_characters_are_escaped() -> None:
    from stencilm.views.characters import json_text, visible

    assert visible(HOSTILE) == SHOWN
    assert visible("é😀\u00a0\\x1b") == "é😀\u00a0\\x1b"
    assert visible("a\nb", keep="") == "a\\nb"
    text = json_text({"text": HOSTILE, "more": "é"})
    assert json.loads(text) == {"text": HOSTILE, "more": "é"}
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e]", text) and "é" in text


def test_no_drawing_obeys_what_a_model_wrote() -> None:
    events: list[Event] = [
        Prompt(token_ids=(), text=HOSTILE.encode()),
        Called(means="function", error=f"OSError: {HOSTILE}", **CALL),  # type: ignore[arg-type]
        Drafted(text=HOSTILE.encode()),
        Sampled(token_id=7, text=b"\x1b", logprob=-0.5, allowed=3),
        Rejected(text=HOSTILE.encode(), position=9, token_id=5, logprob=-1.0, reason=HOSTILE),
        Corrected(
            text=HOSTILE.encode(), token_id=6, logprob=-2.0, candidates=(HOSTILE,), means="mask"
        ),
        Closed(text=HOSTILE.encode(), reason=HOSTILE),
        Ended(status="closed", reason=HOSTILE),
    ]
    stream = io.StringIO()
    show = printer(stream)
    for event in events:
        show(event)
    for drawing in (stream.getvalue(), drawn(events).plain, page(events), fragment(events)):
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]", drawing)
        assert "\\x1b[2J" in drawing


def test_a_damaged_trace_is_refused_or_drawn() -> None:
    """It may come from a file of somebody else."""
    records = json.loads(Trace(EVENTS).dumps())
    for seed in range(300):
        text = json.dumps(damage.damaged_json(records, random.Random(seed)))
        try:
            trace = Trace.loads(text)
        except ValueError as error:
            assert str(error), seed
            continue
        assert page(trace) and Trace.loads(trace.dumps()).dumps() == trace.dumps(), seed


def test_a_logarithm_that_is_of_no_probability_is_drawn() -> None:
    [segment] = segments([Sampled(token_id=7, text=b"a", logprob=1e9, allowed=3)])
    assert segment.probability == 1
