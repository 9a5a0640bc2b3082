"""The same program on any model: `python examples/anywhere.py`, or `... openai gpt-5-mini`."""

from __future__ import annotations

import asyncio
import sys

from pydantic import BaseModel, Field

import stencilm
from stencilm import TypedModel


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=120)
    hobbies: list[str] = Field(max_length=3)


PROMPT = "Describe a person as JSON.\n"


def people(model: TypedModel) -> list[Person]:
    first = model(PROMPT, Person, max_tokens=200)
    second = model.generate(PROMPT, Person, max_tokens=200)
    assert second.value is not None and second.finish_reason == "stop", second.error
    *partial, third = model.stream(PROMPT, Person, max_tokens=200)
    print(f"{second.stats.tokens} tokens, {len(partial)} partial values, then", third)
    return [first, second.value, third, *model.batch([PROMPT, PROMPT], Person, max_tokens=200)]


async def people_awaited(model: TypedModel) -> list[Person]:
    first = await model.acall(PROMPT, Person, max_tokens=200)
    second = await model.agenerate(PROMPT, Person, max_tokens=200)
    assert second.value is not None and second.finish_reason == "stop", second.error
    partial = [person async for person in model.astream(PROMPT, Person, max_tokens=200)]
    print(f"{second.stats.tokens} tokens, {len(partial)} values, the last of them", partial[-1])
    many = await model.abatch([PROMPT, PROMPT], Person, max_tokens=200)
    return [first, second.value, partial[-1], *many]


if __name__ == "__main__":
    doors = {"openai": stencilm.from_openai, "anthropic": stencilm.from_anthropic}
    chosen = doors[sys.argv[1]](None, sys.argv[2]) if len(sys.argv) > 2 else stencilm.load("tiny")
    print(people(chosen), asyncio.run(people_awaited(chosen)), sep="\n")
