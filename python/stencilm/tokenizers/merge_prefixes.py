"""Refuse a tokenizer.json on which the tokenizers library would abort the process.

One idea: a BPE model may name a prefix of pieces within a word (`continuing_subword_prefix`). The
library cuts that many bytes off the second part of each merge, whatever it begins with. A cut
within a character leaves invalid UTF-8. The library aborts, because the text of the error itself
would be invalid, and no handler can catch that.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from stencilm.errors import TokenizerError

# A file without such a prefix need not be parsed, and most files are large. So look for a nonempty
# value, or for escaped letters, which may hide the key.
_SUSPECT = re.compile(
    rb'"continuing_subword_prefix"\s*:\s*"[^"]|\\u00(?:5f|6[1-9a-f]|7[0-9a])', re.IGNORECASE
)


def check_tokenizer_file(file: Path) -> None:
    """Refuse a tokenizer.json on which the tokenizers library would abort the process.

    A file that cannot be read is left to the library, which reports what is wrong.

    Raises:
        TokenizerError: One of its merges would be cut within a character.
    """
    try:
        text = file.read_bytes()
    except OSError:
        return
    check_tokenizer_text(text, place=str(file))


def check_tokenizer_text(text: bytes, *, place: str | None = None) -> None:
    """Refuse the UTF-8 text of such a tokenizer.json.

    Raises:
        TokenizerError: One of its merges would be cut within a character.
    """
    if not _SUSPECT.search(text):
        return
    prefixes: list[str] = []
    merges: list[Any] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        # Wherever the keys are and however often they occur; the library decides which of them
        # count.
        for key, value in pairs:
            if key == "continuing_subword_prefix" and isinstance(value, str):
                prefixes.append(value)
            elif key == "merges" and isinstance(value, list):
                merges.extend(value)

    try:
        json.loads(text, object_pairs_hook=note)
    except (ValueError, RecursionError, MemoryError):
        return
    for prefix in dict.fromkeys(prefixes):
        length = len(prefix.encode("utf-8", "surrogatepass"))
        for merge in merges:
            parts = merge.split(" ") if isinstance(merge, str) else merge
            if not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[1], str):
                continue
            second = parts[1].encode("utf-8", "surrogatepass")
            # Continuation bytes of a character begin with the bits 10.
            if second[length : length + 1] and second[length] & 0xC0 == 0x80:
                raise TokenizerError(
                    f"its continuing_subword_prefix {prefix[:40]!r} takes {length} bytes off "
                    f"{parts[1][:40]!r}, the second part of a merge, and so cuts a character, by "
                    "which the tokenizers library ends the process; mend or fetch the file again",
                    place=place,
                )
