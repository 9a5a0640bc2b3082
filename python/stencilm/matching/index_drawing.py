"""Drawings of a token index: DOT text, and SVG if Graphviz is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

from stencilm.errors import StencilError

if TYPE_CHECKING:
    from stencilm.matching.index import TokenIndex

# The most tokens in the label of an arrow, and layers of a summary.
_MAX_LABELS = 6
_MAX_LAYERS = 24
_MAX_LENGTH = 24
_TIMEOUT = 60.0  # seconds
_HEAD = (
    "digraph index {",
    "  rankdir=LR;",
    '  node [shape=circle, fontname="Helvetica"];',
    '  edge [fontname="Courier", fontsize=11];',
    '  start [shape=point, label=""];',
)


def dot(index: TokenIndex, max_states: int) -> str:
    """The automaton state by state, or layer by layer if it has more than `max_states` states."""
    lines = _states(index) if index.num_states <= max_states else _layers(index)
    return "\n".join([*_HEAD, *lines, "}", ""])


def is_graphviz_installed() -> bool:
    """Whether Graphviz is installed."""
    return shutil.which("dot") is not None


def svg(text: str) -> str:
    """Graphviz's drawing.

    Raises:
        StencilError: It is not installed, or fails.
    """
    program = shutil.which("dot")
    if program is None:
        raise StencilError(
            "graphviz is not installed, so nothing can be drawn; install it so that there is a "
            "program `dot`, or take the text that to_dot() returns to any viewer of DOT"
        )
    try:
        done = subprocess.run(
            [program, "-Tsvg"], input=text.encode(), capture_output=True, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        raise StencilError(
            f"graphviz has not drawn this within {_TIMEOUT:.0f} seconds; draw fewer states"
        ) from error
    if done.returncode != 0:
        raise StencilError(f"graphviz fails: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout.decode()


def _states(index: TokenIndex) -> list[str]:
    finals = index.final_states
    lines = [f"  start -> {index.initial_state};"]
    lines += [f"  {state} [shape=doublecircle];" for state in sorted(finals)]
    vocabulary = index.tokenizer_info.decoded_vocab
    for state, row in index.transitions.items():
        arrows: dict[int, list[bytes]] = {}
        for token_id, target in row.items():
            arrows.setdefault(target, []).append(vocabulary[token_id])
        for target, tokens in sorted(arrows.items()):
            lines.append(f'  {state} -> {target} [label="{_label(tokens)}"];')
    return lines


def _label(tokens: list[bytes]) -> str:
    """The shortest tokens, one per line, and how many more there are."""
    texts = sorted(set(tokens), key=lambda token: (len(token), token))
    shown = [_escape(_written(text)) for text in texts[:_MAX_LABELS]]
    if len(texts) > _MAX_LABELS:
        shown.append(f"… {len(texts) - _MAX_LABELS:,} more")
    return "\\n".join(shown)


def _written(token: bytes) -> str:
    text = token.decode("utf-8", "backslashreplace").replace(" ", "␣")
    text = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def _escape(text: str) -> str:
    # Graphviz interprets HTML entities in every label.
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


def _layers(index: TokenIndex) -> list[str]:
    """States by distance from the start, with neighbouring layers joined."""
    transitions = index.transitions
    targets = {state: Counter(row.values()) for state, row in transitions.items()}
    distance = {index.initial_state: 0}
    order = [index.initial_state]
    for state in order:  # the loop appends to it
        for target in targets[state]:
            if target not in distance:
                distance[target] = distance[state] + 1
                order.append(target)
    depth = max(distance.values()) + 1
    layers = min(depth, _MAX_LAYERS)
    layer_of = {state: steps * layers // depth for state, steps in distance.items()}
    finals = index.final_states
    num_states, num_transitions = index.num_states, index.num_transitions
    size = f"{_counted(num_states, 'state')}, {_counted(num_transitions, 'transition')}"
    lines = [
        f'  label="{size}, by the number of tokens from the start";',
        '  fontname="Helvetica";',
        "  node [shape=box];",
        "  start -> 0;",
    ]
    for layer in range(layers):
        states = [state for state in order if layer_of[state] == layer]
        steps = sorted({distance[state] for state in states})
        span = str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
        ends = sum(state in finals for state in states)
        ending = f"\\n{ends:,} final" if ends else ""
        shape = ", peripheries=2" if ends else ""
        counted = "token" if steps == [1] else "tokens"
        held = _counted(len(states), "state")
        lines.append(f'  {layer} [label="{span} {counted}\\n{held}{ending}"{shape}];')
    arrows: Counter[tuple[int, int]] = Counter()
    for state, counts in targets.items():
        for target, count in counts.items():
            arrows[layer_of[state], layer_of[target]] += count
    for (source, target), count in sorted(arrows.items()):
        lines.append(f'  {source} -> {target} [label="{count:,}"];')
    return lines


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
