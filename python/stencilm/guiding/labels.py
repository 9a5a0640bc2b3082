"""Options as a question lists them, each with a label, and the option that an answer names.

One idea: an answer must never mean two options. Labels are numbers if no option has a digit, else
letters that no option has. If there are too few letters, options have no labels, and the answer is
the text of an option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from stencilm.whole_numbers import written_number

_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*")
_FIRST_NUMBER = re.compile(r"""[\s*#("'`]*(\d+)[\s.):*"'`]*(?=[^\W\d]|$)""")
# A capital by itself may be a word, as in `A bus`, so it must be followed by an end.
_FIRST_LETTER = re.compile(r"""[\s*#("'`\[]*([A-Z])(?=\s*$|[.):*"'`\]])[\s.):*"'`\]]*""")
_LAST_LETTER = re.compile(r"""(?<!\S)[*("'`\[]*([A-Z])[.)*"'`\]]*\s*$""")
_LETTER = re.compile(r"(?<!\w)[A-Z](?!\w)")
_AROUND = "\"'`."


class Labels:
    """The labels of some options.

    Attributes:
        kind: The requested form of an answer: "number", "letter" or "text".
        names: The label of each option; empty if they have none.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self.options = tuple(options)
        text = "".join(options)
        self.kind, self.names = "number", [str(n) for n in range(1, len(options) + 1)]
        if any(character.isdigit() for character in text):
            # `I` is a word in answers that are sentences.
            letters = [letter for letter in ascii_uppercase if letter not in text and letter != "I"]
            is_enough = len(letters) >= len(options)
            self.kind, self.names = ("letter", letters) if is_enough else ("text", [])

    def question(self, wish: str) -> str:
        """The options, one per line, between an introduction and the required form of answer."""
        if not self.names:
            listed = "\n".join(self.options)
            return f"{wish}\n{listed}\nAnswer with one of these texts only"
        lines = zip(self.names, self.options, strict=False)
        listed = "\n".join(f"{name}. {option}" for name, option in lines)
        return f"{wish}\n{listed}\nAnswer with the {self.kind} only"

    def picked(self, answer: str, *, is_cut: bool = False) -> str | None:
        """The option that an answer names by its label or its text; None if it names none.

        An answer that names one option by label and another by text names none. Of several labels,
        as in an answer that weighs the options, only one at the beginning counts. An answer that a
        limit cut may be the beginning of any longer option.
        """
        written = self._written(answer)
        begun = answer.strip()
        if is_cut and any(one.startswith(begun) and one != begun for one in self.options):
            return None
        if written is not None or self.kind == "text":
            return written
        label, rest = self._number(answer) if self.kind == "number" else self._letter(answer)
        if label not in self.names[: len(self.options)]:
            return None
        option = self.options[self.names.index(label)]
        return option if self._written(rest) in (None, option) else None

    def _written(self, text: str) -> str | None:
        """The option that a text is."""
        if text in self.options:
            return text
        stripped = text.strip().strip(_AROUND)
        same = (one for one in self.options if one.strip() in (text.strip(), stripped))
        return next(same, None) if stripped else None

    def _number(self, answer: str) -> tuple[str, str]:
        begins = _FIRST_NUMBER.match(answer)
        numbers = {begins[1]} if begins else set(_NUMBER.findall(answer))
        number = written_number(numbers.pop()) if len(numbers) == 1 else None
        return str(number), answer[begins.end() :] if begins else ""

    def _letter(self, answer: str) -> tuple[str, str]:
        begins = _FIRST_LETTER.match(answer)
        if begins is not None:
            return begins[1], answer[begins.end() :]
        ends = _LAST_LETTER.search(answer)
        others = set(_LETTER.findall(answer)) & set(self.names)
        return (ends[1] if ends and others == {ends[1]} else ""), ""
