"""The package as its user meets it: what importing costs, what it exports, its thin Python door.

The door is what Python adds to the Rust core: checked arguments, equal grammars, and a compiler
that does each request once.
"""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points, version
from importlib.resources import files
from pathlib import Path
from threading import Barrier, Event
from time import sleep
from typing import Any

import pytest
from pydantic import BaseModel

import stencilm
from stencilm import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    StencilError,
    TokenizerInfo,
    errors,
)

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("llama_cpp", "mlx", "pydantic", "rich", "tokenizers", "torch", "transformers", "typer")

TOKENS = [bytes([byte]) for byte in range(256)] + [b"</s>"]
INFO = TokenizerInfo(TOKENS, stop_token_ids=[256])


# Importing and exports


@pytest.mark.parametrize(
    "program",
    [
        "import stencilm",
        "from stencilm import Grammar; Grammar.from_regex('a')",
        "from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo;"
        "info = TokenizerInfo([b'a', b'</s>'], stop_token_ids=[1]);"
        "GrammarMatcher(GrammarCompiler(info).compile_json_schema({})).accept_token(0)",
        "import stencilm; stencilm.allocate_token_bitmask(1, 1)",
    ],
)
def test_the_engine_door_loads_no_framework(program: str) -> None:
    check = f"{program}\nimport sys; print([name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


@pytest.mark.parametrize(
    ("door", "arguments", "package", "extra"),
    [
        ("from_mlx", 2, "mlx", "mlx"),
        ("from_llama_cpp", 1, "llama_cpp", "llama-cpp"),
        ("from_transformers", 2, "torch", "transformers"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    door: str, arguments: int, package: str, extra: str
) -> None:
    program = f"import sys, stencilm; sys.modules[{package!r}] = None; stencilm.{door}"
    run = subprocess.run(
        [sys.executable, "-c", f"{program}(*[None] * {arguments})"], capture_output=True, text=True
    )
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("stencilm.errors.ModelError") and last.endswith(
        f"the package {package!r}: pip install 'stencilm[{extra}]'"
    )


@pytest.mark.parametrize("name", stencilm.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(stencilm, name) is not None
    assert name in dir(stencilm)


def test_type_checkers_see_the_names_that_programs_see() -> None:
    for node in ast.walk(ast.parse(inspect.getsource(stencilm))):
        if isinstance(node, ast.If):
            imports = [part for part in node.body if isinstance(part, ast.ImportFrom)]
            break
    seen = {(part.module, name.name) for part in imports for name in part.names}
    homes = {(f"stencilm.{home}", name) for name, home in stencilm._HOMES.items()}
    assert seen == homes
    assert sorted(stencilm.__all__) == sorted(stencilm._HOMES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'stencilm' has no attribute 'gramars'"):
        stencilm.gramars  # noqa: B018


def test_one_version_everywhere() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    assert stencilm.__version__ == version("stencilm") == workspace["package"]["version"]


def test_types_and_the_model_are_part_of_the_package() -> None:
    for name in ("py.typed", "_core.pyi", "tiny/tokenizer.json", "tiny/config.json"):
        assert files(stencilm).joinpath(name).is_file(), name


def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="stencilm")
    assert command.value == "stencilm.cli:main"
    assert callable(command.load())


# Errors


ERRORS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, StencilError)
]


class _WithText(StencilError):
    def __init__(self, message: str, *, text: str) -> None:
        super().__init__(message)
        self.text = text


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_carry_their_place_and_pickle(kind: type[StencilError]) -> None:
    for place, text in (("#/a", "#/a: no way"), (None, "no way")):
        error = kind("no way", place=place)
        for same in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert (type(same), str(same), same.message, same.place) == (
                kind,
                text,
                "no way",
                place,
            )


def test_errors_with_more_to_say_pickle_too() -> None:
    error = pickle.loads(pickle.dumps(_WithText("cut", text="{")))
    assert (str(error), error.text, error.place) == ("cut", "{", None)


# Grammars


def test_grammars_of_equal_sources_are_equal() -> None:
    schema = {"type": "integer"}
    grammar = Grammar.from_json_schema(schema)
    assert grammar == Grammar.from_json_schema('{"type": "integer"}')
    assert hash(grammar) == hash(Grammar.from_json_schema(schema))
    assert grammar != Grammar.from_json_schema(schema, strict_mode=True)
    assert grammar != Grammar.from_json_schema(schema, max_whitespace=1)
    assert Grammar.from_regex("a") == Grammar.from_regex("a") != Grammar.from_regex("b")
    assert Grammar.from_regex("true") != Grammar.from_json_schema("true")
    assert Grammar.builtin_json_grammar() == Grammar.from_json_schema(True)


class Point(BaseModel):
    x: int


def test_every_form_of_a_schema_is_taken() -> None:
    schema = {"properties": {"x": {"type": "integer"}}, "required": ["x"], "type": "object"}
    for form in (schema, '{"type": "null"}', True, int, Point):
        Grammar.from_json_schema(form)
    assert Grammar.from_type(Point) == Grammar.from_json_schema(Point)
    assert Grammar.from_type(Grammar.from_regex("a")) == Grammar.from_regex("a")


def test_the_report_says_what_became_of_each_keyword() -> None:
    report = Grammar.from_json_schema({"type": "integer", "minimum": 3, "title": "n"}).report
    assert "minimum" in [finding.keyword for finding in report.enforced]
    assert [finding.keyword for finding in report.annotations] == ["title"]
    assert report.relaxed == ()
    assert Grammar.from_regex("a").report == stencilm.Report()


def nested(depth: int) -> Any:
    schema: Any = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


SCHEMA_REFUSALS: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (3, {}, TypeError, "schema is a int, but must be JSON text"),
    (None, {}, TypeError, "schema is a NoneType"),
    ("", {}, stencilm.GrammarSyntaxError, "line 1, column 1"),
    ({"const": {1, 2}}, {}, stencilm.GrammarSyntaxError, "schema cannot be written as JSON"),
    ({"minimum": float("nan")}, {}, stencilm.GrammarSyntaxError, "schema cannot be written"),
    (
        {"const": "\ud800"},
        {},
        stencilm.GrammarSyntaxError,
        r"line 1, column 12: .*lone surrogate '\\ud800'",
    ),
    (nested(100_000), {}, stencilm.LimitExceeded, "nested too deeply"),
    (True, {"any_whitespace": 1}, TypeError, "any_whitespace is 1, but must be True or False"),
    (True, {"strict_mode": None}, TypeError, "strict_mode is None"),
    (True, {"indent": -1}, ValueError, "indent is -1, but must be from 0"),
    (True, {"indent": True}, TypeError, "indent is True, but must be an int or None"),
    (True, {"indent": 2**32}, ValueError, "indent is 4294967296"),
    (True, {"max_whitespace": 1.5}, TypeError, "max_whitespace is 1.5"),
    (True, {"separators": ","}, TypeError, "separators is ','.*two strings"),
    (True, {"separators": (";", ":")}, ValueError, "separators holds ';', but must hold ','"),
    (True, {"separators": (",", "")}, ValueError, "separators holds '', but must hold ':'"),
    (True, {"property_order": "all"}, ValueError, "property_order is 'all'.*'declared' or 'any'"),
    (True, {"spelling": []}, ValueError, r"spelling is \[\]"),
    (True, {"on_unsupported": "warn"}, ValueError, "on_unsupported is 'warn'.*'error' or 'relax'"),
    (True, {"documents": [True]}, TypeError, "documents is a list, but must be a dict"),
    (True, {"documents": {1: True}}, TypeError, "a key of documents is a int"),
    (True, {"documents": {"urn:a": 1}}, TypeError, r"documents\['urn:a'\] is a int"),
]


@pytest.mark.parametrize(("schema", "options", "error", "message"), SCHEMA_REFUSALS)
def test_arguments_of_the_wrong_kind_are_refused_with_their_value(
    schema: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Grammar.from_json_schema(schema, **options)
    with pytest.raises(error, match=message):
        GrammarCompiler(INFO).compile_json_schema(schema, **options)


def test_patterns_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(TypeError, match="pattern is a bytes"):
        Grammar.from_regex(b"a")  # type: ignore[arg-type]
    with pytest.raises(stencilm.GrammarSyntaxError, match="lone surrogate") as caught:
        Grammar.from_regex("a\udc00")
    assert caught.value.place == "offset 1"
    for notation, text in (
        (Grammar.from_ebnf, 'root ::=\n  "\udc00"'),
        (Grammar.from_lark, 'start:\n  "\udc00"'),
    ):
        with pytest.raises(stencilm.GrammarSyntaxError, match="lone surrogate") as caught:
            notation(text)
        assert caught.value.place == "line 2, column 4"


# The compiler


def test_a_request_is_compiled_once_whatever_its_form() -> None:
    compiler = GrammarCompiler(INFO)
    schema = {"type": "integer"}
    compiled = compiler.compile_json_schema(schema)
    assert compiler.compile_json_schema('{"type": "integer"}') is compiled
    assert compiler.compile_grammar(Grammar.from_json_schema(schema)) is compiled
    assert compiler.compile(Grammar.from_json_schema(schema)) is compiled
    assert compiler.compile_json_schema(schema, strict_mode=True) is not compiled
    assert compiler.compile_json_schema(schema, max_whitespace=1) is not compiled
    assert compiler.compile_builtin_json_grammar() is compiler.compile_json_schema(True)
    assert compiler.compile(int) is compiler.compile_json_schema(schema, spelling="digits")
    assert compiler.compile(int) is not compiled
    assert (compiled.grammar, compiled.tokenizer_info) == (Grammar.from_json_schema(schema), INFO)
    size = compiler.get_cache_size_bytes()
    assert size > compiled.memory_size_bytes > 0
    compiler.clear_cache()
    assert compiler.get_cache_size_bytes() == 0
    assert compiler.compile_json_schema(schema) is not compiled


def test_without_a_cache_every_call_compiles() -> None:
    compiler = GrammarCompiler(INFO, cache_enabled=False)
    assert compiler.compile_regex("a") is not compiler.compile_regex("a")
    assert compiler.get_cache_size_bytes() == 0
    compiler.clear_cache()


@pytest.mark.parametrize("schema", ['{"type": "integer"}', '{"const": "é"}'])
def test_a_text_without_a_cache_is_compiled_as_with_one(schema: str) -> None:
    compiler = GrammarCompiler(INFO, cache_enabled=False)
    plain = compiler.compile_json_schema(schema)
    others = [
        compiler.compile_json_schema(schema, documents={}),
        compiler.compile_grammar(Grammar.from_json_schema(schema)),
        GrammarCompiler(INFO).compile_json_schema(schema),
    ]
    for other in others:
        assert (plain.grammar, plain.tokenizer_info) == (other.grammar, other.tokenizer_info)
        assert plain.serialize_json() == other.serialize_json()
        assert plain.grammar.report == other.grammar.report
    assert plain.grammar is plain.grammar
    with pytest.raises(AttributeError):
        plain.grammar = others[0].grammar  # type: ignore[misc]


@pytest.mark.parametrize(
    ("schema", "error", "message"),
    [
        ("{", stencilm.GrammarSyntaxError, "line 1, column 2"),
        ('{"type": "text"}', stencilm.GrammarSyntaxError, 'type "text" is not known'),
        ('{"const": "\ud800"}', stencilm.GrammarSyntaxError, "lone surrogate"),
        ('{"enum": []}', stencilm.Unsatisfiable, "#"),
        ('{"anyOf": [{"const": 1}]', stencilm.GrammarSyntaxError, "expected , or }"),
        (b"{}", TypeError, "schema is a bytes"),
    ],
)
def test_errors_are_the_same_without_a_cache(
    schema: Any, error: type[Exception], message: str
) -> None:
    texts = []
    for cache_enabled in (False, True):
        with pytest.raises(error, match=message) as caught:
            GrammarCompiler(INFO, cache_enabled=cache_enabled).compile_json_schema(schema)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_the_limits_of_a_compiler_hold_without_a_cache() -> None:
    for limits, message in (
        (stencilm.Limits(schema_bytes=3), "at most 3 are accepted"),
        (stencilm.Limits(grammar_expressions=2), "more than 2 parts"),
    ):
        compiler = GrammarCompiler(INFO, cache_enabled=False, limits=limits)
        with pytest.raises(stencilm.LimitExceeded, match=message):
            compiler.compile_json_schema('{"const": "abcdef"}')


def test_the_cache_keeps_the_latest_within_its_budget() -> None:
    one = GrammarCompiler(INFO).compile_regex("a0").memory_size_bytes
    limit = 20 * one
    compiler = GrammarCompiler(INFO, cache_limit_bytes=limit)
    kept = compiler.compile_regex("a0")
    for number in range(1, 200):
        compiler.compile_regex(f"a{number}")
        assert compiler.compile_regex("a0") is kept  # asked for again and again, so never evicted
        assert compiler.get_cache_size_bytes() <= limit
    latest = compiler.compile_regex("a199")
    assert compiler.compile_regex("a199") is latest
    assert compiler.get_cache_size_bytes() > limit // 2


def test_the_cache_never_shows_more_than_its_budget_while_its_grammars_grow() -> None:
    limit = 200_000
    compiler = GrammarCompiler(INFO, cache_limit_bytes=limit)
    fresh = used = 0
    for number in range(400):
        compiled = compiler.compile_json_schema({"enum": [f"{number}", f"{number}x", number]})
        fresh += compiled.memory_size_bytes
        GrammarMatcher(compiled).num_allowed_tokens()
        used += compiled.memory_size_bytes
        assert compiler.get_cache_size_bytes() <= limit
        if number % 7 == 0:
            assert compiler.compile_json_schema({"enum": ["0", "0x", 0]}) is not None
    assert used > 1.1 * fresh > 3 * limit, "grammars grow, and are too many"
    assert compiler.get_cache_size_bytes() > limit // 2


def test_a_grammar_that_outgrows_the_whole_budget_goes_and_takes_no_other_with_it() -> None:
    properties = {f"k{number}": {"type": "integer"} for number in range(9)}
    large = {"type": "object", "properties": properties, "additionalProperties": False}
    compiled = GrammarCompiler(INFO).compile_json_schema(large)
    limit = compiled.memory_size_bytes * 2
    compiler = GrammarCompiler(INFO, cache_limit_bytes=limit)
    kept, grown = compiler.compile_regex("a"), compiler.compile_json_schema(large)
    one = GrammarMatcher(grown)
    for character in '{"k0": 1, "k1": 2, "k5":3, "k7": 77}':
        assert one.accept_string(character)
        one.num_allowed_tokens()
    assert grown.memory_size_bytes > limit
    assert compiler.compile_json_schema(large) is grown  # asked for again, and measured then
    assert compiler.get_cache_size_bytes() < limit
    assert compiler.compile_json_schema(large) is not grown
    assert compiler.compile_regex("a") is kept


def test_what_exceeds_the_whole_budget_is_compiled_and_not_kept() -> None:
    compiler = GrammarCompiler(INFO, cache_limit_bytes=1)
    assert compiler.compile_regex("a") is not compiler.compile_regex("a")
    assert compiler.get_cache_size_bytes() == 0


class _SlowSource:
    """A source that takes until all threads ask for it, and then ends as its outcomes say."""

    size_bytes = 1
    notation = "test"

    def __init__(self, *outcomes: BaseException | None) -> None:
        self.outcomes = list(outcomes)
        self.builds = 0
        self.all_ask = Event()

    def build(self, limits: Any) -> Any:
        self.builds += 1
        assert self.all_ask.wait(30)
        outcome = self.outcomes.pop(0)
        if outcome is not None:
            raise outcome
        return Grammar.from_regex("slow").core


def compiled_by_threads(source: _SlowSource, number: int) -> list[Any]:
    """What as many threads get or raise that ask one compiler for one source together."""
    compiler, start = GrammarCompiler(INFO), Barrier(number + 1)

    def ask(_: int) -> Any:
        start.wait()
        try:
            return compiler._compile_source(source)
        except BaseException as error:
            return error

    with ThreadPoolExecutor(number) as pool:
        results = pool.map(ask, range(number))
        start.wait()
        sleep(0.3)  # all have left the barrier; let the last of them arrive
        source.all_ask.set()
        return list(results)


def test_threads_that_ask_for_the_same_share_one_compilation() -> None:
    source = _SlowSource(None)
    results = compiled_by_threads(source, 64)
    assert source.builds == 1
    assert isinstance(results[0], CompiledGrammar)
    assert all(result is results[0] for result in results)


def test_an_error_reaches_all_who_wait_and_is_not_kept() -> None:
    source = _SlowSource(stencilm.Unsatisfiable("no text fits", place="#/a"), None)
    results = compiled_by_threads(source, 16)
    assert source.builds == 1
    assert {(type(error), str(error)) for error in results} == {
        (stencilm.Unsatisfiable, "#/a: no text fits")
    }
    assert len({id(error) for error in results}) == 16  # or their tracebacks would mix
    compiler = GrammarCompiler(INFO)
    for _ in range(2):
        with pytest.raises(stencilm.GrammarSyntaxError):
            compiler.compile_regex("(")
    assert compiler.get_cache_size_bytes() == 0


def test_an_interrupt_concerns_only_the_thread_that_it_hits() -> None:
    source = _SlowSource(KeyboardInterrupt(), None)
    results = compiled_by_threads(source, 16)
    assert source.builds == 2
    assert sum(isinstance(result, KeyboardInterrupt) for result in results) == 1
    assert sum(isinstance(result, CompiledGrammar) for result in results) == 15


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((TOKENS,), {}, TypeError, "tokenizer_info is a list"),
        ((INFO,), {"cache_limit_bytes": -1}, ValueError, "cache_limit_bytes is -1"),
        ((INFO,), {"cache_limit_bytes": 1e9}, TypeError, "cache_limit_bytes is 1000000000.0"),
    ],
)
def test_a_compiler_says_what_it_needs(
    arguments: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        GrammarCompiler(*arguments, **options)


def test_what_is_no_grammar_is_named() -> None:
    with pytest.raises(TypeError, match=r"grammar is a bytes.*Grammar\.from_regex"):
        GrammarCompiler(INFO).compile_grammar(b"a")  # type: ignore[arg-type]


# The matcher


def matcher(pattern: str, **options: Any) -> GrammarMatcher:
    return GrammarMatcher(GrammarCompiler(INFO).compile_regex(pattern), **options)


def test_forks_go_their_own_way_and_keep_their_class() -> None:
    class Named(GrammarMatcher):
        pass

    one = Named(GrammarCompiler(INFO).compile_regex("ab|ac"))
    assert one.accept_string("a")
    other = one.fork()
    assert type(other) is Named
    assert other.accept_string("b") and one.accept_string(b"c")
    assert (one.num_accepted_tokens, other.num_accepted_tokens) == (2, 2)
    other.rollback()
    assert other.is_allowed(ord("c")) and not one.is_allowed(ord("c"))


@pytest.mark.parametrize("override", [98, [98], (98,), [98, 98]])
def test_stop_tokens_may_be_overridden(override: Any) -> None:
    one = matcher("a", override_stop_tokens=override)
    assert list(one.stop_token_ids) == [98]
    assert one.accept_token(97) and not one.accept_token(256)
    assert one.accept_token(98) and one.is_terminated()


def test_a_text_may_end_without_a_stop_token() -> None:
    one = matcher("a", terminate_without_stop_token=True)
    assert not one.is_terminated()
    assert one.accept_token(97) and one.is_terminated()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"override_stop_tokens": 257}, ValueError, "holds 257, .*ids 0 to 256"),
        ({"override_stop_tokens": [-1]}, ValueError, "holds -1"),
        ({"override_stop_tokens": ["a"]}, TypeError, "holds 'a'"),
        ({"override_stop_tokens": 2**80}, ValueError, "holds 1208925819614629174706176, "),
        ({"override_stop_tokens": 1.5}, TypeError, "holds 1.5, but must hold token ids"),
        ({"max_rollback_tokens": -1}, ValueError, "max_rollback_tokens is -1"),
    ],
)
def test_a_matcher_says_what_it_needs(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        matcher("a", **options)
    with pytest.raises(TypeError, match=r"compiled_grammar is a Grammar, .*GrammarCompiler"):
        GrammarMatcher(Grammar.from_regex("a"), **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="compiled_grammar is a GrammarMatcher, "):
        GrammarMatcher(matcher("a"))  # type: ignore[arg-type]
