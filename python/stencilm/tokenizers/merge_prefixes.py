"""A tokenizer.json that ends the process, refused before the tokenizers library reads it.

One idea: a BPE model may say by which prefix pieces within a word are written
(`continuing_subword_prefix`), and the library cuts so many bytes off the second part of each merge,
whatever that part begins with. A cut within a character leaves what is no UTF-8; the library
cannot even say so, for the error's text is none either, and aborts. No handler sees that.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from stencilm.errors import TokenizerError

# What has no such prefix need not be parsed, and most files are large: a key that is not empty, or
# letters written as escapes, by which a key may be hidden.
_SUSPECT = re.compile(
    rb'"continuing_subword_prefix"\s*:\s*"[^"]|\\u00(?:5f|6[1-9a-f]|7[0-9a])', re.IGNORECASE
)


def check_tokenizer_file(file: Path) -> None:
    """Refuses a tokenizer.json by which the tokenizers library would abort the process.

    What cannot be read is left to the library, which says what is wrong with it.

    Raises:
        TokenizerError: A merge of it is cut within a character.
    """
    try:
        text = file.read_bytes()
    except OSError:
        return
    check_tokenizer_text(text, place=str(file))


def check_tokenizer_text(text: bytes, *, place: str | None = None) -> None:
    """The same of the text of a tokenizer.json, in UTF-8.

    Raises:
        TokenizerError: A merge of it is cut within a character.
    """
    if not _SUSPECT.search(text):
        return
    prefixes: list[str] = []
    merges: list[Any] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        # Wherever they stand, and however often: which of them count is the library's to say.
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
            # What goes on within a character begins with the bits 10.
            if second[length : length + 1] and second[length] & 0xC0 == 0x80:
                raise TokenizerError(
                    f"its continuing_subword_prefix {prefix[:40]!r} takes {length} bytes off "
                    f"{parts[1][:40]!r}, the second part of a merge, and so cuts a character, by "
                    "which the tokenizers library ends the process; mend or fetch the file again",
                    place=place,
                )
