"""What the chat templates of models write for known calls, kept as a table.

The templates themselves are not part of this project. `python -m tool_calls.rendered FOLDER`, run
in `tests`, renders those of a folder, such as `models/templates` of llama.cpp, and writes
`rendered.json` beside this
file.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from stencilm.chat_templates.renderer import Renderer
from stencilm.tool_calls.probing import rest_after
from tool_calls.requests import CALLS, TOOLS

TABLE = Path(__file__).parent / "rendered.json"
# The template of a model, by the name of its file, and its family.
FAMILIES: dict[str, str] = {
    "Apertus-8B-Instruct": "apertus",
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "unsloth-Apriel-1.5": "apriel",
    "ByteDance-Seed-OSS": "seed_oss",
    "Cohere2MoE": "cohere_text",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere",
    "GLM-4.6": "glm_4_5",
    "GLM-4.7-Flash": "glm_4_7",
    "GigaChat3-10B-A1.8B": "gigachat_3_0",
    "GigaChat3.1-10B-A1.8B": "gigachat_3",
    "Kimi-K2-Instruct": "kimi",
    "Kimi-K2-Thinking": "kimi",
    "Kimi-K3": "kimi_k3",
    "LFM2.5-8B-A1B": "lfm_2",
    "MiMo-VL": "mimo",
    "MiniMax-M1": "minimax_m1",
    "MiniMax-M2": "minimax",
    "MiniMax-M3": "minimax_m3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral_v11",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral_v11",
    "unsloth-mistral-Devstral-Small-2507": "mistral_v11",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron_3",
    "NVIDIA-Nemotron-Nano-v2": "nemotron_nano_2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "qwen_2_5",
    "Qwen-Qwen2.5-7B-Instruct": "qwen_2_5",
    "Qwen-Qwen3-0.6B": "qwen_3",
    "Qwen3-Coder": "qwen_3_coder",
    "Qwen3.5-4B": "qwen_3_5",
    "Reka-Edge": "reka_edge",
    "Spark2.5": "spark_2_5",
    "StepFun3.5-Flash": "step_3_5",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek_r1",
    "deepseek-ai-DeepSeek-V3.1": "deepseek_v3_1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek_v3_2",
    "deepseek-ai-DeepSeek-V4": "deepseek_v4",
    "google-gemma-4-31B-it": "gemma_4",
    "google-gemma-4-31B-it-interleaved": "gemma_4",
    "ibm-granite-granite-4.0": "granite_4",
    "ibm-granite-granite-4.1": "granite_4",
    "inclusionai-ling-3.0-flash": "ling_3",
    "meetkai-functionary-medium-v3.1": "functionary",
    "meta-llama-Llama-3.1-8B-Instruct": "llama",
    "meta-llama-Llama-3.3-70B-Instruct": "llama",
    "muse-glimmer": "muse_glimmer",
    "openai-gpt-oss-120b": "harmony",
    "openbmb-MiniCPM5-1B": "minicpm_5",
    "poolside-Laguna-S-2.1": "laguna",
    "poolside-Laguna-XS-2.1": "laguna",
    "tencent-Hy3": "hunyuan_3_opensource",
    "upstage-Solar-Open-100B": "solar_open",
}
USER = {"role": "user", "content": "How is the weather?"}


def conversation(calls: list[tuple[str, dict[str, Any]]], ids: list[str], as_text: bool) -> Any:
    """A question, calls, and what the tools gave."""
    message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "type": "function",
                "id": call_id,
                "function": {
                    "name": name,
                    "arguments": json.dumps(arguments) if as_text else arguments,
                },
            }
            for (name, arguments), call_id in zip(calls, ids, strict=True)
        ],
    }
    results = [
        {"role": "tool", "name": name, "tool_call_id": call_id, "content": '{"degrees": 21}'}
        for (name, _), call_id in zip(calls, ids, strict=True)
    ]
    return [USER, message, *results]


def answer(renderer: Renderer, calls: list[tuple[str, dict[str, Any]]]) -> str:
    """The calls as the template writes them; it must also write them with the results of the tools
    after them.

    Raises ValueError where it writes no such calls.
    """
    error: Exception | None = None
    for as_text in (False, True):
        for kind in ("{0}{0}{0}{0}{0}{0}{0}{0}{0}", "functions.{1}:{0}"):
            ids = [kind.format(number, name) for number, (name, _) in enumerate(calls)]
            messages = conversation(calls, ids, as_text)
            try:
                prompt = renderer.render([USER], tools=TOOLS, add_generation_prompt=True)
                alone = renderer.render(messages[:2], tools=TOOLS, add_generation_prompt=False)
                whole = renderer.render(messages, tools=TOOLS, add_generation_prompt=False)
            except Exception as raised:
                error = raised
                continue
            names = [name for name, _ in calls]
            found = rest_after(prompt, alone)
            if all(found.count(name) >= names.count(name) and name in whole for name in names):
                return found
    raise ValueError(f"the template writes no such calls: {error}")


def main(folder: str) -> None:
    """Writes the table."""
    table: dict[str, Any] = {}
    for stem, family in FAMILIES.items():
        source = (Path(folder) / f"{stem}.jinja").read_text()
        renderer = Renderer(source, {"eos_token": "<|eos|>", "bos_token": ""})
        prompt = renderer.render([USER], tools=TOOLS, add_generation_prompt=True)
        answers = {}
        for kind, calls in CALLS.items():
            try:
                answers[kind] = answer(renderer, calls)
            except ValueError as error:
                print(f"{stem}, {kind}: {error}")
        table[stem] = {
            "family": family,
            "sha256": hashlib.sha256(source.encode()).hexdigest(),
            "prompt_end": prompt[-40:],
            "answers": answers,
        }
    TABLE.write_text(json.dumps(table, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
