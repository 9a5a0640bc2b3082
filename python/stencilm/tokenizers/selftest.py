"""The test of a vocabulary when loaded: every token spells what the tokenizer itself decodes.

All tokens are decoded in one call, each between two copies of a plain ASCII token. This separator
prevents partial characters from joining, and leading spaces from being stripped; so equal texts
mean that every token agrees. Then texts of many kinds must survive `encode` and decoding.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stencilm.errors import TokenizerError
from stencilm.tokenizers.source import Codec, Source, encode_with

Decode = Callable[[Sequence[int]], str]

# The first is a plain word: no normaliser explains a failure to restore it.
SAMPLES: dict[str, str] = {
    "a plain word": "hello",
    "upper case": "Hello World",
    "JSON": '{"name": "Ada", "tags": ["x", "y"], "n": -12.5e+3, "ok": true, "none": null}',
    "several blanks": "a  b   c    d        e",
    "newlines": "a\nb\n\nc\r\nd\n\n\n    e",
    "tabs": "a\tb\t\tc",
    "outer blanks": "  a ",
    "punctuation": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ don't , . !",
    "accents": "café naïve Zoë Ünïcödé",
    "combining marks": "cafe\u0301 a\u030a\u0323",
    "CJK": "漢字かな交じり文、한국어。中文",
    "emoji": "🙂 👩\u200d👩\u200d👧 🇫🇷",
    "right to left": "שלום مرحبا",
    "control characters": "\x01\x02\x1b[0m\x7f\x00",
    "wide blanks": "a\u00a0b\u2003c\u3000d",
}
WRAPPER_SAMPLE = 512


@dataclass(frozen=True)
class Findings:
    """The results of encoding and decoding samples.

    Attributes:
        adds_prefix_space: Encoded texts begin with a space that was not there.
        lossy: Names of the samples that are not restored.
    """

    adds_prefix_space: bool = False
    lossy: tuple[str, ...] = ()


def choose(sources: Sequence[Source]) -> tuple[Source, Findings]:
    """The first way to read a tokenizer that passes the test, with the results of the test.

    Raises:
        TokenizerError: None passes; says why each of them failed.
    """
    refusals = []
    for source in sources:
        try:
            return source, examine(source)
        except TokenizerError as error:
            refusals.append(error)
    if len(refusals) == 1:
        raise refusals[0]
    reasons = "; ".join(
        f"{source.spelling.describe()}: {error}"
        for source, error in zip(sources, refusals, strict=True)
    )
    raise TokenizerError(f"{sources[0].label} fits no known way of writing tokens ({reasons})")


def examine(source: Source) -> Findings:
    """Compare a source with its own tokenizer.

    Raises:
        TokenizerError: A token decodes to something else than the bytes it was read as, or an
            encoded text is decoded to something that no normaliser explains.
    """
    if not any(source.tokens):
        raise TokenizerError(
            f"{source.label} has no token that spells text; load a tokenizer that was trained"
        )
    if source.codec is None:
        return Findings()
    separator = _separator(source.tokens)
    text_ids = [token_id for token_id, token in enumerate(source.tokens) if token]
    _agree(source, source.codec.decode, text_ids, separator)
    _agree_on_characters(source, source.codec.decode, separator)
    if source.wrapper_decode is not None:
        step = max(1, len(text_ids) // WRAPPER_SAMPLE)
        _agree(source, source.wrapper_decode, text_ids[::step], separator)
    return _round_trips(source, source.codec, separator)


def _separator(tokens: Sequence[bytes | None]) -> int | None:
    """A short plain word, or a letter; a byte token would join the invalid bytes beside it."""
    words = [
        (len(token) == 1, len(token), token_id)
        for token_id, token in enumerate(tokens)
        if token and len(token) <= 3 and token.strip(b" ").isalnum()
    ]
    return min(words)[-1] if words else None


def _agree(source: Source, decode: Decode, ids: Sequence[int], separator: int | None) -> None:
    if _decodes_to_bytes(source, decode, ids, separator):
        return
    # Bisect to the first wrong token: the whole disagrees, so one of the halves does.
    low, high = 0, len(ids)
    while high - low > 1:
        middle = (low + high) // 2
        if _decodes_to_bytes(source, decode, ids[low:middle], separator):
            low = middle
        else:
            high = middle
    wrong = ids[low]
    shown = decode([wrong] if separator is None else [separator, wrong, separator])
    around = "" if separator is None else f" between two {source.tokens[separator]!r}"
    raise TokenizerError(
        f"{source.label} decodes this token{around} to {shown[:60]!r}, but its vocabulary spells "
        f"{source.tokens[wrong]!r}; such a tokenizer does not join the texts of its tokens, so "
        "masks would lie: give the "
        "bytes of its tokens to TokenizerInfo(...) if you know them",
        place=f"token {wrong}",
    )


def _decodes_to_bytes(
    source: Source, decode: Decode, ids: Sequence[int], separator: int | None
) -> bool:
    tokens = source.tokens
    if separator is None:
        # Without a separator, decode the tokens one by one; a sample must suffice.
        step = max(1, len(ids) // WRAPPER_SAMPLE)
        return all(
            _same_text(tokens[token_id] or b"", decode([token_id])) for token_id in ids[::step]
        )
    between = [separator] * (2 * len(ids) + 1)
    between[1::2] = ids
    expected = b"".join([tokens[token_id] or b"" for token_id in between])
    return _same_text(expected, decode(between))


def _same_text(expected: bytes, decoded: str) -> bool:
    """Equal, except for the display of invalid characters and for one leading space."""
    text = expected.decode("utf-8", "replace")
    if text == decoded:
        return True
    text = expected.decode("utf-8", "ignore").replace("\ufffd", "")
    decoded = decoded.replace("\ufffd", "")
    return text == decoded or text == " " + decoded


def _agree_on_characters(source: Source, decode: Decode, separator: int | None) -> None:
    """Bytes above 127 do not decode alone, so they are tested as parts of characters."""
    single = {
        token[0]: token_id
        for token_id, token in enumerate(source.tokens)
        if token and len(token) == 1
    }
    for text in _characters_of_all_bytes():
        encoded = text.encode()
        if not all(byte in single for byte in encoded):
            continue
        ids = [single[byte] for byte in encoded]
        expected = encoded
        if separator is not None:
            ids = [separator, *ids, separator]
            edge = source.tokens[separator] or b""
            expected = edge + encoded + edge
        decoded = decode(ids)
        if not _same_text(expected, decoded):
            raise TokenizerError(
                f"{source.label} decodes the byte tokens {ids} of {text!r} to {decoded!r}, so its "
                "byte tokens do not "
                "spell bytes; give the bytes of its tokens to TokenizerInfo(...) if you know them",
                place=f"token {ids[0]}",
            )


def _characters_of_all_bytes() -> Iterator[str]:
    """Characters that together contain each lead byte and each continuation byte of UTF-8."""
    yield from (bytes([lead, 0x80 + lead % 0x40]).decode() for lead in range(0xC2, 0xE0))
    yield from (bytes([0xC3, trail]).decode() for trail in range(0x80, 0xC0))
    # 0xA0 as second byte avoids overlong forms; after 0xED it would form a surrogate, so 0xED takes
    # 0x80.
    yield from (
        bytes([lead, 0x80 if lead == 0xED else 0xA0, 0x80]).decode() for lead in range(0xE0, 0xF0)
    )
    yield from (
        bytes([lead, 0x80 if lead == 0xF4 else 0x90, 0x80, 0x80]).decode()
        for lead in range(0xF0, 0xF5)
    )


def _round_trips(source: Source, codec: Codec, separator: int | None) -> Findings:
    prefixed = False
    lossy = []
    for name, text in SAMPLES.items():
        try:
            ids = encode_with(codec, text)
        except TokenizerError:
            lossy.append(name)
            continue
        spelled = [
            source.tokens[token_id] if 0 <= token_id < len(source.tokens) else None
            for token_id in ids
        ]
        if None in spelled:
            lossy.append(name)  # an unknown token: the vocabulary lacks a character
            continue
        joined = b"".join(token for token in spelled if token)
        if separator is not None:
            _agree_together(source, codec.decode, ids, separator)
        if joined == b" " + text.encode():
            prefixed = True
            continue
        if joined == text.encode():
            continue
        _explain(source, text, ids, joined)
        lossy.append(name)
        prefixed = prefixed or (joined[:1] == b" " and text[0] != " ")
    return Findings(adds_prefix_space=prefixed, lossy=tuple(lossy))


def _agree_together(source: Source, decode: Decode, ids: Sequence[int], separator: int) -> None:
    """Tokens must also agree side by side: some decoders change spaces between neighbours."""
    framed = [separator, *ids, separator]
    expected = b"".join([source.tokens[token_id] or b"" for token_id in framed])
    decoded = decode(framed)
    if not _same_text(expected, decoded):
        raise TokenizerError(
            f"{source.label} decodes the tokens {framed[:12]} to {decoded!r}, but one by one they "
            "spell "
            f"{expected.decode('utf-8', 'replace')!r}; such a tokenizer does not join the texts of "
            "its tokens, so masks "
            "would lie: switch its clean-up of blanks off"
        )


def _explain(source: Source, text: str, ids: Sequence[int], joined: bytes) -> None:
    """Normalise what encoders lose: case, whitespace, marks, controls, forms, unknown letters."""
    spelled = joined.decode("utf-8", "replace")
    left = iter(_folded(text))
    if all(char in left for char in _folded(spelled)):  # a subsequence: some may be dropped
        return
    raise TokenizerError(
        f"{source.label} encodes {text!r} as {list(ids)[:12]}, whose tokens spell {spelled!r}; the "
        "bytes of its tokens are not what it means by them, so give them to TokenizerInfo(...) if "
        "you know them"
    )


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in decomposed if unicodedata.category(char)[0] in "LNPS")
