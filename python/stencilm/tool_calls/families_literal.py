"""Families whose calls are literals in their own notation, such as calls in Python."""

from __future__ import annotations

from stencilm.tool_calls.template import CallVariant, ToolTemplate

_THINK = ("<think>", "</think>")

LITERAL_FAMILIES: dict[str, ToolTemplate] = {
    "llama_4_pythonic": ToolTemplate(
        call="$name($arguments)",
        trigger="[",
        style="python",
        section=("[", "]"),
        separator=", ",
        models=("llama4-pythonic", "pythonic", "*llama-3.2-*pythonic*", "*toolace*"),
    ),
    "lfm_2": ToolTemplate(
        call="$name($arguments)",
        trigger="<|tool_call_start|>",
        style="python",
        section=("<|tool_call_start|>[", "]<|tool_call_end|>"),
        separator=", ",
        think=_THINK,
        models=("*lfm2*", "*lfm-2*", "*lfm[3-9]*"),
    ),
    "olmo_3": ToolTemplate(
        call="$name($arguments)",
        trigger="<function_calls>",
        style="python",
        section=("<function_calls>", "</function_calls>"),
        separator="\n",
        variants=(CallVariant(section=("<function_calls>\n", "\n</function_calls>")),),
        think=_THINK,
        think_prefilled=True,
        models=("*olmo-[3-9]*", "olmo3"),
    ),
    "gemma_4": ToolTemplate(
        call="<|tool_call>call:$name{$arguments}<tool_call|>",
        trigger="<|tool_call>",
        style="gemma",
        separator="",
        think=("<|channel>thought\n", "<channel|>"),
        models=("*gemma-[4-9]*", "gemma4"),
    ),
    "functiongemma": ToolTemplate(
        call="<start_function_call>call:$name{$arguments}<end_function_call>",
        trigger="<start_function_call>",
        style="functiongemma",
        separator="",
        models=("*functiongemma*",),
    ),
}
