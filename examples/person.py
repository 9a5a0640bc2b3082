"""A typed object from the model that comes with this package: `python examples/person.py`.

The model is tiny and makes things up, but the object always has the shape of `Person`, because
no other text can be written. The lengths are bounded, so a text of at most a few hundred tokens
always ends.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import BaseModel, Field

import stencilm

Word = Annotated[str, Field(min_length=1, max_length=20)]


class Job(Enum):
    BAKER = "baker"
    DOCTOR = "doctor"
    PILOT = "pilot"
    TEACHER = "teacher"


class Address(BaseModel):
    street: Word
    city: Word
    code: str = Field(pattern="^[0-9]{5}$")


class Person(BaseModel):
    name: Word
    age: int = Field(ge=0, le=120)
    job: Job
    address: Address
    hobbies: list[Word] = Field(max_length=3)


def main() -> None:
    """Write one person with the embedded model and print what the type made of the text."""
    model = stencilm.load("tiny")
    person = model("Describe a person as JSON.\n", Person)
    print(type(person).__name__, "called", person.name)
    print(person.model_dump_json(indent=2))


if __name__ == "__main__":
    main()
