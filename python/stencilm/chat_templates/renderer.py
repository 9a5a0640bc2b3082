"""Renders chat templates as transformers does, within limits of time and memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from stencilm.chat_templates.budget import Budget
from stencilm.errors import GrammarSyntaxError, LimitExceeded

MAX_CHARACTERS = 1 << 17
"""The longest template; those of models have some ten thousand characters."""

MAX_VARIABLES = 200


def one_day(layout: str) -> str:
    """A fixed date for renderings that are only inspected, so that two of them can be compared."""
    return "1 January 2026"


def today(layout: str) -> str:
    """The current date in a chat template's format."""
    return datetime.now().strftime(layout)


class Renderer:
    """One chat template; threads may render it at the same time.

    Args:
        source: The text of the template.
        special: The special tokens that it may use, such as `bos_token`.
        name: Its name in errors; None for its first words.
        strftime_now: The function that writes the date.

    Raises:
        GrammarSyntaxError: It is not a Jinja template.
        LimitExceeded: It is longer than 131,072 characters, which may take seconds to compile.
    """

    def __init__(
        self,
        source: str,
        special: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        strftime_now: Callable[[str], str] = one_day,
    ) -> None:
        try:
            from stencilm.chat_templates.environment import ChatEnvironment, compiled
        except ImportError:
            raise ImportError(
                "chat templates are rendered by jinja2: install it, or give the name of a family"
            ) from None
        shown = f"{source[:40]!r}{'…' if len(source) > 40 else ''}"
        self.name = name or f"the chat template {shown}"
        self.source = source
        if len(source) > MAX_CHARACTERS:
            raise LimitExceeded(
                f"{self.name} has {len(source):,} characters, and at most {MAX_CHARACTERS:,} are "
                "read"
            )
        self._environment = ChatEnvironment(strftime_now)
        try:
            self._code = compiled(self._environment, source)
        except Exception as error:  # of Jinja, or of Python if it is nested too deeply
            said = str(error) or type(error).__name__
            raise GrammarSyntaxError(f"the chat template is no Jinja template: {said}") from None
        self._special = {"bos_token": "", "eos_token": "", **(special or {})}

    def render(self, messages: Sequence[Any], **options: Any) -> str:
        """Render the text of a conversation.

        Raises:
            LimitExceeded: It takes more than 5 s of processor time, or makes more than 256 MiB and
                32 bytes for each byte of the messages.
            Exception: The template raises an error for messages that it does not accept.
        """
        return self.written(
            {"tools": None, "documents": None, "messages": messages, **self._special, **options}
        )

    def variables(self) -> tuple[str, ...]:
        """The variables that it reads, without functions, in order.

        Raises LimitExceeded for more than 200 names.
        """
        from jinja2.meta import find_undeclared_variables

        found = find_undeclared_variables(self._environment.parse(self.source))
        names = found - self._environment.globals.keys()
        if len(names) > MAX_VARIABLES:
            raise LimitExceeded(
                f"{self.name} reads {len(names):,} variables, and at most {MAX_VARIABLES:,} are "
                "given"
            )
        return tuple(sorted(names))

    def written(self, variables: Mapping[str, Any]) -> str:
        """Render with only these variables; raises the errors of `render`."""
        budget = Budget(self.name, input_bytes=_input_bytes(variables))
        environment = self._environment.bounded(budget)
        template = environment.template_class.from_code(
            environment, self._code, environment.make_globals(None)
        )
        return environment.concat(template.generate(**variables))


def _input_bytes(variables: Mapping[str, Any]) -> int:
    found = Budget("what a chat template is given")
    found.left = found.most = 1 << 62
    return found.weigh(*variables.values())
