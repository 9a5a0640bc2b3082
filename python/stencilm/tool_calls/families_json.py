"""Families whose calls have JSON arguments."""

from __future__ import annotations

from stencilm.tool_calls.template import CallVariant, ToolTemplate

_THINK = ("<think>", "</think>")
_HERMES = '<tool_call>\n{"name": $json_name, "arguments": $arguments}\n</tool_call>'
# Models of the Hermes format sometimes write the arguments first, because the schema of a call in
# the prompt does.
_HERMES_TURNED = (
    CallVariant(call='<tool_call>\n{"arguments": $arguments, "name": $json_name}\n</tool_call>'),
)
_OBJECT = '{"name": $json_name, "arguments": $arguments}'
_PARAMETERS = '{"name": $json_name, "parameters": $arguments}'
_INKLING = '<|content_invoke_tool_json|>{"name": $json_name, "args": $arguments}<|end_message|>'
_DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_FENCED = (
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$arguments\n```<｜tool▁call▁end｜>"
)
_LISTED_CALLS = ("<tool_calls>[", "]</tool_calls>")
_SPACED_CALLS = ("<tool_calls> [", "] </tool_calls>")

JSON_FAMILIES: dict[str, ToolTemplate] = {
    "llama": ToolTemplate(
        call='{"name": $json_name, "parameters": $arguments}',
        trigger='{"name": "',
        separator="; ",
        models=("*llama-3.[1-9]*", "*llama-4*", "llama3-json", "llama4-json", "llama3"),
    ),
    "llama_python_tag": ToolTemplate(
        call='{"name": $json_name, "parameters": $arguments}',
        trigger="<|python_tag|>",
        section=("<|python_tag|>", ""),
        separator="; ",
    ),
    "hermes": ToolTemplate(
        call=_HERMES,
        trigger="<tool_call>",
        variants=_HERMES_TURNED,
        models=("*hermes-2*", "*hermes-3*"),
    ),
    "hermes_4": ToolTemplate(
        call=_HERMES,
        trigger="<tool_call>",
        variants=_HERMES_TURNED,
        think=_THINK,
        models=("*hermes-[4-9]*",),
    ),
    "qwen_2_5": ToolTemplate(
        call=_HERMES,
        trigger="<tool_call>",
        variants=_HERMES_TURNED,
        models=("*qwen2.5*", "*qwq*", "qwen25"),
    ),
    "qwen_3": ToolTemplate(
        call=_HERMES,
        trigger="<tool_call>",
        variants=_HERMES_TURNED,
        think=_THINK,
        models=("*qwen3-*", "*qwen3", "qwen", "qwen3-json"),
    ),
    "qwen_3_thinking": ToolTemplate(
        call=_HERMES,
        trigger="<tool_call>",
        variants=_HERMES_TURNED,
        think=_THINK,
        think_prefilled=True,
        models=("*qwen3-*thinking*",),
    ),
    "mimo": ToolTemplate(
        call=_HERMES,
        trigger="<tool_call>",
        variants=_HERMES_TURNED,
        think=_THINK,
        models=("*mimo-7b*", "*mimo-vl*"),
    ),
    "granite_4": ToolTemplate(
        call=_HERMES, trigger="<tool_call>", models=("*granite-4*", "granite4")
    ),
    "ernie_4_5": ToolTemplate(
        call=_HERMES,
        trigger="<tool_call>",
        think=_THINK,
        think_prefilled=True,
        models=("*ernie-4.5*thinking*", "*ernie-[5-9]*", "ernie45"),
    ),
    "trinity": ToolTemplate(
        call=_HERMES, trigger="<tool_call>", think=_THINK, models=("*trinity-*", "trinity")
    ),
    "smollm_3": ToolTemplate(
        call=_HERMES, trigger="<tool_call>", think=_THINK, models=("*smollm3*",)
    ),
    "exaone": ToolTemplate(
        call='<tool_call>{"name": $json_name, "arguments": $arguments}</tool_call>',
        trigger="<tool_call>",
        think=_THINK,
        think_prefilled=True,
        models=("*exaone-[4-9]*",),
    ),
    "longcat": ToolTemplate(
        call="<longcat_tool_call>\n" + _OBJECT + "\n</longcat_tool_call>",
        trigger="<longcat_tool_call>",
        think=("<longcat_think>", "</longcat_think>"),
        think_prefilled=True,
        models=("*longcat*",),
    ),
    "granite_3": ToolTemplate(
        call=_OBJECT,
        trigger="<|tool_call|>",
        section=("<|tool_call|>[", "]"),
        separator=", ",
        variants=(CallVariant(section=("<|tool_call|> [", "]")),),
        models=("*granite-3*", "granite"),
    ),
    "granite_20b_functioncalling": ToolTemplate(
        call='<function_call> {"name": $json_name, "arguments": $arguments}',
        trigger="<function_call>",
        separator=" ",
        variants=(
            CallVariant(call='<function_call>{"name": $json_name, "arguments": $arguments}'),
        ),
        models=("*granite-20b-functioncalling*", "granite-20b-fc"),
    ),
    "phi_4_mini": ToolTemplate(
        call=_OBJECT,
        trigger="functools[",
        section=("functools[", "]"),
        separator=", ",
        models=("*phi-4-mini*", "phi4-mini-json"),
    ),
    "hunyuan_a13b": ToolTemplate(
        call=_OBJECT,
        trigger="<tool_calls>",
        section=_LISTED_CALLS,
        separator=", ",
        think=_THINK,
        think_prefilled=True,
        models=("*hunyuan-a13b*", "*hunyuan-[0-9]*b-instruct*", "hunyuan-a13b"),
    ),
    "jamba": ToolTemplate(
        call=_OBJECT,
        trigger="<tool_calls>",
        section=("<tool_calls>[\n    ", "\n]</tool_calls>"),
        separator=",\n    ",
        variants=(CallVariant(section=_LISTED_CALLS, separator=", "),),
        models=("*jamba*",),
    ),
    "apriel": ToolTemplate(
        call=_OBJECT,
        trigger="<tool_calls>",
        section=_LISTED_CALLS,
        separator=", ",
        variants=(
            CallVariant(section=_SPACED_CALLS),
            CallVariant(call='{"name": $json_name, "arguments": $arguments, "id": "$id"}'),
        ),
        id_pattern="[A-Za-z0-9_-]{1,64}",
        think=("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
        think_prefilled=True,
        end="\n",
        models=("*apriel-1.[5-9]*",),
    ),
    "xlam": ToolTemplate(
        call=_OBJECT,
        trigger='[{"name": "',
        section=("[", "]"),
        separator=", ",
        models=("*xlam*",),
    ),
    "nemotron_nano_2": ToolTemplate(
        call=_OBJECT,
        trigger="<TOOLCALL>",
        section=("<TOOLCALL>[", "]</TOOLCALL>"),
        separator=", ",
        think=_THINK,
        think_prefilled=True,
        end="\n",
        models=(
            "*nemotron-nano-*v2*",
            "*nemotron-super-49b*",
            "*nemotron-nano-4b*",
            "*nemotron-ultra-253b*",
        ),
    ),
    "apertus": ToolTemplate(
        call="{$json_name: $arguments}",
        trigger="<|tools_prefix|>",
        section=("<|tools_prefix|>[", "]<|tools_suffix|>"),
        separator=", ",
        think=("<|inner_prefix|>", "<|inner_suffix|>"),
        models=("*apertus*", "apertus2509"),
    ),
    "internlm_2": ToolTemplate(
        call="<|action_start|><|plugin|>" + _PARAMETERS + "<|action_end|>",
        trigger="<|action_start|><|plugin|>",
        variants=(
            CallVariant(call="<|action_start|><|plugin|>\n" + _PARAMETERS + "<|action_end|>"),
        ),
        models=("*internlm[23]*", "*internlm2.5*", "internlm"),
    ),
    "intern_s1": ToolTemplate(
        call="<|action_start|> <|plugin|>\n" + _PARAMETERS + "<|action_end|>",
        trigger="<|action_start|> <|plugin|>",
        think=_THINK,
        think_prefilled=True,
        models=("*intern-s1*", "interns1"),
    ),
    "gigachat_3": ToolTemplate(
        call='<|function_call|>{"name": $json_name, "arguments": $arguments}',
        trigger="<|function_call|>",
        models=("*gigachat3-*", "*gigachat3.1*", "gigachat3"),
    ),
    "gigachat_3_0": ToolTemplate(
        call='function call<|role_sep|>\n{"name": $json_name, "arguments": $arguments}',
        trigger="function call<|role_sep|>",
        end="<|message_sep|>",
    ),
    "solar_open": ToolTemplate(
        call=(
            "<|tool_call:begin|>$id<|tool_call:name|>$name<|tool_call:args|>$arguments<|tool_call:end|>"
        ),
        trigger="<|tool_calls|>",
        section=("<|tool_calls|>", "<|calls|>"),
        separator="",
        id_pattern="[A-Za-z0-9_.:-]{1,64}",
        think=("<|think|>", "<|end|>"),
        models=("*solar-open*", "*solar-[3-9]*"),
    ),
    "inkling": ToolTemplate(
        call="<|message_model|>$name" + _INKLING,
        trigger="<|message_model|>",
        separator="",
        variants=(CallVariant(call="<|message_model|>" + _INKLING),),
        think=("<|message_model|><|content_thinking|>", "<|end_message|>"),
        response=("<|message_model|><|content_text|>", "<|end_message|>"),
        response_first=True,
        models=("*inkling*",),
    ),
    "reka_edge": ToolTemplate(
        call=_HERMES,
        trigger="<tool_call>",
        separator="",
        think=_THINK,
        blank_lines=True,
        models=("*reka-edge*",),
    ),
    "plamo_3": ToolTemplate(
        call=(
            "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>$name"
            "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>"
            "<|plamo:constrain|>json<|plamo:msg|>$arguments<|plamo:end_tool_arguments:plamo|>"
            "<|plamo:end_tool_request:plamo|>"
        ),
        trigger="<|plamo:begin_tool_requests:plamo|>",
        section=("<|plamo:begin_tool_requests:plamo|>", "<|plamo:end_tool_requests:plamo|>"),
        separator="",
        think=("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
        end="<|plamo:tag|>",
        models=("*plamo-3*",),
    ),
    "functionary": ToolTemplate(
        call="<function=$name>$arguments</function>",
        trigger="<function=",
        separator="",
        end="<|eom_id|>",
        models=("*functionary-*v3.1*", "*functionary-v3.1*"),
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
    "kimi": ToolTemplate(
        call=(
            "<|tool_call_begin|>functions.$name:$id<|tool_call_argument_begin|>$arguments"
            "<|tool_call_end|>"
        ),
        trigger="<|tool_calls_section_begin|>",
        section=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        separator="",
        id_format="functions.$name:$id",
        think=_THINK,
        models=("*kimi-k2*", "*kimi-linear*", "kimi-k2"),
    ),
    "minimax_m1": ToolTemplate(
        call=_OBJECT,
        trigger="<tool_calls>",
        section=("<tool_calls>\n", "\n</tool_calls>"),
        think=_THINK,
        models=("*minimax-m1*",),
    ),
    "cohere": ToolTemplate(
        call='{"tool_call_id": "$id", "tool_name": $json_name, "parameters": $arguments}',
        trigger="<|START_ACTION|>",
        section=("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>"),
        separator=",\n    ",
        think=("<|START_THINKING|>", "<|END_THINKING|>"),
        response=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        models=("*command-r7b*", "*command-a*", "cohere-command3"),
    ),
    "cohere_text": ToolTemplate(
        call='{"tool_call_id": "$id", "tool_name": $json_name, "parameters": $arguments}',
        trigger="<|START_ACTION|>",
        section=("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>"),
        separator=",\n    ",
        think=("<|START_THINKING|>", "<|END_THINKING|>"),
        response=("<|START_TEXT|>", "<|END_TEXT|>"),
        models=("*command-a-reasoning*", "cohere-command4"),
    ),
    "mistral": ToolTemplate(
        call=_OBJECT,
        trigger="[TOOL_CALLS]",
        section=("[TOOL_CALLS][", "]"),
        separator=", ",
        variants=(
            CallVariant(call='{"name": $json_name, "arguments": $arguments, "id": "$id"}'),
            CallVariant(section=("[TOOL_CALLS] [", "]")),
            CallVariant(
                call='{"name": $json_name, "arguments": $arguments, "id": "$id"}',
                section=("[TOOL_CALLS] [", "]"),
            ),
        ),
        id_pattern="[A-Za-z0-9]{1,64}",
        models=(
            "*mistral-7b-instruct-v0.3*",
            "*mixtral-8x22b-instruct*",
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
        variants=(CallVariant(call="[TOOL_CALLS]$name[CALL_ID]$id[ARGS]$arguments"),),
        id_pattern="[A-Za-z0-9]{1,64}",
        models=(
            "*mistral-small-3.[2-9]*",
            "*mistral-small-[4-9]*",
            "*mistral-medium-*",
            "*mistral-large-[3-9]-*",
            "*mistral-large-[3-9]",
            "*ministral-3*",
            "*magistral*",
            "*devstral*",
        ),
    ),
}
