"""The Jinja sandbox in which chat templates run: that of transformers, with counting.

One idea: everything that Python does for a template is counted. Calls, operators, filters, tests
and output already go through the environment; loops, comparisons, slices, joins and lists are
routed through it by filters with names that no template can write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import update_wrapper
from sys import getsizeof
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import (
    ImmutableSandboxedEnvironment,
    SandboxedEscapeFormatter,
    SandboxedFormatter,
)
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from stencilm.chat_templates import costs
from stencilm.chat_templates.budget import GROWTH, SLOW_BYTES, Budget, Steps

# The leading space makes these names that no template can write.
_STEPS, _CUT, _WEIGH, _WRITE, _KEPT = (
    f" {name}" for name in ("steps", "cut", "weigh", "write", "kept")
)
_OF_CALLS = ("_loop_vars", "_block_vars", "caller")


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """The environment in which transformers renders chat templates, with a budget.

    Attributes:
        budget: The remaining budget of the rendering that an overlay of the environment is made
            for.
    """

    budget: Budget
    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "**", "%"])

    def __init__(self, strftime_now: Callable[[str], str]) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            finalize=_written,
        )
        self.filters["tojson"] = _tojson
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = strftime_now
        self.globals["dict"] = _Dict()
        self.globals["namespace"] = _Namespace
        for name, function in list(self.filters.items()):
            self.filters[name] = _bounded(
                function, costs.FILTERS.get(name, costs.slow), name not in costs.UNMADE
            )
        for name, function in list(self.tests.items()):
            if name not in costs.FREE_TESTS:
                self.tests[name] = _bounded(function, costs.linear, False)
        self.filters |= {_STEPS: _steps, _CUT: _cut, _WEIGH: _weighed, _KEPT: _kept}
        self.filters[_WRITE] = _counted_text
        self._rules = {id(self.globals[name]): rule for name, rule in costs.GLOBALS.items()}

    def bounded(self, budget: Budget) -> ChatEnvironment:
        """An overlay of this environment for one rendering."""
        made = self.overlay()
        assert isinstance(made, ChatEnvironment)
        made.budget = budget
        return made

    def concat(self, parts: Any) -> str:
        """Join the parts of a macro or of a block."""
        found = []
        for part in parts:
            self.budget.make(getsizeof(part))
            found.append(part)
        return "".join(found)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Evaluate an operator, once its result is known to be small enough."""
        costs.operator(self.budget, operator, left, right)
        return self.budget.kept(self.binop_table[operator](left, right))

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Get an item; its key may take long to hash."""
        if argument.__class__ not in (str, int):
            self.budget.weigh(argument)
        return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Wrap `str.format` and `str.format_map`, so that each field is counted."""
        if not isinstance(value, (MethodType, BuiltinMethodType)):
            return None
        text, name = value.__self__, value.__name__
        if name not in ("format", "format_map") or not isinstance(text, str):
            return None
        formatter = (
            _CountingEscapeFormatter(self, escape=text.escape)
            if isinstance(text, Markup)
            else _CountingFormatter(self)
        )

        def wrapper(*args: Any, **kwargs: Any) -> str:
            if name == "format_map":
                if kwargs:
                    raise TypeError("format_map() takes no keyword arguments")
                if len(args) != 1:
                    raise TypeError(f"format_map() takes exactly one argument ({len(args)} given)")
                kwargs, args = args[0], ()
            if text.count("{") > SLOW_BYTES:
                raise self.budget.refuse(f"formats a text with more than {SLOW_BYTES} fields")
            return type(text)(formatter.vformat(text, args, kwargs))

        return update_wrapper(wrapper, value)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function, once its result is known to be small enough."""
        if not __self.is_safe_callable(__obj):
            raise SecurityError(f"{__obj!r} is not safely callable")
        budget = __self.budget
        budget.step()
        # Jinja before 3.1.6 wraps it only here.
        __obj = __self.wrap_str_format(__obj) or __obj
        if getattr(__obj, "__name__", "") not in ("format", "format_map"):
            args = __self._paid(__obj, args, kwargs)
        made = __context.call(__obj, *args, **kwargs)
        return made if getattr(__obj, "__name__", "") in costs.UNMADE else budget.kept(made)

    def _paid(self, called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call, once its cost is known to be within the budget."""
        rule, is_bound = costs.call_rule(called)
        rule = self._rules.get(id(called), rule)
        if isinstance(called, MethodType) and isinstance(called.__self__, _Dict):
            rule = costs.as_dict
        self.budget.make(8 * len(args) + 64 * len(kwargs))
        named = {name: value for name, value in kwargs.items() if name not in _OF_CALLS}
        given = (called.__self__, *args) if is_bound else args
        anew = rule(self.budget, *given, **named) or ()
        return (*anew, *given[len(anew) :])[is_bound:]


def compiled(environment: ChatEnvironment, source: str) -> Any:
    """Compile a template; raises the errors of Jinja and Python for an invalid one."""
    tree = _Marked().visit(environment.parse(source))
    return environment.compile(tree)


class _Marked(NodeTransformer):
    """Routes operations that Jinja compiles to plain Python through the environment."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _through(_STEPS, node.iter)
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _weighing(node.expr)
        for operand in node.ops:
            operand.expr = _weighing(operand.expr)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        node.nodes = [_through(_WRITE, part) for part in node.nodes]
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        ends = [
            end if end is not None else nodes.Const(None, lineno=node.lineno)
            for end in (node.arg.start, node.arg.stop, node.arg.step)
        ]
        return _through(_CUT, node.node, *ends)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        return _through(_KEPT, node) if node.ctx == "load" else node

    def visit_List(self, node: nodes.List) -> nodes.Node:
        self.generic_visit(node)
        return _through(_KEPT, node)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        self.generic_visit(node)
        for pair in node.items:
            pair.key = _weighing(pair.key)
        return _through(_KEPT, node)


def _through(name: str, node: Any, *more: nodes.Expr) -> nodes.Filter:
    found = nodes.Filter(node, name, list(more), [], None, None, lineno=node.lineno)
    found.set_environment(node.environment)
    return found


def _weighing(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _through(_WEIGH, node)


@pass_context
def _steps(context: Context, values: Any) -> Any:
    if isinstance(values, LoopContext):  # a recursive loop gets the elements of the outer one
        return values
    return Steps(_budget_of(context), values)


@pass_context
def _cut(context: Context, value: Any, start: Any, stop: Any, step: Any) -> Any:
    return _budget_of(context).kept(value[start:stop:step])


@pass_context
def _weighed(context: Context, value: Any) -> Any:
    _budget_of(context).weigh(value)
    return value


@pass_context
def _kept(context: Context, value: Any) -> Any:
    return _budget_of(context).kept(value)


@pass_context
def _counted_text(context: Context, value: Any) -> Any:
    """Count a part before it is joined: the same large text may occur many times."""
    budget = _budget_of(context)
    if isinstance(value, str):
        budget.make(getsizeof(value))
        return value
    budget.make(GROWTH * budget.weigh(value))
    return value


@pass_context
def _written(context: Context, value: Any) -> Any:
    """Count a value that is written into the text."""
    budget = _budget_of(context)
    if not isinstance(value, str):
        budget.expect(GROWTH * budget.weigh(value))
    return value


def _budget_of(context: Context) -> Budget:
    budget: Budget = context.environment.budget  # type: ignore[attr-defined]
    return budget


def _bounded(function: Any, rule: costs.Rule, makes: bool) -> Callable[..., Any]:
    """A filter or a test whose cost is checked before it is called."""
    wish = getattr(getattr(function, "jinja_pass_arg", None), "name", None)

    @pass_context
    def bounded(context: Context, *args: Any, **kwargs: Any) -> Any:
        budget = _budget_of(context)
        anew = rule(budget, *args, **kwargs) or ()
        args = (*anew, *args[len(anew) :])
        if wish == "context":
            args = (context, *args)
        elif wish == "eval_context":
            args = (context.eval_ctx, *args)
        elif wish == "environment":
            args = (context.environment, *args)
        result = function(*args, **kwargs)
        return budget.kept(result) if makes or isinstance(result, Iterator) else result

    return bounded


class _CountingFormatter(SandboxedFormatter):
    def format_field(self, value: Any, format_spec: str) -> Any:
        costs.field(self._env.budget, value, format_spec)  # type: ignore[attr-defined]
        return super().format_field(value, format_spec)

    def convert_field(self, value: Any, conversion: Any) -> Any:
        budget: Budget = self._env.budget  # type: ignore[attr-defined]
        budget.expect(GROWTH * budget.weigh(value))
        return super().convert_field(value, conversion)


class _CountingEscapeFormatter(_CountingFormatter, SandboxedEscapeFormatter):
    pass


class _Generation(Extension):
    """`{% generation %}`, which marks text for training: its body is written as it is."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = nodes.CallBlock(self.call_method("_body"), [], [], body)
        return call.set_lineno(line)

    def _body(self, caller: Callable[[], str]) -> str:
        return caller()


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def _tojson(
    x: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes HTML.
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


class _Dict:
    """`dict` with `fromkeys`, but without the other attributes of Python's class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


class _Namespace(Namespace):
    """A namespace whose attributes cannot shadow its methods."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(
            f"a chat template may store no attribute that begins with an underscore: {name!r}"
        )
