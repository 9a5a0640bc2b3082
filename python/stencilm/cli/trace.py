"""`stencilm trace`: how a text goes through a grammar, token by token."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from stencilm.cli.grammars import EMBEDDED, new_compiler, read_tokenizer
from stencilm.cli.inputs import read_prompt
from stencilm.cli.notations import GivenGrammar, takes_grammar
from stencilm.cli.options import Tokenizer
from stencilm.views.characters import json_text, visible

_COLOURS = {"sampled": "green", "forced": "blue", "refused": "red"}


@dataclass(frozen=True)
class Step:
    """One token of the text.

    Attributes:
        kind: "sampled": the model would choose it; "forced": nothing else can come; "refused".
        token_id: The token.
        text: What it spells.
        allowed: How many tokens may come there; None if it is forced.
        reason: Why it is refused, else None.
    """

    kind: str
    token_id: int
    text: str
    allowed: int | None
    reason: str | None


@takes_grammar
def trace(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text, or - for standard input.")],
    grammar: GivenGrammar,
    tokenizer: Tokenizer = EMBEDDED,
    as_json: Annotated[bool, typer.Option("--json", help="Print the steps as JSON.")] = False,
    color: Annotated[
        bool | None,
        typer.Option("--color/--no-color", help="Use colours; by default on a terminal."),
    ] = None,
) -> int:
    """Say for each token of a text whether a model would sample it, or it is forced or refused.

    Exits with 1 if the text does not fit, or is only the beginning of one that does.
    """
    written = read_prompt(text)
    info = read_tokenizer(tokenizer)
    from stencilm.matching.matcher import GrammarMatcher

    compiler = new_compiler(info, grammar.limits, cache_enabled=False)
    compiled = compiler.compile_grammar(grammar.grammar())
    matcher = GrammarMatcher(compiled, terminate_without_stop_token=not info.stop_token_ids)
    steps = list(_steps(matcher, info, info.tokenize_bytes(written.encode())))
    refused = bool(steps) and steps[-1].kind == "refused"
    status = "refused" if refused else "complete" if matcher.is_completed() else "unfinished"
    if as_json:
        record = {"status": status, "steps": [asdict(step) for step in steps]}
        print(json_text(record))
    else:
        coloured = sys.stdout.isatty() if color is None else color
        for step in steps:
            print(_line(step, coloured))
        print(visible(_summary(status, steps, matcher)))
    return 0 if status == "complete" else 1


def _steps(matcher: Any, info: Any, token_ids: list[int]) -> Iterator[Step]:
    at = 0
    while at < len(token_ids):
        forced = matcher.find_jump_forward_tokens()
        if forced and token_ids[at : at + len(forced)] == forced:
            for token_id in forced:
                matcher.accept_token(token_id)
                yield Step("forced", token_id, info.dbg_tokens([token_id]), None, None)
            at += len(forced)
            continue
        token_id = token_ids[at]
        shown = info.dbg_tokens([token_id])
        allowed = 0 if matcher.is_terminated() else matcher.num_allowed_tokens()
        if not matcher.accept_token(token_id):
            yield Step("refused", token_id, shown, allowed, matcher.explain(token_id))
            return
        yield Step("sampled", token_id, shown, allowed, None)
        at += 1


def _line(step: Step, coloured: bool) -> str:
    kind = f"{step.kind:<8}"
    if coloured:
        kind = typer.style(kind, fg=_COLOURS[step.kind])
    shown = visible(step.reason or "", keep="") or (
        "" if step.allowed is None else f"of {step.allowed:,} allowed"
    )
    return f"{kind} {step.token_id:>7}  {step.text!r:<24} {shown}".rstrip()


def _summary(status: str, steps: list[Step], matcher: Any) -> str:
    forced = sum(step.kind == "forced" for step in steps)
    counted = f"{forced} of {len(steps)} tokens forced"
    if status == "complete":
        return f"complete; {counted}"
    if status == "unfinished":
        must = matcher.find_jump_forward_string()
        return f"unfinished{f': {must!r} must follow' if must else ''}; {counted}"
    return f"refused; {counted}"
