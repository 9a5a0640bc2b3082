"""A finding as a short program that replays it with one engine alone.

One idea: a mask depends on the bytes of tokens. So the 256 bytes and the tokens of the finding are
a sufficient vocabulary, and the program needs no tokenizer. If the fault only shows with all tokens
of the tokenizer, the program loads it.

The program defines `SCHEMA`, `TOKENS` (the bytes of each token), `STOP` (the id of the stop token),
`PREFIX` and `TOKEN`. The engine's `script` makes a matcher from them, writes the prefix, and leaves
its mask as a list of words in `MASK`.
"""

from __future__ import annotations

from typing import Any

from stencilm.audit.findings import Finding
from stencilm.views.characters import visible

_HEAD = '''"""{title}"""
SCHEMA = {schema!r}
{tokens}
PREFIX, TOKEN = {prefix}, {token}  # {shown}'''
_TAIL = """\
allowed = bool(MASK[TOKEN // 32] >> TOKEN % 32 & 1)
print("allowed:", allowed, "- any token allowed:", any(MASK))"""
_OF_ADAPTER = """
from stencilm import TokenizerInfo
from stencilm.audit import find_engine
engine = find_engine({engine!r})({tokenizer})
matcher = engine.start(engine.compile(SCHEMA))
print([engine.accept(matcher, token) for token in PREFIX])
MASK = engine.mask(matcher).tolist()
"""
_OF_TOKENIZER = """\
from stencilm import TokenizerInfo
tokenizer = {load}
TOKENS, STOP = tokenizer.decoded_vocab, tokenizer.stop_token_ids[0]"""
BYTES = [bytes([byte]) for byte in range(256)]


class Small:
    """The tokens of a finding as a vocabulary: the 256 bytes, then the longer ones."""

    def __init__(self, texts: list[bytes]) -> None:
        self.longer = list(dict.fromkeys(text for text in texts if len(text) > 1))
        self.tokens = [*BYTES, *self.longer, b"<stop>"]
        self.stop = len(self.tokens) - 1

    def id_of(self, text: bytes | None) -> int:
        """The id of a text; the stop token for None."""
        if text is None:
            return self.stop
        return text[0] if len(text) == 1 else 256 + self.longer.index(text)


def replayed(finding: Finding, prefix: list[int], token: int, stop: int) -> tuple[list[int], int]:
    """The tokens to write, and the token to look up in the mask after them.

    A dead end, and a token that is refused although the mask allows it, only show after that token
    is written.
    """
    if finding.kind in ("dead end", "broken mask"):
        return [*prefix, token], stop
    return prefix, token


def script(
    finding: Finding,
    schema: str,
    engine: Any,
    *,
    small: Small,
    texts: list[bytes | None],
    tokenizer: str | None = None,
    stop: int = 0,
) -> str:
    """The program; `texts` are those of the prefix and the token, None for the stop token.

    With `tokenizer`, a file, a folder or "tiny", the program loads that tokenizer.
    """
    if tokenizer is None:
        ids, last = small.stop, [small.id_of(text) for text in texts]
        longer = ", ".join(map(repr, [*small.longer, b"<stop>"]))
        tokens = f"TOKENS = [bytes([byte]) for byte in range(256)] + [{longer}]\nSTOP = {ids}"
        prefix, token = replayed(finding, last[:-1], last[-1], small.stop)
    else:
        load = (
            "__import__('stencilm.tokenizers.embedded').tokenizers.embedded.embedded_tokenizer()"
            if tokenizer == "tiny"
            else f"TokenizerInfo.from_file({tokenizer!r})"
        )
        tokens = _OF_TOKENIZER.format(load=load)
        prefix, token = replayed(finding, list(finding.prefix), finding.token, stop)
    title = f"{finding.engine}, {finding.kind}: {visible(finding.why, keep='')}"
    title = title.replace("\\", "\\\\")
    head = _HEAD.format(
        title=title.replace('"""', "'''").rstrip('"'),
        schema=schema,
        tokens=tokens,
        prefix=prefix,
        token=token,
        shown=f"{finding.text!r}, then {finding.token_text!r}",
    )
    # A script inherited from a base class would replay the base class's engine.
    body = vars(engine).get("script") or _OF_ADAPTER.format(
        engine=finding.engine,
        tokenizer="tokenizer" if tokenizer else "TokenizerInfo(TOKENS, stop_token_ids=[STOP])",
    )
    return f"{head}{body}{_TAIL}\n"
