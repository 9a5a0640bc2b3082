"""What each provider documents about requests: a server that refuses everything else, and says why.

Each rule is a function of the path and the body that raises `Fault` with the provider's status.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from endpoints.scripted import Fault

Rule: TypeAlias = Callable[[str, dict[str, Any]], None]

CHAT = {"model", "messages", "stream", "temperature", "top_p", "stop"}
USAGE = {"stream_options"}
PENALTIES = {"frequency_penalty", "presence_penalty"}
MORE = {"top_k", "min_p", "repetition_penalty"}


def refused(status: int, message: str) -> Fault:
    return Fault(json.dumps({"status": status, "body": {"error": {"message": message}}}))


def fields(known: Iterable[str], status: int = 400) -> Rule:
    """No other field of a body is known."""
    names = set(known)

    def rule(path: str, body: dict[str, Any]) -> None:
        unknown = set(body) - names
        if unknown:
            raise refused(status, f"unknown fields: {sorted(unknown)}")

    return rule


def both(*rules: Rule) -> Rule:
    def rule(path: str, body: dict[str, Any]) -> None:
        for one in rules:
            one(path, body)

    return rule


def schemas(value: Any) -> Iterable[dict[str, Any]]:
    """Every schema within a schema, itself included."""
    if isinstance(value, dict):
        yield value
        for name in ("properties", "$defs"):
            for one in value.get(name, {}).values():
                yield from schemas(one)
        yield from schemas(value.get("items"))
        for one in value.get("anyOf", ()):
            yield from schemas(one)


OPENAI_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
    "$ref", "$defs", "title", "description", "pattern", "format", "multipleOf", "minimum",
    "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
}  # fmt: skip
AZURE_KEYWORDS = OPENAI_KEYWORDS - {
    "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems",
}  # fmt: skip
ANTHROPIC_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
    "$ref", "$defs", "title", "description", "format", "minItems",
}  # fmt: skip


def check_strict(schema: dict[str, Any], keywords: set[str]) -> None:
    """OpenAI's strict mode: closed objects, every member required, an object at the root."""
    if schema.get("type") != "object" or "anyOf" in schema:
        raise refused(400, "Invalid schema for response_format: the root must be an object")
    for one in schemas(schema):
        if set(one) - keywords:
            raise refused(400, f"Invalid schema: {sorted(set(one) - keywords)}")
        if one.get("type") == "object":
            if one.get("additionalProperties") is not False:
                raise refused(400, "Invalid schema: additionalProperties must be false")
            if sorted(one["required"]) != sorted(one["properties"]):
                raise refused(400, "Invalid schema: required must name every property")


def check_named(
    form: dict[str, Any], *, strict: bool, keywords: set[str] = OPENAI_KEYWORDS
) -> None:
    """`json_schema` as OpenAI nests it."""
    named = form.get("json_schema", form)
    if not re.fullmatch(r"[\w-]{1,64}", named["name"]) or "schema" not in named:
        raise refused(400, "Invalid response_format")
    if strict and named.get("strict"):
        check_strict(named["schema"], keywords)


def openai_form(path: str, body: dict[str, Any]) -> None:
    form = body.get("response_format")
    if form is not None:
        if form["type"] != "json_schema":
            raise refused(400, "Invalid response_format")
        check_named(form, strict=True)
    for tool in body.get("tools", ()):
        grammar = tool["custom"]["format"]["grammar"]
        if grammar["syntax"] not in ("lark", "regex"):
            raise refused(400, "Invalid grammar")


def azure_form(path: str, body: dict[str, Any]) -> None:
    """OpenAI's, but for the keywords of its strict mode and the size of a schema."""
    openai_form(path, body)
    form = body.get("response_format")
    if form is None:
        return
    check_named(form, strict=True, keywords=AZURE_KEYWORDS)
    named = form["json_schema"]
    members = sum(len(one.get("properties", ())) for one in schemas(named["schema"]))
    if named["strict"] and members > 100:
        raise refused(400, "Invalid schema: more than 100 properties")


def responses_form(path: str, body: dict[str, Any]) -> None:
    if not path.endswith("/responses"):
        raise refused(404, "Not found")
    form = body.get("text", {}).get("format")
    if form is not None:
        check_named(form, strict=True)
    for tool in body.get("tools", ()):
        if tool["type"] == "custom" and tool["format"]["type"] != "grammar":
            raise refused(400, "Invalid tool")
    for message in body["input"]:
        if not isinstance(message["content"], str):
            for part in message["content"]:
                if part["type"] not in ("input_text", "input_image", "output_text"):
                    raise refused(400, f"Invalid value: {part['type']!r}")


def plain_form(path: str, body: dict[str, Any]) -> None:
    form = body.get("response_format")
    if form is not None:
        check_named(form, strict=False)


def anthropic_form(path: str, body: dict[str, Any]) -> None:
    if "max_tokens" not in body:
        raise refused(400, "max_tokens: Field required")
    roles = [message["role"] for message in body["messages"]]
    if not set(roles) <= {"user", "assistant"} or roles[0] != "user":
        raise refused(400, "messages: unexpected role")
    last = body["messages"][-1]
    if last["role"] == "assistant" and last["content"] != last["content"].rstrip():
        raise refused(400, "final assistant content cannot end with trailing whitespace")
    for message in body["messages"]:
        if isinstance(message["content"], list):
            for part in message["content"]:
                if part["type"] not in ("text", "image"):
                    raise refused(400, f"messages: unexpected {part['type']!r}")
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    for one in schemas(schema):
        if set(one) - ANTHROPIC_KEYWORDS:
            raise refused(400, f"output_config: unsupported {sorted(one)}")
        if one.get("type") == "object" and one.get("additionalProperties") is not False:
            raise refused(400, "output_config: additionalProperties must be false")


def mistral_form(path: str, body: dict[str, Any]) -> None:
    last = body["messages"][-1]
    if last["role"] == "assistant" and not last.get("prefix"):
        raise refused(400, "Expected last role User or Tool, or Assistant with prefix True")
    plain_form(path, body)


def deepseek_form(path: str, body: dict[str, Any]) -> None:
    form = body.get("response_format")
    if form is not None:
        if form != {"type": "json_object"}:
            raise refused(400, "This response_format type is unavailable now")
        if "json" not in json.dumps(body["messages"]).lower():
            raise refused(400, "Prompt must contain the word 'json'")
    if body["messages"][-1].get("prefix") and "/beta" not in path:
        raise refused(400, "prefix is only available on the beta address")


def groq_form(path: str, body: dict[str, Any]) -> None:
    if any("name" in message for message in body["messages"]):
        raise refused(400, "property 'name' is unsupported")
    openai_form(path, body)


def openrouter_form(path: str, body: dict[str, Any]) -> None:
    openai_form(path, body)
    if "response_format" in body and not body.get("provider", {}).get("require_parameters"):
        raise refused(400, "the schema may be dropped on the way")


def together_form(path: str, body: dict[str, Any]) -> None:
    form = body.get("response_format")
    if form is None:
        return
    if form["type"] == "regex":
        re.compile(form["pattern"])
        return
    check_named(form, strict=False)
    if "JSON" not in json.dumps(body["messages"]):
        raise refused(400, "the prompt must say what JSON is wanted")


XGRAMMAR = {  # what it reads of each kind of format
    "const_string": {"value"},
    "json_schema": {"json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"},
    "grammar": {"grammar"},
    "regex": {"pattern"},
    "any_text": {"excludes", "max_tokens", "max_chars"},
    "sequence": {"elements"},
    "tag": {"begin", "content", "end"},
    "triggered_tags": {"triggers", "tags", "at_least_one", "stop_after_first", "excludes"},
}


def check_tag(tag: dict[str, Any]) -> None:
    """A structural tag as xgrammar documents it."""
    todo = [tag["format"]]
    while todo:
        one = todo.pop()
        if set(one) - {"type"} - XGRAMMAR[one["type"]]:
            raise refused(400, f"unknown fields of {one['type']}: {sorted(one)}")
        todo += [*one.get("elements", ()), *one.get("tags", ())]
        todo += [one["content"]] if "content" in one else []


def vllm_form(path: str, body: dict[str, Any]) -> None:
    given = body.get("structured_outputs")
    if given is None:
        return
    if len(given) != 1 or not set(given) <= {
        "json",
        "regex",
        "choice",
        "grammar",
        "structural_tag",
    }:
        raise refused(400, "structured_outputs takes exactly one kind of constraint")
    if "structural_tag" in given:
        check_tag(json.loads(given["structural_tag"]))
    if "grammar" in given:
        check_gbnf(given["grammar"])
    if "regex" in given:
        re.compile(given["regex"])


def sglang_form(path: str, body: dict[str, Any]) -> None:
    if sum(name in body for name in ("response_format", "regex", "ebnf")) > 1:
        raise refused(400, "Only one of regex, json_schema, or ebnf can be set")
    if "ebnf" in body:
        check_gbnf(body["ebnf"])
    if "regex" in body:
        re.compile(body["regex"])
    if body.get("response_format", {}).get("type") == "structural_tag":
        check_tag(body["response_format"])
        return
    plain_form(path, body)


def llama_cpp_form(path: str, body: dict[str, Any]) -> None:
    if "grammar" in body and "json_schema" in body:
        raise refused(400, "Either json_schema or grammar can be specified, but not both")
    if "grammar" in body:
        check_gbnf(body["grammar"])


GBNF = re.compile(
    r"""\s+
    | "(?:[^"\\\n]|\\(?:["\\nrt]|x[0-9A-F]{2}|u[0-9A-F]{4}|U[0-9A-F]{8}))*"
    | \[\^?(?:[^\]\\]|\\(?:[\[\]"\\nrt]|x[0-9A-F]{2}|u[0-9A-F]{4}|U[0-9A-F]{8}))*\]
    | [a-z][a-z0-9-]*(?:[ ]::=)? | [|()*+?] | \{\d+(?:,\d*)?\}""",
    re.VERBOSE,
)


def check_gbnf(text: str) -> None:
    """The pieces that llama.cpp's grammar README documents, and a rule for every name."""
    place = 0
    names: set[str] = set()
    rules: set[str] = set()
    while place < len(text):
        match = GBNF.match(text, place)
        if match is None:
            raise refused(400, f"failed to parse grammar at {text[place : place + 20]!r}")
        piece = match.group()
        if piece.endswith("::="):
            rules.add(piece.removesuffix(" ::="))
        elif piece[0].isalpha():
            names.add(piece)
        place = match.end()
    if "root" not in rules or not names <= rules:
        raise refused(400, f"undefined rules: {sorted(names - rules)}")


OPENAI_FIELDS = CHAT | USAGE | PENALTIES | {"max_completion_tokens", "max_tokens", "seed", "n",
                 "logit_bias", "response_format", "tools", "tool_choice"}  # fmt: skip
REASONING_FIELDS = OPENAI_FIELDS - PENALTIES - {
    "temperature", "top_p", "stop", "seed", "logit_bias", "max_tokens",
}  # fmt: skip

RULES: dict[str, Rule] = {
    "openai": both(fields(OPENAI_FIELDS), openai_form),
    "openai-reasoning": both(fields(REASONING_FIELDS), openai_form),
    "openai-responses": both(
        fields(
            {
                "model",
                "input",
                "instructions",
                "text",
                "stream",
                "temperature",
                "top_p",
                "tools",
                "tool_choice",
                "max_output_tokens",
            }
        ),
        responses_form,
    ),
    "azure": both(fields(OPENAI_FIELDS), azure_form),
    "azure-reasoning": both(fields(REASONING_FIELDS), azure_form),
    "anthropic": both(
        fields(
            {
                "model",
                "messages",
                "system",
                "max_tokens",
                "stop_sequences",
                "stream",
                "output_config",
            }
        ),
        anthropic_form,
    ),
    "anthropic-prefill": both(
        fields(
            {
                "model",
                "messages",
                "system",
                "max_tokens",
                "stop_sequences",
                "stream",
                "temperature",
                "top_p",
                "top_k",
            }
        ),
        anthropic_form,
    ),
    "gemini": both(
        fields(CHAT | USAGE | {"max_tokens", "max_completion_tokens", "n", "response_format"}),
        plain_form,
    ),
    "mistral": both(
        fields(CHAT | PENALTIES | {"max_tokens", "random_seed", "n", "response_format"}, 422),
        mistral_form,
    ),
    "deepseek": both(
        fields(CHAT | USAGE | PENALTIES | {"max_tokens", "response_format"}), deepseek_form
    ),
    "groq": both(
        fields(CHAT | USAGE | {"max_completion_tokens", "max_tokens", "seed", "response_format"}),
        groq_form,
    ),
    "openrouter": both(
        fields(
            CHAT
            | USAGE
            | PENALTIES
            | MORE
            | {"max_tokens", "seed", "response_format", "provider", "logit_bias"}
        ),
        openrouter_form,
    ),
    "together": both(
        fields(
            CHAT
            | USAGE
            | PENALTIES
            | MORE
            | {"max_tokens", "seed", "response_format", "logit_bias"}
        ),
        together_form,
    ),
    "ollama": both(
        fields(CHAT | USAGE | PENALTIES | {"max_tokens", "seed", "response_format"}), plain_form
    ),
    "lmstudio": both(
        fields(
            CHAT
            | USAGE
            | PENALTIES
            | {"max_tokens", "seed", "response_format", "logit_bias", "top_k", "repeat_penalty"}
        ),
        plain_form,
    ),
    "vllm": both(
        fields(
            CHAT
            | USAGE
            | PENALTIES
            | MORE
            | {
                "max_tokens",
                "max_completion_tokens",
                "seed",
                "logit_bias",
                "response_format",
                "structured_outputs",
                "skip_special_tokens",
                "spaces_between_special_tokens",
                "continue_final_message",
                "add_generation_prompt",
            }
        ),
        vllm_form,
    ),
    "sglang": both(
        fields(
            CHAT
            | USAGE
            | PENALTIES
            | MORE
            | {
                "max_tokens",
                "seed",
                "logit_bias",
                "response_format",
                "regex",
                "ebnf",
                "skip_special_tokens",
                "continue_final_message",
                "add_generation_prompt",
            }
        ),
        sglang_form,
    ),
    "llama.cpp": both(
        fields(
            CHAT
            | USAGE
            | PENALTIES
            | {
                "max_tokens",
                "seed",
                "logit_bias",
                "response_format",
                "grammar",
                "json_schema",
                "top_k",
                "min_p",
                "prompt",
            }
        ),
        llama_cpp_form,
    ),
    "transformers": fields(
        CHAT | {"prompt", "max_tokens", "seed", "logit_bias", "frequency_penalty"}, 422
    ),
    "compatible": fields(CHAT | {"max_tokens"}),
}
"""The rules of each preset's provider."""
RULES["deepseek-beta"] = RULES["deepseek"]

for _served in ("vllm", "sglang"):
    # The same server with a parser of what its model thinks.
    RULES[f"{_served}-reasoning"] = RULES[_served]

OPENAI = "https://developers.openai.com/api/docs/guides/"
SOURCES = {
    "openai": f"{OPENAI}structured-outputs",
    "openai-reasoning": f"{OPENAI}reasoning",
    "openai-responses": f"{OPENAI}structured-outputs",
    "azure": "https://learn.microsoft.com/en-us/azure/ai-services/openai/how-to/structured-outputs",
    "azure-reasoning": "https://learn.microsoft.com/en-us/azure/foundry/openai/how-to/reasoning",
    "anthropic": "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
    "gemini": "https://ai.google.dev/gemini-api/docs/openai",
    "mistral": "https://docs.mistral.ai/api/",
    "deepseek": "https://api-docs.deepseek.com/news/news0725",
    "groq": "https://console.groq.com/docs/structured-outputs",
    "openrouter": "https://openrouter.ai/docs/structured-outputs",
    "together": "https://docs.together.ai/docs/inference/chat/structured-outputs",
    "ollama": "https://docs.ollama.com/api/openai-compatibility",
    "lmstudio": "https://lmstudio.ai/docs/developer/openai-compat/chat-completions",
    "vllm": "https://docs.vllm.ai/en/latest/features/structured_outputs/",
    "sglang": "https://docs.sglang.io/advanced_features/structured_outputs.html",
    "llama.cpp": "https://github.com/ggml-org/llama.cpp/issues/11847",
}
"""Where the rules of a provider stand. `transformers` is run itself, and `compatible` is nobody."""
