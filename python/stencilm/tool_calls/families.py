"""The families that are known, as data: taken from their chat templates, encoders and guides.

Where each comes from is told in `docs/tool-calls.md`.
"""

from __future__ import annotations

from stencilm.tool_calls.template import CallVariant, ToolTemplate

_THINK = ("<think>", "</think>")
_HERMES = '<tool_call>\n{"name": $json_name, "arguments": $arguments}\n</tool_call>'
_QWEN_XML = "<tool_call>\n<function=$name>\n$arguments</function>\n</tool_call>"
_DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_FENCED = (
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$arguments\n```<｜tool▁call▁end｜>"
)
_DSML = '<｜DSML｜invoke name="$name">\n$arguments</｜DSML｜invoke>\n'

TEMPLATES: dict[str, ToolTemplate] = {
    "llama": ToolTemplate(
        call='{"name": $json_name, "parameters": $arguments}',
        trigger='{"name": "',
        separator="; ",
        models=("*llama-3.1*", "*llama-3.2*", "*llama-3.3*", "*llama-4*"),
    ),
    "llama_python_tag": ToolTemplate(
        call='{"name": $json_name, "parameters": $arguments}',
        trigger="<|python_tag|>",
        section=("<|python_tag|>", ""),
        separator="; ",
    ),
    "hermes": ToolTemplate(
        call=_HERMES, trigger="<tool_call>", models=("*hermes-2*", "*hermes-3*")
    ),
    "qwen_2_5": ToolTemplate(call=_HERMES, trigger="<tool_call>", models=("*qwen2.5*", "*qwq*")),
    "qwen_3": ToolTemplate(
        call=_HERMES, trigger="<tool_call>", think=_THINK, models=("*qwen3-*", "*qwen3")
    ),
    "qwen_3_thinking": ToolTemplate(
        call=_HERMES,
        trigger="<tool_call>",
        think=_THINK,
        think_prefilled=True,
        models=("*qwen3-*thinking*",),
    ),
    "qwen_3_5": ToolTemplate(
        call=_QWEN_XML,
        trigger="<tool_call>",
        style="qwen_xml",
        think=_THINK,
        think_prefilled=True,
        models=("*qwen3.5*", "*qwen3.6*"),
    ),
    "qwen_3_coder": ToolTemplate(
        call=_QWEN_XML, trigger="<tool_call>", style="qwen_xml", models=("*qwen3-coder*",)
    ),
    "mimo": ToolTemplate(call=_HERMES, trigger="<tool_call>", think=_THINK, models=("*mimo-*",)),
    "exaone": ToolTemplate(
        call='<tool_call>{"name": $json_name, "arguments": $arguments}</tool_call>',
        trigger="<tool_call>",
        think=_THINK,
        think_prefilled=True,
        models=("*exaone-4*",),
    ),
    "deepseek_v3": ToolTemplate(
        call=_FENCED,
        trigger=_DEEPSEEK[0],
        section=_DEEPSEEK,
        models=("*deepseek-v3", "*deepseek-v3-*"),
    ),
    "deepseek_r1": ToolTemplate(
        call=_FENCED,
        trigger=_DEEPSEEK[0],
        section=_DEEPSEEK,
        think=_THINK,
        think_prefilled=True,
        models=("*deepseek-r1*",),
    ),
    "deepseek_v3_1": ToolTemplate(
        call="<｜tool▁call▁begin｜>$name<｜tool▁sep｜>$arguments<｜tool▁call▁end｜>",
        trigger=_DEEPSEEK[0],
        section=_DEEPSEEK,
        separator="",
        think=_THINK,
        think_prefilled=True,
        models=("*deepseek-v3.1*", "*deepseek-v3.2-exp*"),
    ),
    "deepseek_v3_2": ToolTemplate(
        call=_DSML,
        trigger="<｜DSML｜function_calls>",
        style="deepseek_xml",
        section=("<｜DSML｜function_calls>\n", "</｜DSML｜function_calls>"),
        separator="",
        think=_THINK,
        think_prefilled=True,
        models=("*deepseek-v3.2", "*deepseek-v3.2-speciale"),
    ),
    "deepseek_v4": ToolTemplate(
        call=_DSML,
        trigger="<｜DSML｜tool_calls>",
        style="deepseek_xml",
        section=("<｜DSML｜tool_calls>\n", "</｜DSML｜tool_calls>"),
        separator="",
        think=_THINK,
        think_prefilled=True,
        models=("*deepseek-v4*",),
    ),
    "deepseek_v4_1": ToolTemplate(
        call='<｜DSML｜ invoke name="$name">\n$arguments</｜DSML｜ invoke>\n',
        trigger="<｜DSML｜ calls>",
        style="deepseek_v4_1_xml",
        section=("<｜DSML｜ calls>\n", "</｜DSML｜ calls>"),
        separator="",
        think=_THINK,
        think_prefilled=True,
        models=("*deepseek-v4.1*",),
    ),
    "kimi": ToolTemplate(
        call="<|tool_call_begin|>functions.$name:$id<|tool_call_argument_begin|>$arguments"
        "<|tool_call_end|>",
        trigger="<|tool_calls_section_begin|>",
        section=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        separator="",
        think=_THINK,
        models=("*kimi-k2*",),
    ),
    "kimi_k3": ToolTemplate(
        call='<|open|>call tool="$name" index="$id"<|sep|>$arguments<|close|>call<|sep|>',
        trigger="<|open|>tools<|sep|>",
        style="kimi_k3_xml",
        section=("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
        separator="",
        think=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        think_prefilled=True,
        response=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
        response_first=True,
        end="<|close|>message<|sep|>",
        models=("*kimi-k3*",),
    ),
    "glm_4_5": ToolTemplate(
        call="<tool_call>$name\n$arguments</tool_call>",
        trigger="<tool_call>",
        style="glm_xml",
        think=_THINK,
        models=("*glm-4.5*", "*glm-4.6*"),
    ),
    "glm_4_7": ToolTemplate(
        call="<tool_call>$name$arguments</tool_call>",
        trigger="<tool_call>",
        style="glm_xml",
        separator="",
        think=_THINK,
        think_prefilled=True,
        models=("*glm-4.7*", "*glm-5*"),
    ),
    "minimax_m1": ToolTemplate(
        call='{"name": $json_name, "arguments": $arguments}',
        trigger="<tool_calls>",
        section=("<tool_calls>\n", "\n</tool_calls>"),
        think=_THINK,
        models=("*minimax-m1*",),
    ),
    "minimax": ToolTemplate(
        call='<invoke name="$name">\n$arguments</invoke>\n',
        trigger="<minimax:tool_call>",
        style="minimax_xml",
        section=("<minimax:tool_call>\n", "</minimax:tool_call>"),
        separator="",
        think=_THINK,
        think_prefilled=True,
        models=("*minimax-m2*",),
    ),
    "minimax_m3": ToolTemplate(
        call=']<]minimax[>[<invoke name="$name">$arguments]<]minimax[>[</invoke>\n',
        trigger="]<]minimax[>[<tool_call>",
        style="minimax_m3_xml",
        section=("]<]minimax[>[<tool_call>\n", "]<]minimax[>[</tool_call>"),
        separator="",
        think=("<mm:think>", "</mm:think>"),
        think_prefilled=True,
        models=("*minimax-m3*",),
    ),
    "cohere": ToolTemplate(
        call='{"tool_call_id": "$id", "tool_name": $json_name, "parameters": $arguments}',
        trigger="<|START_ACTION|>",
        section=("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>"),
        separator=",\n    ",
        think=("<|START_THINKING|>", "<|END_THINKING|>"),
        response=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        models=("*command-r7b*", "*command-a*"),
    ),
    "mistral": ToolTemplate(
        call='{"name": $json_name, "arguments": $arguments}',
        trigger="[TOOL_CALLS]",
        section=("[TOOL_CALLS][", "]"),
        separator=", ",
        models=(
            "*mistral-7b-instruct-v0.3*",
            "*mistral-nemo*",
            "*mistral-large*",
            "*mistral-small-24b*",
            "*mistral-small-3.1*",
            "*ministral-8b-instruct-2410*",
        ),
    ),
    "mistral_v11": ToolTemplate(
        call="[TOOL_CALLS]$name[ARGS]$arguments",
        trigger="[TOOL_CALLS]",
        separator="",
        think=("[THINK]", "[/THINK]"),
        models=("*mistral-small-3.2*", "*magistral*", "*devstral*"),
    ),
}
