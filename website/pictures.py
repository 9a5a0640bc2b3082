"""The pictures of `docs/how-it-works.md`, drawn from what the engine itself says.

`python -m website.pictures` writes them to `docs/pictures`. One idea: a picture is worked out, not
painted. The trie is that of a real vocabulary, the mask a matcher's, the stretches an index's, the
backtracking a trace's; so a picture cannot say what the engine does not do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import stencilm
from stencilm.views.segments import LEGEND, parts_of, readable, segments

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"

STYLE = """
svg { font: 14px ui-sans-serif, system-ui, sans-serif; }
.paper { fill: #fbfcfe; stroke: #d4dae4; } .ink { fill: #1a2230; } .quiet { fill: #56627a; }
.mono { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.line { stroke: #8793a8; fill: none; stroke-width: 1.5; } .faint { stroke: #ccd3de; }
.good { fill: #d5f2dc; } .bad { fill: #ffdad6; } .cross { fill: #fff0c9; }
.forced { fill: #e2e6ef; } .chosen { fill: #d9e5ff; } .plain { fill: #ffffff; }
.edge { stroke: #8793a8; } .struck { text-decoration: line-through; fill: #9b1c10; }
@media (prefers-color-scheme: dark) {
.paper { fill: #171c25; stroke: #313a49; } .ink { fill: #e5e9f1; } .quiet { fill: #9aa7bc; }
.line { stroke: #76839a; } .faint { stroke: #3a4454; } .plain { fill: #11161e; }
.good { fill: #1b4429; } .bad { fill: #5c1f1a; } .cross { fill: #4b3a10; }
.forced { fill: #353e4d; } .chosen { fill: #223a72; } .struck { fill: #ffb9b0; } }
"""

# The example of docs/masks.md.
TOKENS = ["{", "}", '"', "a", '"a"', '{"', '": ', ": ", "1", "12", "2}", "</s>"]
BEFORE = '{"a": 1'


class Drawing:
    """An SVG that grows: elements, and a size."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">\n<title>{escape(title)}</title>\n'
            f"<style>{STYLE}</style>\n"
            f'<rect class="paper" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="10"/>'
        )
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A rectangle with round corners."""
        self._parts.append(
            f'<rect class="{kind} edge" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            'rx="6"/>'
        )

    def text(self, x: float, y: float, text: str, kind: str = "ink", anchor: str = "start") -> None:
        """A line of text; `y` is its base line."""
        shown = escape(text, quote=False)
        self._parts.append(
            f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}" '
            f'xml:space="preserve">{shown}</text>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str = "") -> None:
        """A line that leaves and arrives level."""
        middle = (x + to_x) / 2
        self._parts.append(
            f'<path class="line {kind}" d="M{x:g} {y:g}C{middle:g} {y:g} {middle:g} {to_y:g} '
            f'{to_x:g} {to_y:g}"/>'
        )

    def legend(self, x: float, y: float, entries: Iterable[tuple[str, str]]) -> None:
        """Coloured squares and what they mean."""
        for kind, words in entries:
            self.box(x, y - 11, 13, 13, kind)
            self.text(x + 20, y, words, "quiet")
            x += 44 + 7.4 * len(words)

    def __str__(self) -> str:
        return "\n".join([self._head, *self._parts, "</svg>\n"])


def shown(text: str) -> str:
    """Spaces as signs."""
    return text.replace(" ", "␣")


def _matcher() -> tuple[Any, Any]:
    info = stencilm.TokenizerInfo(TOKENS, stop_token_ids=[11])
    grammar = stencilm.Grammar.from_json_schema(
        {"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"},
        any_whitespace=False,
        strict_mode=True,
        spelling="digits",
    )
    matcher = stencilm.GrammarMatcher(stencilm.GrammarCompiler(info).compile(grammar))
    if not matcher.accept_string(BEFORE):
        raise AssertionError("the example fits its grammar")
    return info, matcher


def trie() -> str:
    """The vocabulary as a trie; what a walk enters, and what it skips."""
    _, matcher = _matcher()
    children: dict[str, list[str]] = {"": []}
    for token in sorted(TOKENS[:-1]):
        for end in range(1, len(token) + 1):
            if token[:end] not in children:
                children[token[:end]] = []
                children[token[: end - 1]].append(token[:end])
    rows: dict[str, float] = {}

    def place(node: str) -> float:
        below = [place(child) for child in children[node]]
        rows[node] = sum(below) / len(below) if below else float(len(leaves))
        if not below:
            leaves.append(node)
        return rows[node]

    leaves: list[str] = []
    place("")
    drawing = Drawing(760, 70 + 40 * len(leaves) + 44, "The tokens of a vocabulary as a trie")
    drawing.text(24, 32, f"The tokens as a trie, walked behind {shown(BEFORE)}")

    def centre(node: str) -> tuple[float, float]:
        return 60 + 150 * len(node), 74 + 40 * rows[node]

    def fits(node: str) -> bool:
        return str(matcher.longest_valid_prefix(node).status) != "dead"

    for node, below in children.items():
        for child in below:
            (x, y), (to_x, to_y) = centre(node), centre(child)
            drawing.line(x + 30, y, to_x - 30, to_y, "" if fits(node) and fits(child) else "faint")
    for node in children:
        x, y = centre(node)
        kind = (
            "plain"
            if not node
            else "good"
            if fits(node)
            else "bad"
            if fits(node[:-1])
            else "forced"
        )
        drawing.box(x - 30, y - 14, 60, 28, kind)
        drawing.text(x, y + 5, shown(node[-1:]) or "start", "ink mono", "middle")
        if node in TOKENS:
            drawing.text(x + 34, y - 6, f"{TOKENS.index(node)}", "quiet")
    legend = (("good", "fits"), ("bad", "refused: what is below is skipped"), ("forced", "skipped"))
    drawing.legend(24, 70 + 40 * len(leaves) + 22, legend)
    return str(drawing)


def mask_row() -> str:
    """The mask as a row, with the token that crosses the end of a lexeme."""
    info, matcher = _matcher()
    bitmask = np.zeros((1, 1), dtype=np.int32)
    matcher.fill_next_token_bitmask(bitmask)
    bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[: info.vocab_size]
    width = 62
    drawing = Drawing(24 + width * len(TOKENS) + 24, 232, "A mask as a row of bits")
    drawing.text(24, 32, f"The mask behind {shown(BEFORE)}: one bit for each token")
    crossing = [
        token for token, bit in zip(TOKENS, bits, strict=True) if bit and token[0].isdigit()
        and not token.isdigit()
    ]  # fmt: skip
    for index, (token, bit) in enumerate(zip(TOKENS, bits, strict=True)):
        x = 24 + width * index
        kind = "cross" if token in crossing else "good" if bit else "forced"
        drawing.text(x + 29, 66, str(index), "quiet", "middle")
        drawing.box(x, 74, 58, 34, kind)
        drawing.text(x + 29, 96, shown(token), "ink mono", "middle")
        drawing.text(x + 29, 130, str(bit), "ink mono", "middle")
    word = int(bitmask[0, 0]) & 0xFFFF_FFFF
    drawing.text(24, 164, f"as an int32: 0b{word:b} = {word}", "quiet mono")
    legend = (
        ("good", "allowed"), ("cross", "allowed, and crosses from the number into the object"),
        ("forced", "refused"),
    )  # fmt: skip
    drawing.legend(24, 204, legend)
    return str(drawing)


def coalescence() -> str:
    """Where every continuation agrees: text that needs no forward pass."""
    info = stencilm.TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
    index = stencilm.TokenIndex.from_regex(r'\{"name":"(John|Paul)","age":(20|30)\}', info)
    stretches = sorted(index.coalesce(), key=lambda stretch: stretch.state)
    # The stretches of one text from the beginning to the end: the first name, the first age.
    drawing = Drawing(760, 250, "Stretches of a text where every continuation agrees")
    drawing.text(24, 32, "Where every continuation agrees, text is forced and no model is asked")
    matcher = stencilm.GrammarMatcher(
        stencilm.GrammarCompiler(info).compile_regex(r'\{"name":"(John|Paul)","age":(20|30)\}')
    )
    x, passes = 24.0, 0
    while not matcher.is_completed():
        forced = matcher.find_jump_forward_string()
        if forced:
            matcher.accept_string(forced)
            x = _piece(drawing, x, forced, "forced", [])
            continue
        ways = [getattr(each, "text", "") for each in matcher.candidates()]
        firsts = sorted({way[0] for way in ways})
        matcher.accept_string(firsts[0])
        passes += 1
        x = _piece(drawing, x, firsts[0], "chosen", firsts[1:])
    told = ", ".join(shown(stretch.text.decode()) for stretch in stretches[:4])
    drawing.text(
        24, 186, f"The model decides {passes} times. Stretches of the index: {told}", "quiet"
    )
    drawing.legend(24, 220, (("chosen", "a choice, drawn by the model"), ("forced", "forced")))
    return str(drawing)


def _piece(drawing: Drawing, x: float, text: str, kind: str, others: list[str]) -> float:
    width = 18 + 9 * len(text)
    drawing.box(x, 76, width, 34, kind)
    drawing.text(x + width / 2, 98, shown(text), "ink mono", "middle")
    for row, other in enumerate(others):
        drawing.text(x + width / 2, 140 + 22 * row, f"or {other}", "quiet mono", "middle")
        drawing.line(x + width / 2, 112, x + width / 2, 124 + 22 * row, "faint")
    return x + width + 6


def backtracking() -> str:
    """A draft that leaves the grammar, is cut back, corrected, and goes on."""

    def draft(prompt: str) -> str:
        return "-03" if "2024" in prompt else "2024-17-03"

    date = stencilm.Regex(r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
    guided = stencilm.guide(draft, date, "When?")
    found = [each for each in segments(guided.trace) if each.part != "prompt" and each.text]
    kinds = {"draft": "good", "chosen": "chosen", "removed": "bad", "healed": "cross"}
    kinds |= {"forced": "forced", "closed": "cross"}
    drawing = Drawing(820, 196, "A draft that is corrected where it leaves the grammar")
    drawing.text(24, 32, "A draft, cut back where it leaves the grammar, and corrected")
    x = 24.0
    for segment in found:
        text = readable(segment.text)
        width = 16 + 9 * len(text)
        drawing.box(x, 62, width, 34, kinds[segment.part])
        kind = "mono struck" if segment.part == "removed" else "mono ink"
        drawing.text(x + width / 2, 84, shown(text), kind, "middle")
        x += width + 6
    drawing.text(24, 130, f"What stands in the end: {guided.response}", "quiet")
    drawing.legend(24, 166, [(kinds[part], LEGEND[part]) for part in parts_of(found)])
    return str(drawing)


PICTURES: dict[str, Callable[[], str]] = {
    "trie": trie,
    "mask-row": mask_row,
    "coalescence": coalescence,
    "backtracking": backtracking,
}


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
