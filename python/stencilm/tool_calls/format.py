"""`stencilm.tools`: the tool calls of one model for one request, both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stencilm.grammars.sources import OnUnsupported
from stencilm.grammars.structural_tag import Format, StructuralTag
from stencilm.tokenizers import TokenizerInfo
from stencilm.tool_calls.answers import ParsedAnswer
from stencilm.tool_calls.argument_readers import MARKERS as MARKERS_OF_STYLES
from stencilm.tool_calls.harmony import MARKERS, HarmonyReader, harmony_format
from stencilm.tool_calls.parser import AnswerReader, TemplateReader, ToolCallParser
from stencilm.tool_calls.reading import Text
from stencilm.tool_calls.registry import family, family_name, family_tag, has_bare_names
from stencilm.tool_calls.request import Reasoning, ToolChoice, ToolRequest, read_request
from stencilm.tool_calls.tags import Builder
from stencilm.tool_calls.template import MARKER, ToolTemplate
from stencilm.whole_numbers import count

if TYPE_CHECKING:
    from stencilm.grammars.grammar import Grammar


@dataclass(frozen=True)
class ToolFormat:
    r"""How one model writes calls of some tools: its grammar, and parsers.

    Attributes:
        family: The name of the family, as in `model_structural_tags`; "learnt" for a chat template
            of no known family.
        template: How it writes calls; None for a family without a template.
        request: The tools and the choice, as read.
        tag: The structural tag.

    Examples:
        >>> import stencilm
        >>> weather = {
        ...     "type": "function",
        ...     "function": {
        ...         "name": "weather",
        ...         "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        ...     },
        ... }

        >>> tools = stencilm.tools("qwen_3", [weather], reasoning=False)
        >>> tools.triggers, "<tool_call>" in tools.special_tokens
        (('<tool_call>',), True)
        >>> text = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
        >>> tools.parse(text).calls[0].arguments
        {'city': 'Rome'}
        >>> type(tools.parser()).__name__, type(tools.grammar).__name__
        ('ToolCallParser', 'Grammar')
    """

    family: str
    template: ToolTemplate | None
    request: ToolRequest
    tag: StructuralTag
    _builder: Builder | None = None

    @cached_property
    def grammar(self) -> Grammar:
        """The grammar of what the model may write; see `GrammarCompiler.compile`."""
        from stencilm.grammars.grammar import Grammar

        return Grammar.from_structural_tag(self.tag)

    @property
    def triggers(self) -> tuple[str, ...]:
        """The texts that begin a call."""
        if self.template is not None:
            return (self.template.trigger,)
        return (" to=", "<|channel|>commentary to=") if self._builder is harmony_format else ()

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """The markers of the format that may be special tokens of a tokenizer, each once.

        A server must not remove them from the text that the parser reads.
        """
        if self.template is None:
            return MARKERS if self._builder is harmony_format else ()
        found: dict[str, None] = {}
        for way in self.template.ways():
            pieces: tuple[str, ...] = (
                *way.section,
                way.call,
                way.end,
                *(way.think or ()),
                *(way.response or ()),
            )
            markers = MARKERS_OF_STYLES.get(way.style)
            if markers is not None:
                pieces += (markers.open, markers.middle, markers.close.replace("{}", " "))
            for piece in pieces:
                found.update(dict.fromkeys(MARKER.findall(piece)))
        return tuple(found)

    def parser(
        self,
        *,
        prompt: str | None = None,
        tokenizer_info: TokenizerInfo | None = None,
        first_id: int = 0,
    ) -> ToolCallParser:
        """A parser of one answer.

        Args:
            prompt: What the model was given; its end shows whether the text begins within the
                reasoning. Without it, the text does if the family's prompts end with the beginning
                of the reasoning and reasoning is "enabled".
            tokenizer_info: For `feed_tokens`.
            first_id: The number of the first call, for ids that the model does not write.

        Raises:
            ValueError: `first_id` is not a number from 0 up, or the family is a function that was
                registered without a parser.
            TypeError: `prompt` is not a str, or `tokenizer_info` not a TokenizerInfo.
        """
        if prompt is not None and not isinstance(prompt, str):
            raise TypeError(f"prompt is a {type(prompt).__name__}, but must be a str or None")
        if tokenizer_info is not None and not isinstance(tokenizer_info, TokenizerInfo):
            raise TypeError(
                f"tokenizer_info is a {type(tokenizer_info).__name__}, but must be a "
                "TokenizerInfo: TokenizerInfo.from_huggingface makes one of a tokenizer"
            )
        first_id = count("first_id", first_id, least=0)
        text = Text()
        reader: AnswerReader
        if self.template is not None:
            reader = TemplateReader(
                self.template, text, reasoning=self.request.reasoning, prompt=prompt
            )
        elif self._builder is harmony_format:
            reader = HarmonyReader(text)
        else:
            raise ValueError(
                f"{self.family!r} is a function, from which no parser is made: register a "
                "ToolTemplate"
            )
        return ToolCallParser(
            reader, text, self.request.tools, tokenizer_info=tokenizer_info, first_id=first_id
        )

    def parse(self, text: str, *, prompt: str | None = None, first_id: int = 0) -> ParsedAnswer:
        """Reads a whole answer; see `parser`."""
        parser = self.parser(prompt=prompt, first_id=first_id)
        parser.feed(text)
        parser.finish()
        return parser.answer


def tools(
    model: Any,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: ToolChoice | None = "auto",
    *,
    parallel: bool = True,
    reasoning: Reasoning | bool = "enabled",
    answer: Format | Mapping[str, Any] | None = None,
    any_order: bool = False,
    strict_mode: bool = False,
    max_whitespace: int | None = 64,
    exclude_special_tokens: bool = True,
    on_unsupported: OnUnsupported = "error",
) -> ToolFormat:
    """How a model writes calls of some tools: a grammar of them, and parsers.

    Args:
        model: A tokenizer of transformers, whose chat template is probed with marked calls; a chat
            template as text; the name of a family or of a model; or a `ToolTemplate`.
        tools: In the form of OpenAI's chat completions: functions, or tools of other types by
            `name` and `parameters`. A function that is not `strict` may have any arguments.
        tool_choice: "auto" (text, calls or both), "required" (calls and nothing else), "none" (text
            and no calls), a function by name, a tool by type, or `allowed_tools`.
        parallel: Allow several calls.
        reasoning: Whether reasoning comes first; "auto" if the model may leave it out.
        answer: A format. If given, the model either calls tools or gives this answer.
        any_order: Arguments in any order; only for styles of JSON.
        strict_mode: Forbid arguments that a schema does not declare.
        max_whitespace: The longest run of whitespace within arguments.
        exclude_special_tokens: Forbid markers of reasoning and of calls in text.
        on_unsupported: "error" refuses a grammar with a tool whose parameters cannot be enforced,
            and names the beginning of its calls; "relax" leaves out what cannot be enforced, for
            that tool alone, and the report of the grammar says so.

    Raises:
        GrammarSyntaxError: An unknown model, a chat template that writes no calls, or tools or a
            choice of another form.

    Examples:
        >>> import stencilm
        >>> weather = {
        ...     "type": "function",
        ...     "function": {
        ...         "name": "weather",
        ...         "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        ...     },
        ... }

        >>> stencilm.tools("Qwen/Qwen3-8B", [weather]).family
        'qwen_3'
    """
    name, template = _resolved(model)
    request = read_request(
        tools,
        tool_choice,
        reasoning,
        style=template.style if isinstance(template, ToolTemplate) else "json",
        parallel=parallel,
        answer=answer,
        any_order=any_order,
        strict_mode=strict_mode,
        max_whitespace=max_whitespace,
        on_unsupported=on_unsupported,
        exclude_markers=exclude_special_tokens,
        bare_names=has_bare_names(template),
    )
    tag = family_tag(name, template, request)
    if isinstance(template, ToolTemplate):
        return ToolFormat(name, template, request, tag)
    return ToolFormat(name, None, request, tag, template)


def _resolved(model: Any) -> tuple[str, ToolTemplate | Builder]:
    if isinstance(model, ToolTemplate):
        problem = model.problem()
        if problem is not None:
            raise ValueError(problem)
        return "given", model
    if isinstance(model, str) and "{%" not in model and "{{" not in model:
        name = family_name(model)
        return name, family(name)
    from stencilm.tool_calls.probing import probe

    return probe(model)
