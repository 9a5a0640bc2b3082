"""What a key holds: one maker of values for every key, so that key and type always agree.

The model learns `age` -> integer and `email` -> address because the whole corpus asks this one table.
"""

import random
from collections.abc import Callable, Sequence

from training import words

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Maker = Callable[[random.Random], Json]


def first_name(rng: random.Random) -> str:
    return rng.choice(words.FIRST_NAMES)


def surname(rng: random.Random) -> str:
    if rng.random() < 0.6:
        return rng.choice(words.SURNAMES)
    return rng.choice(words.SURNAME_HEADS) + rng.choice(words.SURNAME_TAILS)


def person_name(rng: random.Random) -> str:
    return f"{first_name(rng)} {surname(rng)}"


def email(rng: random.Random) -> str:
    return f"{first_name(rng).lower()}@{rng.choice(words.DOMAINS)}"


def phone(rng: random.Random) -> str:
    return f"+{rng.randint(1, 99)} {rng.randint(100, 999)} {rng.randint(1000, 9999)}"


def street(rng: random.Random) -> str:
    name = f"{rng.choice(words.STREET_HEADS)} {rng.choice(words.STREET_TAILS)}"
    return f"{rng.randint(1, 199)} {name}"


def date(rng: random.Random) -> str:
    return f"{rng.randint(1960, 2029)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def clock(rng: random.Random) -> str:
    return f"{rng.randint(0, 23):02}:{rng.choice((0, 5, 10, 15, 20, 30, 40, 45, 50)):02}"


def timestamp(rng: random.Random) -> str:
    return f"{date(rng)}T{clock(rng)}:00Z"


def url(rng: random.Random) -> str:
    return f"https://{rng.choice(words.DOMAINS)}/{rng.choice(words.THINGS)}"


def uuid(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join(
        (digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:])
    )


def hex_color(rng: random.Random) -> str:
    return f"#{rng.getrandbits(24):06x}"


def ip_address(rng: random.Random) -> str:
    return f"10.{rng.randint(0, 255)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}"


def version(rng: random.Random) -> str:
    return f"{rng.randint(0, 9)}.{rng.randint(0, 20)}.{rng.randint(0, 9)}"


def code(rng: random.Random) -> str:
    return "".join(rng.choice("ABCDEFGHKLMNPRSTVX") for _ in range(2)) + str(rng.randint(100, 999))


def title(rng: random.Random) -> str:
    shape = rng.randrange(4)
    noun = rng.choice(words.ABSTRACT).capitalize()
    if shape == 0:
        return f"The {rng.choice(words.ADJECTIVES).capitalize()} {noun}"
    if shape == 1:
        return f"{noun} and {rng.choice(words.ABSTRACT).capitalize()}"
    if shape == 2:
        return f"The {noun} of the {rng.choice(words.PLACES).capitalize()}"
    return f"{rng.choice(words.ADJECTIVES).capitalize()} {noun}"


def product(rng: random.Random) -> str:
    return f"{rng.choice(words.ADJECTIVES)} {rng.choice(words.THINGS)}"


def company(rng: random.Random) -> str:
    return f"{rng.choice(words.BRANDS)} {rng.choice(words.COMPANY_TAILS)}"


def sentence(rng: random.Random) -> str:
    """One short English sentence."""
    adjective, other = rng.choice(words.ADJECTIVES), rng.choice(words.ADJECTIVES)
    animal, thing = rng.choice(words.ANIMALS), rng.choice(words.THINGS)
    place, name = rng.choice(words.PLACES), first_name(rng)
    shape = rng.randrange(9)
    if shape == 0:
        return f"The {adjective} {animal} {rng.choice(words.PAST_VERBS)} near the {place}."
    if shape == 1:
        return f"{name} {rng.choice(words.TRANSITIVE_PAST)} a {adjective} {thing}."
    if shape == 2:
        return f"The {thing} is {adjective} and {other}."
    if shape == 3:
        return f"{name} works as a {rng.choice(words.JOBS)} in {rng.choice(words.CITIES)}."
    if shape == 4:
        return f"We {rng.choice(words.TRANSITIVE_PAST)} the {thing} in the {place}."
    if shape == 5:
        return f"{name} likes {rng.choice(words.FRUITS)} and {rng.choice(words.FOODS)}."
    if shape == 6:
        return f"It was a {adjective} day, so {name} went to the {place}."
    if shape == 7:
        return f"There are {rng.randint(2, 20)} {animal}s in the {place}."
    return f"The {animal} {rng.choice(words.PAST_VERBS)} {rng.choice(words.ADVERBS)}."


def many_scripts(rng: random.Random) -> str:
    """Text beyond ASCII, so that the byte tokens are trained too."""
    return " ".join(rng.sample(words.TEXT_IN_MANY_SCRIPTS, rng.randint(1, 3)))


def one_of(values: Sequence[str]) -> Maker:
    return lambda rng: rng.choice(values)


def integer(low: int, high: int) -> Maker:
    return lambda rng: rng.randint(low, high)


def decimal(low: float, high: float, places: int) -> Maker:
    return lambda rng: round(rng.uniform(low, high), places)


def boolean(rng: random.Random) -> bool:
    return rng.random() < 0.5


def some(values: Sequence[str], most: int) -> Maker:
    """A list of different words."""
    return lambda rng: list(rng.sample(values, rng.randint(1, most)))


def integers(low: int, high: int, most: int) -> Maker:
    return lambda rng: [rng.randint(low, high) for _ in range(rng.randint(1, most))]


def maybe(maker: Maker) -> Maker:
    """The value, or now and then null."""
    return lambda rng: None if rng.random() < 0.3 else maker(rng)


def record(**makers: Maker) -> Maker:
    """A nested object."""
    return lambda rng: {key: maker(rng) for key, maker in makers.items()}


def records(most: int, **makers: Maker) -> Maker:
    """A list of nested objects."""
    one = record(**makers)
    return lambda rng: [one(rng) for _ in range(rng.randint(1, most))]


ENUMS: dict[str, tuple[str, ...]] = {
    "status": ("active", "inactive", "pending", "closed"),
    "priority": ("low", "medium", "high"),
    "size": ("S", "M", "L", "XL"),
    "gender": ("female", "male", "other"),
    "role": ("admin", "editor", "viewer", "guest"),
    "level": ("beginner", "intermediate", "advanced"),
    "season": ("spring", "summer", "autumn", "winter"),
    "direction": ("north", "south", "east", "west"),
    "sentiment": ("positive", "negative", "neutral"),
    "payment": ("card", "cash", "transfer"),
    "theme": ("light", "dark", "auto"),
    "shape": ("circle", "square", "triangle", "star"),
}

STRINGS: dict[str, Maker] = {
    "name": person_name, "title": title, "city": one_of(words.CITIES), "country": one_of(words.COUNTRIES),
    "color": one_of(words.COLORS), "email": email, "job": one_of(words.JOBS), "animal": one_of(words.ANIMALS),
    "food": one_of(words.FOODS), "drink": one_of(words.DRINKS), "hobby": one_of(words.HOBBIES),
    "sport": one_of(words.SPORTS), "language": one_of(words.LANGUAGES), "company": company, "street": street,
    "phone": phone, "date": date, "time": clock, "day": one_of(words.WEEKDAYS), "month": one_of(words.MONTHS),
    "season": one_of(ENUMS["season"]), "weather": one_of(words.WEATHER), "fruit": one_of(words.FRUITS),
    "genre": one_of(words.GENRES), "music": one_of(words.MUSIC_GENRES), "instrument": one_of(words.INSTRUMENTS),
    "subject": one_of(words.SUBJECTS), "vehicle": one_of(words.VEHICLES), "brand": one_of(words.BRANDS),
    "material": one_of(words.MATERIALS), "shape": one_of(ENUMS["shape"]), "size": one_of(ENUMS["size"]),
    "status": one_of(ENUMS["status"]), "priority": one_of(ENUMS["priority"]), "role": one_of(ENUMS["role"]),
    "level": one_of(ENUMS["level"]), "place": one_of(words.PLACES), "product": product,
    "department": one_of(words.DEPARTMENTS), "currency": one_of(words.CURRENCIES), "tag": one_of(words.TAGS),
    "code": code, "version": version, "url": url, "mood": one_of(words.ADJECTIVES), "tool": one_of(words.THINGS),
    "friend": first_name, "gender": one_of(ENUMS["gender"]), "theme": one_of(ENUMS["theme"]),
    "direction": one_of(ENUMS["direction"]), "payment": one_of(ENUMS["payment"]), "note": sentence,
}  # fmt: skip
"""Keys with string values, in the order in which a long object usually names them."""

OTHERS: dict[str, Maker] = {
    "id": integer(1, 9999), "age": integer(1, 99), "year": integer(1900, 2029), "price": decimal(1, 200, 2),
    "quantity": integer(1, 50), "active": boolean, "tags": some(words.TAGS, 4), "rating": decimal(1, 5, 1),
    "height": integer(40, 210), "weight": decimal(1, 120, 1), "score": integer(0, 100), "pages": integer(40, 900),
    "first_name": first_name, "last_name": surname, "married": boolean, "student": boolean,
    "hobbies": some(words.HOBBIES, 3), "languages": some(words.LANGUAGES, 3), "author": person_name,
    "director": person_name, "artist": person_name, "owner": person_name, "manager": maybe(person_name),
    "address": record(street=street, city=one_of(words.CITIES), zip=lambda rng: str(rng.randint(10000, 99999))),
    "population": integer(1000, 9000000), "area": decimal(1, 900, 1), "capital": boolean,
    "in_stock": boolean, "discount": maybe(integer(5, 50)), "colors": some(words.COLORS, 3),
    "items": records(3, product=one_of(words.THINGS), quantity=integer(1, 9), price=decimal(1, 99, 2)),
    "customer": record(name=person_name, email=email), "total": decimal(5, 900, 2), "paid": boolean,
    "ingredients": some(words.FOODS, 5), "minutes": integer(5, 180), "servings": integer(1, 8),
    "vegetarian": boolean, "species": one_of(words.ANIMALS), "legs": integer(0, 8), "wild": boolean,
    "doors": integer(2, 5), "electric": boolean, "speed": integer(20, 250), "location": one_of(words.CITIES),
    "guests": some(words.FIRST_NAMES, 4), "start": timestamp, "end": maybe(timestamp), "online": boolean,
    "username": lambda rng: first_name(rng).lower() + str(rng.randint(1, 99)), "verified": boolean,
    "followers": integer(0, 90000), "employees": integer(1, 5000), "founded": integer(1900, 2024),
    "salary": integer(20000, 120000), "remote": boolean, "skills": some(words.SUBJECTS, 3),
    "grades": integers(1, 10, 5), "credits": integer(1, 10), "teacher": person_name,
    "temperature": decimal(-20, 40, 1), "humidity": integer(10, 100), "wind": integer(0, 90), "rain": boolean,
    "from": one_of(words.CITIES), "to": one_of(words.CITIES), "flight": code, "seat": maybe(code),
    "stars": integer(1, 5), "rooms": integer(1, 9), "pool": boolean, "garden": boolean,
    "players": integer(1, 8), "done": boolean, "due": maybe(date), "text": sentence, "sender": email,
    "read": boolean, "unit": one_of(("C", "kg", "m", "s")), "values": integers(0, 99, 6), "enabled": boolean,
    "cuisine": one_of(words.LANGUAGES), "open": boolean, "menu": some(words.FOODS, 4),
    "members": records(3, name=first_name, age=integer(18, 70)), "wins": integer(0, 30), "losses": integer(0, 30),
    "balance": decimal(-500, 9000, 2), "comments": records(2, user=first_name, text=sentence),
    "likes": integer(0, 999), "stock": integer(0, 500), "host": ip_address, "port": integer(1, 65535),
    "debug": boolean, "timeout": integer(1, 120), "x": integer(-99, 99), "y": integer(-99, 99),
    "position": record(x=integer(-99, 99), y=integer(-99, 99)), "pet": maybe(one_of(words.ANIMALS)),
    "created": date, "sentiment": one_of(ENUMS["sentiment"]), "duration": integer(30, 600), "album": title,
    "uuid": uuid, "count": integer(0, 99), "name_local": many_scripts, "parent": maybe(integer(1, 999)),
    "settings": record(theme=one_of(ENUMS["theme"]), volume=integer(0, 10), muted=boolean),
}  # fmt: skip

FIELDS: dict[str, Maker] = {**STRINGS, **OTHERS}
"""Every key the corpus knows."""
