"""Structural tags by their definition: where each format may end, found by looking at each place.

Texts are strings with a character for every byte, and one above them for every special token. A
recogniser knows nothing of grammars, and is far too slow for anything but tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Format = Mapping[str, Any]
Ends = list[Any] | None

MARKER = re.compile(r"<\|\w+\|>|</?\w+>|\[\w+\]")
SPECIAL = 0x1000


class Recogniser:
    """Reads texts by one format, over a vocabulary with these special tokens by their names."""

    def __init__(self, tag: Format, special: Mapping[str, int]) -> None:
        self.tag = tag
        self.special = special
        self.names = {token: name for name, token in special.items()}
        self.text = ""
        self.tokens: dict[int, tuple[int, int]] = {}
        self.known: dict[Any, set[int]] = {}
        self.lists: dict[int, list[Any]] = {}

    def accepts(self, tokens: Iterable[tuple[int, str]]) -> bool:
        """Whether tokens, each with its characters, are a whole text."""
        self.text, self.tokens, self.known = "", {}, {}
        for token, characters in tokens:
            start = len(self.text)
            self.text += characters
            self.tokens[start] = (len(self.text), token)
        return len(self.text) in self.ended(self.tag, 0, None)

    def spellings(self, text: str) -> list[str]:
        """A text with each marker as text or as the special token of its name."""
        found, done = [""], 0
        for match in MARKER.finditer(text):
            ways = [in_bytes(match[0])]
            if match[0] in self.special:
                ways.append(chr(SPECIAL + self.special[match[0]]))
            plain = in_bytes(text[done : match.start()])
            found = [begun + plain + way for begun in found for way in ways]
            done = match.end()
        return [begun + in_bytes(text[done:]) for begun in found]

    def after(self, text: str, at: int) -> set[int]:
        return {at + len(way) for way in self.spellings(text) if self.text.startswith(way, at)}

    def token(self, token: int | str, at: int) -> set[int]:
        end, found = self.tokens.get(at, (0, None))
        wanted = self.special[token] if isinstance(token, str) else token
        return {end} if found == wanted else set()

    def marker(self, marker: Any, at: int) -> set[int]:
        if not isinstance(marker, dict):
            return self.after(marker, at)
        return self.read(marker, at, None)

    def end_list(self, tag: Format) -> list[Any]:
        ends = tag["end"]
        return self.lists.setdefault(id(tag), ends if isinstance(ends, list) else [ends])

    def closed(self, ends: Ends, at: int) -> set[int]:
        return {at} if ends is None else {end for mark in ends for end in self.marker(mark, at)}

    def ended(self, tag: Format, at: int, ends: Ends) -> set[int]:
        """Where a format ends that stands last before the ends of the tag around it."""
        kind = tag.get("type", "tag")
        if kind in ("any_text", "triggered_tags", "dispatch"):
            return self.free(tag, at, ends, True)
        if kind == "sequence":
            *first, last = tag["elements"]
            places = self.through(first, at, ends)
            return {end for place in places for end in self.ended(last, place, ends)}
        if kind == "or":
            return {end for way in tag["elements"] for end in self.ended(way, at, ends)}
        return {end for place in self.read(tag, at, ends) for end in self.closed(ends, place)}

    def through(self, elements: Iterable[Format], at: int, ends: Ends) -> set[int]:
        places = {at}
        for element in elements:
            places = {end for place in places for end in self.read(element, place, ends)}
        return places

    def read(self, tag: Format, at: int, ends: Ends) -> set[int]:
        """Where a format ends, with the ends of the tag around it, which do not come in text."""
        key = (id(tag), at, id(ends))
        if key not in self.known:
            self.known[key] = self.read_anew(tag, at, ends)
        return self.known[key]

    def read_anew(self, tag: Format, at: int, ends: Ends) -> set[int]:
        kind = tag.get("type", "tag")
        match kind:
            case "const_string":
                return self.after(tag["value"], at)
            case "regex" | "grammar":
                # A grammar of these tests has one rule of one pattern.
                pattern = tag["pattern"] if kind == "regex" else tag["grammar"].split("/")[1]
                pieces = (
                    (end, in_text(self.text[at:end])) for end in range(at, len(self.text) + 1)
                )
                return {
                    end
                    for end, piece in pieces
                    if piece is not None and re.fullmatch(pattern, piece)
                }
            case "any_text" | "triggered_tags" | "dispatch":
                return self.free(tag, at, ends, False)
            case "sequence":
                return self.through(tag["elements"], at, ends)
            case "or":
                return {end for way in tag["elements"] for end in self.read(way, at, ends)}
            case "optional" | "star" | "plus":
                least, most = {"optional": (0, 1), "star": (0, None), "plus": (1, None)}[kind]
                return rounds(at, lambda place: self.read(tag["content"], place, ends), least, most)
            case "tag":
                own = self.end_list(tag)
                starts = self.marker(tag["begin"], at)
                return {end for start in starts for end in self.ended(tag["content"], start, own)}
            case "tags_with_separator":
                first = self.any_of(tag["tags"], at)
                found = first if tag.get("at_least_one") else {at} | first
                if tag.get("stop_after_first"):
                    return found

                def another(place: int) -> set[int]:
                    starts = self.after(tag["separator"], place)
                    return {end for start in starts for end in self.any_of(tag["tags"], start)}

                return found | {end for place in first for end in rounds(place, another, 0, None)}
            case "token":
                return self.token(tag["token"], at)
            case "exclude_token":
                return self.others(tag.get("exclude_tokens", []), ends)(at)
            case "any_tokens":
                return rounds(at, self.others(tag.get("exclude_tokens", []), ends), 0, None)
        raise AssertionError(kind)

    def any_of(self, tags: Iterable[Format], at: int) -> set[int]:
        return {end for tag in tags for end in self.read(tag, at, None)}

    def others(self, excluded: list[Any], ends: Ends) -> Callable[[int], set[int]]:
        """One token but these, and those that end the tag around."""
        refs = [*excluded, *(mark["token"] for mark in ends or () if isinstance(mark, dict))]
        left_out = {self.special[ref] if isinstance(ref, str) else ref for ref in refs}

        def step(place: int) -> set[int]:
            end, token = self.tokens.get(place, (0, None))
            return set() if token is None or token in left_out else {end}

        return step

    def segment(
        self, at: int, stops: list[str], excludes: list[str], most: int | None
    ) -> tuple[set[int], list[tuple[str, int]]]:
        """Where text may end that nothing ends, and where what ends it is complete."""
        ways = [(stop, way) for stop in stops for way in self.spellings(stop)]
        complete, forbidden = list(map(in_bytes, stops)), list(map(in_bytes, excludes))
        unended: set[int] = set()
        ended: list[tuple[str, int]] = []
        for end in range(at, len(self.text) + 1):
            piece = self.text[at:end]
            # A special token counts as its text.
            spelled = "".join(
                one if ord(one) < 256 else self.names.get(ord(one) - SPECIAL, "") for one in piece
            )
            if any(stop in spelled[:-1] for stop in complete):
                break
            # What is excluded must not begin in the text; it may stand within what ends the text.
            begun = [spelled.find(excluded) for excluded in forbidden if excluded in spelled]
            first = min(begun, default=len(spelled))
            for stop, way in ways:
                if first < len(spelled) - len(in_bytes(stop)):
                    continue
                text = in_text(piece[: len(piece) - len(way)]) if piece.endswith(way) else None
                if text is not None and (most is None or len(text) <= most):
                    ended.append((stop, end))
            text = in_text(piece)
            if begun or text is None or (most is not None and len(text) > most):
                continue
            if not any(spelled.endswith(stop) for stop in complete):
                unended.add(end)
        return unended, ended

    def free(self, tag: Format, at: int, ends: Ends, last: bool) -> set[int]:
        """Text up to triggers or patterns and what they lead to, and so on."""
        kind = tag["type"]
        texts = [mark for mark in ends or () if isinstance(mark, str) and mark]
        triggers: list[str] = list(tag.get("triggers", ()))
        triggers += [pattern for pattern, _ in tag.get("rules", ())]
        excludes = list(tag.get("excludes", ()))
        if last:
            excludes, stops = [one for one in excludes if one not in texts], triggers + texts
        else:
            excludes, stops = excludes + texts, triggers

        def closed(place: int) -> set[int]:
            return self.closed(ends, place) if last else {place}

        def behind(trigger: str, place: int) -> set[int]:
            found: set[int] = set()
            for pattern, content in tag.get("rules", ()):
                if pattern == trigger:
                    found |= self.read(content, place, ends)
            for one in tag.get("tags", ()):
                if one["begin"].startswith(trigger):
                    for start in self.after(one["begin"][len(trigger) :], place):
                        found |= self.ended(one["content"], start, self.end_list(one))
            return found

        once = tag.get("stop_after_first", not tag.get("loop", True))
        places = {at}
        if tag.get("at_least_one"):
            places = {
                end
                for one in tag["tags"]
                for start in self.after(one["begin"], at)
                for end in self.ended(one["content"], start, self.end_list(one))
            }
            if once:
                return {end for place in places for end in closed(place)}
        found: set[int] = set()
        seen: set[int] = set()
        while places:
            place = places.pop()
            seen.add(place)
            most = tag.get("max_chars") if kind == "any_text" else None
            unended, ended = self.segment(place, stops, excludes, most)
            if not last or ends is None:
                found |= unended
            else:
                found |= {end for stop, end in ended if stop in texts}
                for mark in ends:
                    if not isinstance(mark, str) or not mark:
                        found |= {end for place in unended for end in self.marker(mark, place)}
            for stop, end in ended:
                if stop in triggers:
                    onward = behind(stop, end)
                    if once:
                        found |= {last for place in onward for last in closed(place)}
                    else:
                        places |= onward - seen
        return found


def in_bytes(text: str) -> str:
    return text.encode().decode("latin-1")


def in_text(piece: str) -> str | None:
    """The text of characters that are bytes; None for special tokens and what is no UTF-8."""
    try:
        return piece.encode("latin-1").decode()
    except UnicodeError:
        return None


def rounds(at: int, step: Callable[[int], set[int]], least: int, most: int | None) -> set[int]:
    """Where so many rounds may end; one that is empty counts as any number of them."""
    found: set[int] = set()
    places, count = {at}, 0
    while places and (most is None or count <= most):
        if count >= least:
            if places <= found:
                break
            found |= places
        places = {end for place in places for end in step(place)}
        count += 1
    return found
