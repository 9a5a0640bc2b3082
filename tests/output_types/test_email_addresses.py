"""`EmailStr` and `NameEmail`: what their grammars allow is what email-validator takes."""

from __future__ import annotations

import random
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, EmailStr, Field, NameEmail, TypeAdapter

from stencilm.errors import UnsupportedFeature
from stencilm.grammars.outputs import resolve

from .random_texts import matcher, random_text

pytest.importorskip("email_validator")


class Person(BaseModel):
    email: EmailStr
    other: Annotated[EmailStr | None, Field(max_length=12)] = None
    full: NameEmail | None = None


@pytest.mark.parametrize(
    "tp",
    [
        EmailStr,
        NameEmail,
        Annotated[EmailStr, Field(min_length=8, max_length=12)],
        Annotated[EmailStr, Field(pattern=r"@corp\.com$")],
        dict[EmailStr, int],
        Annotated[set[EmailStr], Field(min_length=2)],
        Person,
    ],
    ids=str,
)
def test_every_text_is_a_value(tp: Any) -> None:
    output, start = resolve(tp), matcher(tp)
    for seed in range(100):
        output.parse(random_text(start, random.Random(seed)))


LONG = ".".join(["b" * 60] * 4)


@pytest.mark.parametrize(
    "text",
    [
        *("a@b.co", "ann.lee+x@mail.example.com", "o'neil@x-y.org", "a@b.c1d", "a@b.c", "a@b.co."),
        *("A@b.co", "a@B.co", "info@b.co", "Info@b.co", "infO@b.co", "Information@b.co"),
        *("a@xn--80ak6aa92e.com", "a@ab--c.co", "a@a--b.co", "a@b", "a@[1.2.3.4]", '"a"@b.co'),
        *("a@b.local", "a@b.localx", "a@blocal.com", "a@local.com", "a@test", "a.test@b.co"),
        *("a@b.c1", "a@b.1c", "a@1.2", "a.@b.co", ".a@b.co", "a..b@b.co", "a@b..co", "a@-b.co"),
        *(f"{'a' * 64}@b.co", f"a@{'b' * 63}.co", f"a@{'b' * 64}.co", f"a@{LONG}.cooo"),
        *(f"a@{LONG}.{'c' * 8}", f"a@{LONG}.{'c' * 9}", f"{'a' * 8}@{LONG}.cc", "a@b-.co", "@b.co"),
    ],
)
def test_an_address_is_allowed_where_it_is_read_as_it_is(text: str) -> None:
    try:
        is_kept = TypeAdapter(EmailStr).validate_python(text) == text
    except ValueError:
        is_kept = False
    start = matcher(EmailStr)
    quoted = '"' + text.replace('"', '\\"') + '"'
    assert (start.longest_valid_prefix(quoted).status == "complete") == is_kept


@pytest.mark.parametrize("name", ["Ann Lee", "Dr. A. O'Neil-Ba", "José Ñuñez", "李 小龙", "a"])
def test_names_before_addresses_can_be_written(name: str) -> None:
    value = NameEmail(name, "a@b.co")
    output, start = resolve(NameEmail), matcher(NameEmail)
    text = f'"{output.dump(value)}"'
    assert start.longest_valid_prefix(text).status == "complete"
    assert output.parse(text) == value


@pytest.mark.parametrize("tp", [dict[NameEmail, int], set[NameEmail]], ids=str)
def test_what_has_no_hash_is_refused(tp: Any) -> None:
    with pytest.raises(UnsupportedFeature, match="NameEmail"):
        resolve(tp).grammar()
