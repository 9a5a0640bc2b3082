"""Greedy, unconstrained answers to held-out prompts: how many are valid JSON, and how many do what was asked.

Run as `python -m training.evaluate`; the training command runs it too and keeps the figures in `record.json`.
"""

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from training.corpus import held_out_examples
from training.prompts import FENCE, LONGEST_OBJECT, TEXT_FAMILIES, Example

CHECKPOINT = Path(__file__).parent.parent / "python" / "stencilm" / "tiny"
HELD_OUT_SEED = 7
JSON_FAMILIES = ("describe", "wanted_keys", "schema", "question", "extract", "list", "tool_call")
HELD_OUT_TEXT_FAMILIES = ("sql", "arithmetic", "choice")
"""Text families with prompts enough to hold some out."""


@dataclass(frozen=True)
class Figure:
    """What came of the prompts of one family."""

    family: str
    prompts: int
    valid: int
    faithful: int


def n_keys_prompt(count: int, kind: str = "string") -> Example:
    prompt = f"Here is a JSON object, with {count} keys, using only {kind} values:\n\n{FENCE}json\n"
    return Example("n_keys", prompt, "", count=count)


def load(folder: Path) -> tuple[Any, Any]:
    """The model in float32, and its tokenizer."""
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(folder, padding_side="left")


def answers(
    model: Any, tokenizer: Any, prompts: Sequence[str], *, longest: int = 400, batch: int = 32
) -> list[str]:
    """Greedy answers, each up to its end-of-text token."""
    found: list[str] = []
    for first in range(0, len(prompts), batch):
        some = list(prompts[first : first + batch])
        inputs = tokenizer(some, return_tensors="pt", padding=True)
        inputs.pop("token_type_ids", None)
        with torch.inference_mode():
            tokens = model.generate(**inputs, max_new_tokens=longest, do_sample=False)
        new = tokens[:, inputs["input_ids"].shape[1] :]
        found += tokenizer.batch_decode(new, skip_special_tokens=True)
    return found


def body(answer: str) -> str:
    """The answer without the fence that closes it."""
    return answer.split(f"\n{FENCE}", 1)[0]


def parsed(answer: str) -> tuple[bool, Any]:
    """Whether the answer is one JSON text, and its value."""
    try:
        return True, json.loads(body(answer))
    except ValueError:
        return False, None


def is_faithful(example: Example, value: Any) -> bool:
    """Whether a JSON value has what the prompt asked for."""
    if example.exact:
        return bool(value == json.loads(example.answer))
    if example.keys is not None:
        return isinstance(value, dict) and tuple(value) == example.keys
    if example.count is not None:
        return isinstance(value, (dict, list)) and len(value) == example.count
    return isinstance(value, dict)


def judge(example: Example, answer: str) -> tuple[bool, bool]:
    """Whether the answer is well-formed, and whether it is what the prompt asked for."""
    if example.family in TEXT_FAMILIES:
        well_formed = {
            "sql": r"(SELECT|DELETE|UPDATE|INSERT) [^;]*;",
            "arithmetic": r" ?(-?\d+|-?\d+ [-+*] \d+ = -?\d+)",
        }.get(example.family, r"[a-z]+")
        return bool(re.fullmatch(well_formed, answer)), answer == example.answer
    valid, value = parsed(answer)
    return valid, valid and is_faithful(example, value)


def figure(model: Any, tokenizer: Any, family: str, examples: Sequence[Example]) -> Figure:
    given = answers(model, tokenizer, [example.prompt for example in examples])
    verdicts = [judge(example, answer) for example, answer in zip(examples, given, strict=True)]
    return Figure(
        family=family,
        prompts=len(examples),
        valid=sum(valid for valid, _ in verdicts),
        faithful=sum(faithful for _, faithful in verdicts),
    )


def figures(model: Any, tokenizer: Any, *, per_family: int = 40) -> list[Figure]:
    """One figure for each family; the counted objects are judged together and for four counts alone."""
    found = [
        figure(model, tokenizer, family, held_out_examples(HELD_OUT_SEED, family, per_family))
        for family in (*JSON_FAMILIES, *HELD_OUT_TEXT_FAMILIES)
    ]
    every = [n_keys_prompt(count) for count in range(1, LONGEST_OBJECT + 1)]
    found.append(figure(model, tokenizer, "n_keys (1 to 44)", every))
    for count in (10, 20, 30, 40):
        kinds = [n_keys_prompt(count, kind) for kind in ("string", "integer", "number", "boolean")]
        found.append(figure(model, tokenizer, f"n_keys {count}, string", kinds[:1]))
        found.append(figure(model, tokenizer, f"n_keys {count}, other kinds", kinds[1:]))
    return found


def json_total(found: Iterable[Figure]) -> Figure:
    """All held-out prompts that ask for JSON, and no others."""
    counted = [one for one in found if one.family in JSON_FAMILIES]
    return Figure(
        family="all held-out JSON prompts",
        prompts=sum(one.prompts for one in counted),
        valid=sum(one.valid for one in counted),
        faithful=sum(one.faithful for one in counted),
    )


def table(found: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = ["| family | prompts | valid | as asked |", "|---|--:|--:|--:|"]
    lines += [
        f"| {one.family} | {one.prompts} | {one.valid / one.prompts:.1%} | {one.faithful / one.prompts:.1%} |"
        for one in found
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=CHECKPOINT)
    parser.add_argument("--per-family", type=int, default=40, help="held-out prompts per family")
    parser.add_argument("--show", type=int, default=0, help="also print so many answers per family")
    options = parser.parse_args()
    model, tokenizer = load(options.folder)
    for family in JSON_FAMILIES if options.show else ():
        examples = held_out_examples(HELD_OUT_SEED, family, options.show)
        given = answers(model, tokenizer, [example.prompt for example in examples])
        for example, answer in zip(examples, given, strict=True):
            print(f"{example.prompt}{answer}\n")
    found = figures(model, tokenizer, per_family=options.per_family)
    print(table([json_total(found), *found]))


if __name__ == "__main__":
    main()
