"""The examples in each command's `--help`; they work from the repository's folder."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "generate": (
        "stencilm generate --schema examples/person.schema.json -p 'Describe a person.'",
        "stencilm generate --regex '(yes|no)' -p 'Is water wet?' --json",
        "stencilm generate --type examples/person.py:Person -p 'A person:' --live",
    ),
    "check": (
        "stencilm check examples/person.schema.json",
        "stencilm check --regex '[0-9]{4}-[0-9]{2}' --json",
    ),
    "convert": (
        "stencilm convert examples/person.schema.json",
        "stencilm convert --regex '[0-9]{4}' --to gbnf",
    ),
    "explain": (
        "stencilm explain --regex '[0-9]{4}-[0-9]{2}' --text 202",
        "stencilm explain examples/person.schema.json --text '{' --token '\"'",
    ),
    "mask": ("stencilm mask --regex '[0-9]{4}-[0-9]{2}' --text 202 --limit 5",),
    "trace": ("stencilm trace 2024-05 --regex '[0-9]{4}-[0-9]{2}'",),
    "index": (
        "stencilm index --regex '(yes|no)'",
        "stencilm index --regex '[0-9]{4}-[0-9]{2}' --format dot",
    ),
    "bench": ("stencilm bench examples/person.schema.json --rounds 2",),
    "audit": (
        "stencilm audit --schemas examples/person.schema.json",
        "stencilm audit --schemas examples --engine stencilm-declared --seed 1",
    ),
    "playground": ("stencilm playground --port 0",),
}
