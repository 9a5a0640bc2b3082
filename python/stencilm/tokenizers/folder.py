"""Tokenizers on disk: a tokenizer.json, a tekken.json, a SentencePiece model, or a folder with one.

The settings next to it are those that transformers and vLLM read: which tokens are special, which
ones end a text, and how many logits the model has. transformers itself is not needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from stencilm.characters import check_characters
from stencilm.errors import TokenizerError
from stencilm.foreign import reported_as, said
from stencilm.shown import shown_value
from stencilm.tokenizers.fast import read_fast
from stencilm.tokenizers.merge_prefixes import check_tokenizer_file
from stencilm.tokenizers.sentencepiece_source import read_sentencepiece
from stencilm.tokenizers.source import MAX_VOCAB_SIZE, Source, ids_of
from stencilm.tokenizers.tekken_source import is_tekken, read_tekken

SENTENCEPIECE_NAMES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
_SPECIAL_ROLES = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)


def read_file(path: str | PathLike[str]) -> Source:
    """Read a source from a tokenizer.json, tekken.json, SentencePiece .model, or a folder of one.

    Raises:
        TokenizerError: Nothing there can be read as a tokenizer, or the settings contradict it.
    """
    if not isinstance(path, (str, PathLike)):
        raise TypeError(f"path is {shown_value(path):.60}, but must be a str or a Path")
    place = Path(path)
    file = _tokenizer_file(place)
    source = _read_json(file) if file.suffix == ".json" else _read_model(file)
    try:
        return _with_settings(source, file.parent)
    except TokenizerError as error:
        if error.place is not None:
            raise
        raise TokenizerError(error.message, place=str(file.parent)) from None


def _tokenizer_file(place: Path) -> Path:
    # A string that cannot be a path, such as the text of a file, is treated as a missing file.
    if os.path.isfile(place):
        return place
    if not os.path.isdir(place):
        raise TokenizerError(
            "there is no such file or folder; give a tokenizer.json or its folder",
            place=f"{place!s:.200}",
        )
    for name in ("tokenizer.json", "tekken.json", *SENTENCEPIECE_NAMES):
        if _is_there(place / name):
            return place / name
    # Mistral puts the version of its chat format after the name.
    for file in sorted(place.glob("tokenizer.model.v*"), reverse=True):
        return file
    held = ", ".join(sorted(child.name for child in place.iterdir())[:12]) or "nothing"
    raise TokenizerError(
        "the folder holds no tokenizer.json or tekken.json and no SentencePiece model, only "
        f"{held}; load it with "
        "transformers.AutoTokenizer and give that to from_huggingface",
        place=str(place),
    )


def _is_there(file: Path) -> bool:
    """Whether the file exists. Raises TokenizerError if the path exists but is not a file.

    A link into an incomplete download leads nowhere; ignoring it would lose settings, such as the
    tokens that end a text.
    """
    if file.is_file():
        return True
    if not os.path.lexists(file):
        return False
    what = "a folder or a device" if file.exists() else "a link to a file that is missing"
    raise TokenizerError(f"it is {what}; fetch the file again, or remove it", place=str(file))


def _read_json(file: Path) -> Source:
    if file.name.startswith("tekken"):
        return _read_tekken(file)
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise TokenizerError(
            "reading a tokenizer.json needs `pip install tokenizers`", place=str(file)
        ) from error
    check_tokenizer_file(file)
    try:
        with reported_as(lambda error: _unreadable(file, error)):
            tokenizer = Tokenizer.from_file(str(file))
    except TokenizerError:
        if is_tekken(_parsed(file)):
            return _read_tekken(file)
        raise
    return read_fast(tokenizer, label=f"the tokenizer in {file.name}", special={})


def _unreadable(file: Path, error: BaseException) -> TokenizerError:
    return TokenizerError(
        f"the tokenizers library cannot read it ({said(error)}); mend or fetch the file again",
        place=str(file),
    )


def _read_tekken(file: Path) -> Source:
    data = _parsed(file)
    if not is_tekken(data):
        raise TokenizerError(
            "it is no tekken.json as Mistral writes them: it lacks vocab or config; fetch the file "
            "again",
            place=str(file),
        )
    return read_tekken(data, label=f"the tokenizer in {file.name}", place=str(file))


def _parsed(file: Path) -> Any:
    """The JSON value in a file; None if it is not JSON."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, MemoryError):
        return None


def _read_model(file: Path) -> Source:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise TokenizerError(
            "reading a SentencePiece model needs `pip install sentencepiece`", place=str(file)
        ) from error
    with reported_as(
        lambda error: TokenizerError(
            f"sentencepiece cannot read it ({said(error)}); a .model of tiktoken ranks is read by "
            "from_tiktoken, a damaged one must be fetched again",
            place=str(file),
        )
    ):
        return read_sentencepiece(SentencePieceProcessor(model_file=str(file)))


def _with_settings(source: Source, folder: Path) -> Source:
    """The source with the special tokens, stop tokens and width that the settings name."""
    settings = _read_settings(folder / "special_tokens_map.json") | _read_settings(
        folder / "tokenizer_config.json"
    )
    generation = _read_settings(folder / "generation_config.json")
    model = _read_settings(folder / "config.json")
    special = dict(source.special)
    id_of = {name: token_id for token_id, name in source.special.items()}
    for token_id, name in _added_tokens(settings):
        if token_id >= len(source.tokens) or source.tokens[token_id] is None:
            # Only the settings know this token: the encoder never produces it, and it never spells
            # text.
            special.setdefault(token_id, name)
            id_of.setdefault(name, token_id)
    for token_id, name in _written_plainly(source, set(_special_names(settings)) - id_of.keys()):
        special.setdefault(token_id, name)
        id_of.setdefault(name, token_id)
    end = _name_of(settings.get("eos_token"))
    if end is not None and end not in id_of:
        raise TokenizerError(
            f"the settings name the eos_token {end!r}, which the vocabulary lacks; mend "
            "tokenizer_config.json",
            place=str(folder),
        )
    declared = generation.get("eos_token_id", model.get("eos_token_id"))
    file = "generation_config.json" if "eos_token_id" in generation else "config.json"
    own = (*source.stop, *(() if end is None else (id_of[end],)))
    stop = (*own, *ids_of(declared, what=f"{file}: eos_token_id"))
    tokens = [None if i in special else token for i, token in enumerate(source.tokens)]
    tokens += [None] * (max(special, default=-1) + 1 - len(tokens))
    return replace(
        source,
        tokens=tokens,
        special=special,
        stop=tuple(dict.fromkeys(stop)),
        cleans_up_spaces=settings.get("clean_up_tokenization_spaces") is True,
        width=_width(model),
        stop_file=file,
        own_stop=own,
    )


def _read_settings(file: Path) -> dict[str, Any]:
    if not _is_there(file):
        return {}
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise TokenizerError(
            f"it is no JSON ({error}); mend or remove it", place=str(file)
        ) from error
    if not isinstance(settings, dict):
        raise TokenizerError("it holds no JSON object; mend or remove it", place=str(file))
    return settings


def _added_tokens(settings: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Tokens that the settings declare, by id."""
    added = settings.get("added_tokens_decoder")
    for key, token in added.items() if isinstance(added, dict) else ():
        name = _name_of(token)
        if name is None or not key.isdecimal():
            continue
        if len(key) > 9 or int(key) >= MAX_VOCAB_SIZE:
            raise TokenizerError(
                f"the settings give {name!r} the id {key[:20]}, but ids end at "
                f"{MAX_VOCAB_SIZE - 1}; mend added_tokens_decoder"
            )
        yield int(key), name


def _special_names(settings: dict[str, Any]) -> Iterator[str]:
    values = [settings.get(role) for role in _SPECIAL_ROLES]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        extra = settings.get(key)
        if isinstance(extra, dict):
            values.extend(extra.values())
        elif isinstance(extra, list):
            values.extend(extra)
    added = settings.get("added_tokens_decoder")
    if isinstance(added, dict):
        values.extend(
            token
            for token in added.values()
            if isinstance(token, dict) and token.get("special") is True
        )
    yield from (name for name in map(_name_of, values) if name is not None)


def _name_of(value: object) -> str | None:
    if isinstance(value, dict):
        value = value.get("content")
    if not isinstance(value, str) or not value:
        return None
    try:
        check_characters(value, f"the token {value[:40]!r} of the settings", "no text spells")
    except ValueError as error:
        raise TokenizerError(str(error)) from None
    return value


def _written_plainly(source: Source, names: set[str]) -> Iterator[tuple[int, str]]:
    """Ordinary entries that the settings call special, such as an unmarked `</s>`."""
    ordered = sorted(names)
    name_of = dict(zip(source.spelling.spell(ordered), ordered, strict=True))
    if name_of:
        for token_id, token in enumerate(source.tokens):
            if token is not None and token in name_of:
                yield token_id, name_of[token]


def _width(model: dict[str, Any]) -> int | None:
    text = model.get("text_config")
    width = model.get("vocab_size", text.get("vocab_size") if isinstance(text, dict) else None)
    return width if isinstance(width, int) and not isinstance(width, bool) else None
