"""Prompts and stop tokens, by the Hugging Face tokenizer of a model.

One idea: several frameworks run their models with the same tokenizers, so the conversion of prompts
is implemented once. No framework is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from stencilm.characters import check_characters
from stencilm.chat_templates.huggingface import chat_text_of
from stencilm.errors import GrammarSyntaxError, ModelError, TokenizerError
from stencilm.foreign import reported_as, said
from stencilm.models.exact_numbers import with_marks
from stencilm.models.protocol import Prompt
from stencilm.shown import shown_value


class Conversation(list[dict[str, Any]]):
    """Chat messages, and the tools that the chat template shows to the model.

    Attributes:
        tools: In the form of OpenAI's chat completions.
        switches: Variables for the template, such as `enable_thinking`.
        has_reasoning_format: The grammar of the text already covers the reasoning.
    """

    def __init__(
        self,
        messages: Iterable[Mapping[str, Any]],
        tools: Sequence[Any] = (),
        *,
        switches: Mapping[str, bool] | None = None,
        has_reasoning_format: bool = False,
    ) -> None:
        super().__init__(dict(message) for message in messages)
        self.tools = list(tools)
        self.switches = dict(switches or {})
        self.has_reasoning_format = has_reasoning_format

    @classmethod
    def of(cls, messages: Iterable[Mapping[str, Any]], switches: Mapping[str, bool]) -> Self:
        """The messages, with their tools if they have any, and these switches."""
        tools = messages.tools if isinstance(messages, Conversation) else ()
        return cls(messages, tools, switches=switches)


def encode_prompt(tokenizer: Any, prompt: Prompt) -> list[int]:
    """The tokens of a text, or of chat messages through the tokenizer's chat template.

    Raises ModelError for messages if there is no template, and for a prompt without tokens.
    """
    # A template writes the special tokens itself, so the tokenizer must not add any.
    added = {} if isinstance(prompt, str) else {"add_special_tokens": False}
    text = prompt if isinstance(prompt, str) else chat_text(tokenizer, prompt)
    with reported_as(
        lambda error: ModelError(f"the model's tokenizer cannot read the prompt: {said(error)}")
    ):
        token_ids = list(tokenizer.encode(text, **added))
    first = (tokenizer.bos_token_id, tokenizer.eos_token_id)
    return or_document_start([int(token_id) for token_id in token_ids], first)


def or_document_start(token_ids: list[int], first: Iterable[int | None]) -> list[int]:
    """The tokens, or if there are none, the first token that may begin a document.

    An empty text has no token to continue from; the usual substitute is a document start. Raises
    ModelError if there is none.
    """
    if token_ids:
        return token_ids
    for token_id in first:
        if token_id is not None:
            return [token_id]
    raise ModelError(
        "the prompt is empty and the tokenizer has no beginning-of-text token: "
        "give at least one character"
    )


def no_chat_template() -> ModelError:
    """The error for messages if no chat format is known."""
    return ModelError(
        "the tokenizer has no chat template, so it cannot read a list of messages: "
        "give the prompt as one str"
    )


def stop_token_ids(*owners: Any, vocab_size: int) -> list[int]:
    """Every token that ends a text, whichever of the owners declares it, ascending.

    Raises TokenizerError, which names the owner, for one beyond a vocabulary of this size.
    """
    found: set[int] = set()
    for owner in owners:
        for name in ("eos_token_id", "eos_token_ids"):
            ids = getattr(owner, name, None)
            listed = [ids] if isinstance(ids, int) else ids
            if not isinstance(listed, (list, tuple, set)):
                continue
            for token_id in map(int, listed):
                if not 0 <= token_id < vocab_size:
                    raise TokenizerError(
                        f"{name} of {type(owner).__name__} has {token_id}, but ids lie "
                        f"between 0 and {vocab_size - 1}; set it to the tokens that end a text"
                    )
                found.add(token_id)
    return sorted(found)


def chat_text(tokenizer: Any, messages: Iterable[Any]) -> str:
    """Chat messages in the tokenizer's chat template, up to the model's answer.

    Raises ModelError if there is no template or it does not accept these messages, LimitExceeded if
    it takes too much time or memory, and ValueError for a lone surrogate.
    """
    # mlx-lm's wrapper may have a format without a template in the inner tokenizer.
    known = ("chat_template", "has_chat_template")
    if not any(getattr(tokenizer, name, None) for name in known):
        raise no_chat_template()
    tools = messages.tools if isinstance(messages, Conversation) else None
    more: dict[str, Any] = {"tools": tools} if tools else {}
    more |= switches_of(messages)
    written, exact = with_marks(text_messages(messages))
    with reported_as_template():
        text = exact(chat_text_of(tokenizer, written, add_generation_prompt=True, **more))
    check_characters(text, "the prompt", "no tokenizer can read")
    return text


@contextmanager
def reported_as_template() -> Iterator[None]:
    """Convert exceptions in the rendering of a chat template to ModelError.

    LimitExceeded is passed through; it names the template itself.
    """

    def reported(error: BaseException) -> ModelError:
        return ModelError(f"the model's chat template cannot write them: {said(error)}")

    with reported_as(reported):
        try:
            yield
        except GrammarSyntaxError as error:  # not a valid template
            raise reported(error) from error


def switches_of(messages: Iterable[Any]) -> dict[str, bool]:
    """The variables for the chat template besides the messages."""
    return messages.switches if isinstance(messages, Conversation) else {}


def with_text(messages: Sequence[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The messages with a text appended to the user's last message."""
    place = next(
        (at for at in reversed(range(len(messages))) if messages[at].get("role") == "user"), None
    )
    if place is None:
        return [*messages, {"role": "user", "content": text}]
    longer = _with_paragraph(messages[place], text)
    return [*messages[:place], longer, *messages[place + 1 :]]


def with_system_text(messages: Sequence[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The messages with a text appended to the system's message at their beginning."""
    if messages and messages[0].get("role") == "system":
        return [_with_paragraph(messages[0], text), *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _with_paragraph(message: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A message with a text at its end, apart from what it says, as text or in parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return {**message, "content": f"{content}\n\n{text}" if content else text}
    if not isinstance(content, (list, tuple)):
        return dict(message)  # the model refuses it
    last = content[-1]
    if isinstance(last, Mapping) and last.get("type") == "text":  # texts in a row are joined
        text = f"\n\n{text}"
    return {**message, "content": [*content, {"type": "text", "text": text}]}


def text_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Chat messages whose contents are text: parts that are texts are joined.

    Raises ModelError for any other part, such as an image.
    """
    made = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, (list, tuple)):
            for part in content:
                is_text = isinstance(part, Mapping) and part.get("type") == "text"
                if is_text and not isinstance(part.get("text"), str):
                    raise ModelError(
                        f"a part of a message is {shown_value(dict(part)):.60}, but a text has "
                        "the str of it "
                        "as its 'text'"
                    )
                if not is_text:
                    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
                    raise ModelError(
                        f"a message holds a part of the type {kind!r}, but this model reads text "
                        "only: leave it out, or ask a model behind an API that takes it"
                    )
            message = {**message, "content": "".join(part["text"] for part in content)}
        made.append(dict(message))
    return made
