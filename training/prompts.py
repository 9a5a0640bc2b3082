"""Prompt families: each is a function from a random generator to one prompt with its answer.

A prompt ends where the model starts; an answer ends with the end-of-text token, which is not written here.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from training import values, words
from training.kinds import KINDS, article, fill, schema_of, some_keys
from training.values import FIELDS, STRINGS, Json


@dataclass(frozen=True)
class Example:
    """One prompt with its answer, and what the prompt asked for."""

    family: str
    prompt: str
    answer: str
    keys: tuple[str, ...] | None = None
    """The keys the prompt names, in order."""
    count: int | None = None
    """The number of keys or list items the prompt names."""
    exact: bool = False
    """Whether the prompt has one right answer."""


Family = Callable[[random.Random], Example]

FENCE = "```"
LONGEST_OBJECT = 44
TEXT_FAMILIES = ("arithmetic", "choice", "scalar", "sentence", "sql")
"""Families whose answers need not be JSON."""


def written(rng: random.Random, value: Json, style: str | None = None) -> str:
    """JSON text in one of the usual layouts; most often as `json.dumps` writes it."""
    style = (
        style or rng.choices(("default", "compact", "2", "4", "tab"), weights=(74, 8, 12, 4, 2))[0]
    )
    plain = rng.random() < 0.9
    if style == "compact":
        return json.dumps(value, separators=(",", ":"), ensure_ascii=not plain)
    if style == "default":
        return json.dumps(value, ensure_ascii=not plain)
    return json.dumps(value, indent="\t" if style == "tab" else int(style), ensure_ascii=not plain)


def listed(names: Sequence[str], rng: random.Random) -> str:
    """Names in a sentence: `a, b and c` or `a, b, c`."""
    if len(names) > 1 and rng.random() < 0.4:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return ", ".join(names)


COUNTED: Mapping[str, tuple[values.Maker, ...]] = {
    "string": (),
    "integer": (values.integer(0, 99),),
    "boolean": (values.boolean,),
    "number": (values.decimal(0, 99, 1),),
}


def counted_keys(rng: random.Random, count: int) -> list[str]:
    """Different keys; mostly the first ones in their usual order, so that counting can be learnt."""
    names = list(STRINGS)
    shape = rng.random()
    if shape < 0.75:
        return names[:count]
    chosen = rng.sample(names, count)
    return sorted(chosen, key=names.index) if shape < 0.9 else chosen


def n_keys(rng: random.Random) -> Example:
    """An object with so many keys, in a fence."""
    count = rng.randint(1, LONGEST_OBJECT)
    kind = "string" if rng.random() < 0.8 else rng.choice(list(COUNTED))
    keys = counted_keys(rng, count)
    makers = COUNTED[kind]
    record: dict[str, Json] = {key: (makers[0] if makers else STRINGS[key])(rng) for key in keys}
    prompt = f"Here is a JSON object, with {count} keys, using only {kind} values:\n\n{FENCE}json\n"
    answer = f"{written(rng, record)}\n{FENCE}"
    return Example("n_keys", prompt, answer, count=count)


DESCRIBE = (
    "Describe {a} as JSON.", "Describe {a}.", "Give me {a} as JSON.", "Give me {a}.", "Write {a} as JSON.",
    "Invent {a} and answer as JSON.", "Return {a} as a JSON object.", "Make up {a} in JSON.",
    "Create {a} as JSON.", "I need {a} in JSON format.", "Show me {a} as JSON.", "JSON for {a}:",
    "Please describe {a}.", "Generate {a} as JSON.", "Question: Can you describe {a}?\nAnswer:",
)  # fmt: skip
STYLED = {
    "compact": "Describe {a} as compact JSON.",
    "2": "Describe {a} as pretty printed JSON.",
    "4": "Describe {a} as JSON, indented by four spaces.",
    "tab": "Describe {a} as JSON, indented by tabs.",
}


def describe(rng: random.Random) -> Example:
    """A record of a named kind, with keys of the model's own choice."""
    kind = rng.choice(KINDS)
    record = fill(rng, some_keys(rng, kind), kind)
    if rng.random() < 0.15:
        style = rng.choice(list(STYLED))
        prompt = STYLED[style].format(a=article(kind.name)) + "\n"
        return Example("describe", prompt, written(rng, record, style))
    prompt = rng.choice(DESCRIBE).format(a=article(kind.name)) + "\n"
    if rng.random() < 0.2:
        return Example("describe", f"{prompt}{FENCE}json\n", f"{written(rng, record)}\n{FENCE}")
    return Example("describe", prompt, written(rng, record))


WANTED = (
    "Write a JSON object with the keys {keys}.", "Give me JSON with the fields {keys}.",
    "Return a JSON object with these keys: {keys}.", "Answer as JSON with the keys {keys}.",
    "Make a JSON record with {keys}.", "Fields: {keys}. Answer as JSON.",
)  # fmt: skip


def wanted_keys(rng: random.Random) -> Example:
    """An object with exactly the keys that the prompt names."""
    if rng.random() < 0.5:
        kind = rng.choice(KINDS)
        keys = tuple(rng.sample(kind.keys, rng.randint(1, min(6, len(kind.keys)))))
        record = fill(rng, keys, kind)
        about = f"Describe {article(kind.name)} as JSON with the keys {{keys}}."
        prompt = (about if rng.random() < 0.6 else rng.choice(WANTED)).format(
            keys=listed(keys, rng)
        )
        if not prompt.startswith("Describe"):
            record = fill(rng, keys)
    else:
        keys = tuple(rng.sample(list(FIELDS), rng.randint(1, 8)))
        record = fill(rng, keys)
        prompt = rng.choice(WANTED).format(keys=listed(keys, rng))
    return Example("wanted_keys", prompt + "\n", written(rng, record), keys=keys)


SCHEMA = (
    "Write JSON for this schema:\n{schema}\n", "Schema: {schema}\nJSON: ", "JSON Schema:\n{schema}\nAnswer:\n",
    "Here is a JSON Schema:\n{schema}\nHere is JSON that fits:\n",
)  # fmt: skip


def schema(rng: random.Random) -> Example:
    """JSON that fits the small JSON Schema in the prompt."""
    if rng.random() < 0.5:
        kind = rng.choice(KINDS)
        keys = some_keys(rng, kind)[:6]
    else:
        keys = tuple(rng.sample(list(FIELDS), rng.randint(1, 6)))
    record: dict[str, Json] = {
        key: value for key, value in fill(rng, keys).items() if value is not None
    }
    form = schema_of(record)
    assert isinstance(form, dict)
    if rng.random() < 0.5:
        form["required"] = list(record)
    text = written(rng, form, rng.choice(("default", "default", "default", "compact", "2")))
    prompt = rng.choice(SCHEMA).format(schema=text)
    return Example("schema", prompt, written(rng, record, "default"), keys=tuple(record))


def question(rng: random.Random) -> Example:
    """A question with one right answer, given as JSON."""
    country, capital = rng.choice(list(words.CAPITALS.items()))
    first, second = rng.randint(0, 50), rng.randint(0, 50)
    name, thing = values.first_name(rng), rng.choice(words.THINGS)
    number = rng.randint(2, 20)
    asked, answer = rng.choice((
        (f"What is the capital of {country}?", {"answer": capital}),
        (f"Which country has the capital {capital}?", {"country": country}),
        (f"What is {first} + {second}?", {"result": first + second}),
        (f"Is {first} greater than {second}?", {"answer": first > second}),
        (f"{name} has {number} {thing}s. How many?", {"name": name, "thing": thing, "count": number}),
        (f"How many letters are in {name}?", {"word": name, "letters": len(name)}),
    ))  # fmt: skip
    prompt = rng.choice((f"{asked} Answer as JSON.\n", f"Question: {asked}\nJSON answer: "))
    return Example("question", prompt, json.dumps(answer), keys=tuple(answer), exact=True)


def extract(rng: random.Random) -> Example:
    """A sentence, and what it says as JSON."""
    name, city, job = values.person_name(rng), rng.choice(words.CITIES), rng.choice(words.JOBS)
    age, price, count = rng.randint(18, 90), rng.randint(2, 99), rng.randint(2, 12)
    thing, color, day = (
        rng.choice(words.THINGS),
        rng.choice(words.COLORS),
        rng.choice(words.WEEKDAYS),
    )
    cases: tuple[tuple[str, dict[str, Json]], ...] = (
        (f"{name} is {age} years old and lives in {city}.", {"name": name, "age": age, "city": city}),
        (f"{name} works as a {job} in {city}.", {"name": name, "job": job, "city": city}),
        (f"The {color} {thing} costs {price} dollars.", {"product": thing, "color": color, "price": price}),
        (f"{name} bought {count} {thing}s on {day}.",
         {"name": name, "product": thing, "quantity": count, "day": day}),
        (f"{name}, a {job}, is {age}.", {"name": name, "job": job, "age": age}),
    )  # fmt: skip
    text, record = rng.choice(cases)
    keys = tuple(record)
    prompt = rng.choice((
        f"Extract {listed(keys, rng)} as JSON.\nText: {text}\nJSON: ",
        f"Text: {text}\nReturn the {listed(keys, rng)} as JSON.\n",
        f"{text}\nAs JSON:\n",
    ))  # fmt: skip
    return Example("extract", prompt, json.dumps(record, ensure_ascii=False), keys=keys, exact=True)


LISTS: Mapping[str, values.Maker] = {
    "colors": values.one_of(words.COLORS), "animals": values.one_of(words.ANIMALS),
    "cities": values.one_of(words.CITIES), "fruits": values.one_of(words.FRUITS),
    "names": values.first_name, "numbers": values.integer(0, 99), "foods": values.one_of(words.FOODS),
    "words": values.one_of(words.ABSTRACT), "sports": values.one_of(words.SPORTS),
    "jobs": values.one_of(words.JOBS), "booleans": values.boolean, "prices": values.decimal(1, 99, 2),
    "countries": values.one_of(words.COUNTRIES), "books": values.title, "dates": values.date,
}  # fmt: skip


def lists(rng: random.Random) -> Example:
    """A list of so many things."""
    noun, maker = rng.choice(list(LISTS.items()))
    count = rng.randint(1, 10)
    items: list[Json] = []
    while len(items) < count:
        item = maker(rng)
        if noun in ("booleans", "numbers", "prices") or item not in items:
            items.append(item)
    prompt = rng.choice((
        f"Give me a JSON list of {count} {noun}.\n", f"List {count} {noun} as a JSON array.\n",
        f"Write {count} {noun} as JSON.\n",
    ))  # fmt: skip
    return Example("list", prompt, written(rng, items), count=count)


def tool_call(rng: random.Random) -> Example:
    """A request, and the call of a tool that answers it."""
    city, other = rng.sample(words.CITIES, 2)
    name, thing, first, second = (
        values.first_name(rng),
        rng.choice(words.THINGS),
        rng.randint(0, 99),
        rng.randint(0, 99),
    )
    day, hour, count = rng.choice(words.WEEKDAYS), values.clock(rng), rng.randint(1, 9)
    cases: tuple[tuple[str, str, dict[str, Json]], ...] = (
        (f"What is the weather in {city}?", "get_weather", {"city": city}),
        (f"Find a flight from {city} to {other}.", "find_flight", {"from": city, "to": other}),
        (f"Add {first} and {second}.", "add", {"a": first, "b": second}),
        (f"Send a message to {name}.", "send_message", {"to": name}),
        (f"Order {count} {thing}s.", "order", {"product": thing, "quantity": count}),
        (f"Set an alarm for {hour} on {day}.", "set_alarm", {"time": hour, "day": day}),
    )
    asked, tool, arguments = rng.choice(cases)
    call: dict[str, Json] = {"name": tool, "arguments": arguments}
    prompt = rng.choice((f"{asked}\nTool call: ", f"User: {asked}\nCall a tool as JSON.\n"))
    return Example("tool_call", prompt, json.dumps(call), keys=("name", "arguments"), exact=True)


TABLES: Mapping[str, tuple[str, ...]] = {
    "users": ("id", "name", "age", "city", "email"),
    "books": ("id", "title", "author", "year", "pages"),
    "orders": ("id", "customer", "total", "status"),
    "products": ("id", "name", "price", "stock", "color"),
    "cities": ("name", "country", "population"),
}
COMPARISONS = {
    "greater than": ">",
    "less than": "<",
    "at least": ">=",
    "at most": "<=",
    "equal to": "=",
}
TEXT_COLUMNS = {
    "name",
    "city",
    "title",
    "author",
    "customer",
    "status",
    "color",
    "country",
    "email",
}


def sql(rng: random.Random) -> Example:
    """A small SQL query."""
    table, columns = rng.choice(list(TABLES.items()))
    chosen = rng.sample(columns, rng.randint(1, 3))
    number = rng.choice([column for column in columns if column not in TEXT_COLUMNS])
    text = rng.choice([column for column in columns if column in TEXT_COLUMNS])
    said, sign = rng.choice(list(COMPARISONS.items()))
    value = rng.randint(1, 99)
    word = rng.choice(words.CITIES)
    shown = ", ".join(chosen)
    cases = (
        (f"that selects {listed(chosen, rng)} from {table}", f"SELECT {shown} FROM {table};"),
        (f"that selects {listed(chosen, rng)} from {table} where {number} is {said} {value}",
         f"SELECT {shown} FROM {table} WHERE {number} {sign} {value};"),
        (f"for all {table} where {text} is {word}", f"SELECT * FROM {table} WHERE {text} = '{word}';"),
        (f"that counts the {table}", f"SELECT COUNT(*) FROM {table};"),
        (f"that counts the {table} by {text}",
         f"SELECT {text}, COUNT(*) FROM {table} GROUP BY {text};"),
        (f"for the first {value} {table} ordered by {number}",
         f"SELECT * FROM {table} ORDER BY {number} LIMIT {value};"),
        (f"that deletes the {table} with {number} {said} {value}",
         f"DELETE FROM {table} WHERE {number} {sign} {value};"),
        (f"that sets {number} to {value} in {table} where {text} is {word}",
         f"UPDATE {table} SET {number} = {value} WHERE {text} = '{word}';"),
    )  # fmt: skip
    asked, query = rng.choice(cases)
    prompt = rng.choice(
        (f"Write a SQL query {asked}.\n", f"Write SQL {asked}.\n", f"SQL {asked}:\n")
    )
    return Example("sql", prompt, query, exact=True)


def arithmetic(rng: random.Random) -> Example:
    """A small sum."""
    first, second = rng.randint(0, 99), rng.randint(0, 99)
    sign = rng.choice("+-*")
    if sign == "*":
        first, second = first % 13, second % 13
    result = {"+": first + second, "-": first - second, "*": first * second}[sign]
    prompt, answer = rng.choice((
        (f"What is {first} {sign} {second}?\n", f"{result}"),
        (f"{first} {sign} {second} =", f" {result}"),
        (f"Compute {first} {sign} {second}.\n", f"{first} {sign} {second} = {result}"),
    ))  # fmt: skip
    return Example("arithmetic", prompt, answer, exact=True)


def choice(rng: random.Random) -> Example:
    """A question whose answer is one of the words it names."""
    good = rng.random() < 0.5
    verdict = rng.choice(words.GOOD if good else words.BAD)
    thing = rng.choice(words.FOODS + words.THINGS)
    groups = (words.ANIMALS, words.FRUITS, words.COLORS, words.JOBS, words.SPORTS)
    nouns = ("animal", "fruit", "color", "job", "sport")
    true_group, asked_group = rng.randrange(5), rng.randrange(5)
    if rng.random() < 0.5:
        asked_group = true_group
    word = rng.choice(groups[true_group])
    answer = "yes" if word in groups[asked_group] else "no"
    prompt, answer = rng.choice((
        (f"Is this review positive or negative?\nThe {thing} was {verdict}.\n",
         "positive" if good else "negative"),
        (f"Review: The {thing} was {verdict}.\nSentiment (positive or negative): ",
         "positive" if good else "negative"),
        (f"Is {article(word)} {article(nouns[asked_group])}? Answer yes or no.\n", answer),
        (f"What is {article(word)}: {', '.join(nouns)}?\n",
         next(noun for noun, group in zip(nouns, groups, strict=True) if word in group)),
    ))  # fmt: skip
    return Example("choice", prompt, answer, exact=True)


SCALARS: Mapping[str, values.Maker] = {
    "a date": values.date, "a time": values.clock, "an email address": values.email,
    "a phone number": values.phone, "a number": values.integer(0, 999), "a name": values.person_name,
    "a version number": values.version, "a color": values.one_of(words.COLORS), "a web address": values.url,
    "a hex color": values.hex_color, "an IP address": values.ip_address, "a UUID": values.uuid,
    "a city": values.one_of(words.CITIES), "a timestamp": values.timestamp, "a title": values.title,
    "a word": values.one_of(words.ABSTRACT), "a weekday": values.one_of(words.WEEKDAYS),
    "an animal name": values.one_of(words.ANIMALS), "a sentence": values.sentence,
    "some words in other scripts": values.many_scripts,
}  # fmt: skip


def scalar(rng: random.Random) -> Example:
    """One bare value."""
    noun, maker = rng.choice(list(SCALARS.items()))
    prompt = rng.choice(("Give me {}.\n", "Write {}.\n", "Please give me {}.\n", "Example of {}: "))
    return Example("scalar", prompt.format(noun), str(maker(rng)))


def sentence(rng: random.Random) -> Example:
    """Plain English: sentences with or without a prompt."""
    story = " ".join(values.sentence(rng) for _ in range(rng.randint(1, 4)))
    noun = rng.choice(words.ANIMALS + words.THINGS)
    prompt, answer = rng.choice((
        ("", story),
        ("Tell me a story.\n", story),
        (f"Write a sentence about {article(noun)}.\n",
         f"The {rng.choice(words.ADJECTIVES)} {noun} is near the {rng.choice(words.PLACES)}."),
    ))  # fmt: skip
    return Example("sentence", prompt, answer)


def bare(rng: random.Random) -> Example:
    """JSON with no prompt at all."""
    kind = rng.choice(KINDS)
    value: Json = fill(rng, some_keys(rng, kind), kind)
    if rng.random() < 0.25:
        keys = some_keys(rng, kind)[:4]
        value = [fill(rng, keys, kind) for _ in range(rng.randint(1, 4))]
    return Example("bare", "", written(rng, value))


FAMILIES: Mapping[Family, int] = {
    n_keys: 12, describe: 20, wanted_keys: 14, schema: 9, question: 6, extract: 6, lists: 6, tool_call: 5,
    sql: 7, arithmetic: 5, choice: 4, scalar: 5, sentence: 6, bare: 6,
}  # fmt: skip
"""Every family, with its weight in the corpus (by documents)."""
