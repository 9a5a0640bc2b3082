"""Guiding text functions: three verdicts, corrections that make progress, bad drafts, budgets."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

import pytest
from pydantic import Field

import stencilm
from guiding.test_local import wants
from stencilm import Budget, Choice, Grammar, Guided, JsonSchema, Literal, Regex
from stencilm.generation.trace import Called, Drafted, Rejected, Trace
from stencilm.guiding.backtrack import place_of_text
from stencilm.guiding.parsers import as_grammar
from stencilm.matching.texts import byte_matcher

PAIRS = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SQL = """
root ::= "SELECT " columns " FROM " name (" WHERE " condition)? ";"?
columns ::= "*" | name
condition ::= name blanks (("LIKE" | "NOT" blanks "LIKE") blanks text | "IN" blanks? "(" text ")"
    | "=" blanks? value | "BETWEEN" blanks value blanks "AND" blanks value)
value ::= text | [0-9]+
text ::= "'" [^']* "'"
name ::= [a-z_]+
blanks ::= " "+
"""


def fits(grammar: Any, result: Guided) -> bool:

    wanted = {"valid": {"complete"}, "closed": {"complete"}, "truncated": {"viable", "complete"}}
    verdict = byte_matcher(as_grammar(grammar)).longest_valid_prefix(result.response)
    return verdict.status in wanted[result.status]


def script(*answers: Any) -> Callable[[str], str]:
    """A function that gives these answers in turn, and the last for ever."""
    rest = list(answers)

    def draft(prompt: str) -> str:
        answer = rest.pop(0) if len(rest) > 1 else rest[0]
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    return draft


JSON = stencilm.JsonSchema(PAIRS)
WHOLE = '{"name": "Ann", "age": 3}'


@pytest.mark.parametrize(
    ("answers", "grammar", "response", "calls", "corrections"),
    [
        ([WHOLE], JSON, WHOLE, 1, []),
        # Viable is no fault: no correction, and the next call goes on after it.
        (['{"name": "A', 'nn", "age": 3}'], JSON, WHOLE, 2, []),
        # It may begin again from the start.
        (['{"name": "A', WHOLE], JSON, WHOLE, 2, []),
        (["{", WHOLE], JSON, WHOLE, 2, []),
        # Talk before the text is left out, and what stands after a whole text is.
        (["Sure! Here it is:\n```json\n" + WHOLE + "\n```"], JSON, WHOLE, 1, ["skipped", "forced"]),
        # Also where it says again what was forced.
        (
            ["I would SELECT so:\nSELECT * FROM t WHERE a = 1;"], SQL,
            "SELECT * FROM t WHERE a = 1;", 1, ["skipped"],
        ),
        # What JSON says counts, and not how it says it.
        (['{"NAME": "Ann", "age": 3}'], JSON, WHOLE, 1, ["reread"]),
        # The nearest candidate stands in for what does not fit.
        (
            ["SELECT * FROM t WHERE a like 'x'", " 'x';"], SQL,
            "SELECT * FROM t WHERE a LIKE 'x';", 2, ["nearest"],
        ),
        (["SELEC * FROM t"], SQL, None, None, None),
        (["yes, I think so"], Grammar.from_regex("yes|no"), "yes", 1, ["forced"]),
        (["I do not know: no"], Grammar.from_regex("yes|no"), "no", 1, ["skipped"]),
        (["No, I would not say yes."], Grammar.from_regex("(?i)yes|no"), "No", 1, ["forced"]),
        ([""], Grammar.from_regex("a*"), "", 1, []),
    ],
)  # fmt: skip
def test_verdicts(
    answers: list[str], grammar: Any, response: Any, calls: Any, corrections: Any
) -> None:
    result = stencilm.guide(script(*answers), grammar, "prompt")
    assert result.status == "valid" and fits(grammar, result)
    if response is not None:
        assert result.response == response
    if calls is not None:
        assert result.usage.calls == calls
        assert [c.means for c in result.correction_log] == corrections
    assert result.num_grammar_corrections == len(result.correction_log)
    assert Trace.loads(result.trace.dumps()) == result.trace


@pytest.mark.parametrize(
    ("answer", "pattern"),
    [
        ("I can neither approve nor reject this.", "approve|reject"),
        ("Of 100 people, 3 came.", "[0-9]+"),
        ("About 3.5, I think.", "[0-9]+"),
        ("I cannot tell whether it is spam or not spam.", "spam|not spam"),
        ("It is in progress or not started.", "in progress|not started|done"),
        ("It was not started, and is done.", "in progress|not started|done"),
        ("It is Positive, not negative.", "positive|negative"),
    ],
)
def test_talk_that_names_several_answers_gives_none(answer: str, pattern: str) -> None:
    result = stencilm.guide(script(answer), Grammar.from_regex(pattern), "p")
    assert result.filled[0].start == 0 and result.filled[0].is_made_up


def test_functions_are_given_what_they_ask_for() -> None:
    seen: list[Any] = []

    def whole(prompt: str) -> str:
        seen.append(prompt)
        return "ab"[len(seen) - 1]

    stencilm.guide(whole, Grammar.from_regex("[a-c][a-c]"), "P:")
    assert seen == ["P:", "P:a"]
    seen.clear()

    def parts(prefix: str, prompt: str, max_new_tokens: int) -> str:
        seen.append((prefix, prompt, max_new_tokens))
        return "ab"[len(seen) - 1]

    stencilm.guide(parts, Grammar.from_regex("[a-c][a-c]"), "P:", token_lookahead=7)
    assert seen == [("", "P:", 7), ("a", "P:", 7)]
    with pytest.raises(TypeError, match=r"must take \(prompt\) or \(prefix, prompt"):
        stencilm.guide(lambda a, b: "", Grammar.from_regex("a"), "P")
    with pytest.raises(TypeError, match="gave int 3, but must give a str"):
        stencilm.guide(lambda prompt: 3, Grammar.from_regex("[ab]"), "P")
    with pytest.raises(TypeError, match="draft_model is a int"):
        stencilm.guide(3, Grammar.from_regex("a"), "P")


def test_a_function_that_writes_in_parts_may_go_on_behind_a_whole_text() -> None:
    parts = iter(["12", "34", ""])
    result = stencilm.guide(
        lambda prefix, prompt, max_new_tokens: next(parts), Grammar.from_regex("[0-9]+"), "P"
    )
    assert (result.response, result.usage.calls) == ("1234", 3)


def test_every_correction_is_logged_with_what_it_was() -> None:
    result = stencilm.guide(
        script("SELECT * FROM students WHERE name SIMILAR TO 'Dan%';", " 'Dan%';"), SQL, "q",
        target_model=lambda prompt: "LIKE",
    )  # fmt: skip
    assert result.response == "SELECT * FROM students WHERE name LIKE 'Dan%';"
    (correction,) = result.correction_log
    assert correction.position == len("SELECT * FROM students WHERE name ")
    assert correction.rejected == "SIMILAR TO 'Dan%';"
    assert {"LIKE", "IN", "=", "BETWEEN", "NOT"} <= set(correction.candidates)
    assert (correction.choice, correction.means) == ("LIKE", "chooser")
    assert result.usage.discarded_tokens > 0 and result.usage.is_estimate
    assert sum(isinstance(event, Called) for event in result.trace) == result.usage.calls == 3
    assert result.process_time_seconds > 0


NOTE = JsonSchema(
    {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
)


@pytest.mark.parametrize(
    ("said", "copies"),
    [
        ("I'm sorry, I can't help with that.", 2),
        ("The answer is forty-two, and the weather is nice.", 2),
        ("[1, 2, 3] ", 5),
    ],
)
def test_who_says_the_same_again_and_again_is_not_asked_on(said: str, copies: int) -> None:
    result = stencilm.guide(lambda prompt: said, NOTE, "Write a note.")
    assert result.response == '{"note":"' + said * copies + '"}'
    assert (result.status, result.reason) == ("closed", "one draft after another says the same")
    assert result.usage.calls < 16


def test_a_text_may_have_the_same_part_again_and_again() -> None:
    zeros = stencilm.guide(
        script("[", *["0, 0, 0, 0, "] * 20, "0]"), list[int], "Write eighty-one zeros."
    )
    assert (zeros.status, zeros.response) == ("valid", "[" + "0, " * 80 + "0]")
    # A string that is too short goes on, and so does one that says something else in between.
    least = JsonSchema({"type": "string", "minLength": 200})
    long = stencilm.guide(lambda prompt: "the same words, ", least, "Write.")
    assert long.response == '"' + "the same words, " * 13 + '"'
    chorus = ["na na na na na na na na, ", "na na na na na na na na, ", "hey, Jude. "]
    song = stencilm.guide(script('{"note": "', *chorus * 3, '"}'), NOTE, "Sing.")
    assert (song.status, song.response) == ("valid", '{"note": "' + "".join(chorus * 3) + '"}')


@pytest.mark.parametrize(
    ("draft", "grammar", "status"),
    [
        # Empty text.
        (script(""), JSON, None),
        (script(" "), JSON, None),
        # 10 MB.
        (script("x" * 10_000_000), JSON, None),
        (script('{"name": "' + "x" * 10_000_000), JSON, None),
        (script("[" * 10_000_000), Grammar.builtin_json_grammar(), "closed"),
        (script("x" * 10_000_000), Grammar.from_regex("[a-z]*"), "valid"),
        # Never valid.
        (script("~~~"), JSON, None),
        (script("\0\ud800é"), JSON, None),
        # The same for ever.
        (script("1, "), Grammar.from_regex("([0-9], )*end"), "closed"),
        (script("a"), Grammar.from_regex("[ab]{100000}c"), "truncated"),
    ],
)
def test_bad_drafts_are_bounded_and_end_well(draft: Any, grammar: Any, status: Any) -> None:
    budget = Budget(calls=30, tokens=2_000, seconds=20)
    result = stencilm.guide(draft, grammar, "prompt", budget=budget, max_grammar_corrections=10)
    assert status is None or result.status == status
    assert fits(grammar, result)
    assert result.usage.calls <= 30
    assert result.num_grammar_corrections <= 11
    assert len(result.response) < 80_000


@pytest.mark.parametrize("answers", [[], ['{"name": "A'], ["~~~"]])
def test_what_a_draft_function_raises_comes_through(answers: list[str]) -> None:
    error = OSError("gone")
    with pytest.raises(OSError, match="gone") as caught:
        stencilm.guide(script(*answers, error), JSON, "p")
    assert caught.value is error

    async def draft(prompt: str) -> str:
        raise error

    for function in (draft, script(*answers, error)):
        with pytest.raises(OSError, match="gone") as caught:
            asyncio.run(stencilm.aguide(function, JSON, "p"))
        assert caught.value is error


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"budget": Budget(calls=3)}, "3 calls"),
        ({"budget": Budget(tokens=3)}, "3 tokens"),
        ({"budget": Budget(seconds=1e-9)}, "seconds"),
        ({"max_grammar_corrections": 0}, "0 corrections"),
        ({"stop_at": ["3"]}, "stop text '3'"),
    ],
)
def test_what_runs_out_closes_the_text(options: dict[str, Any], reason: str) -> None:
    grammar = Grammar.from_regex("([0-9], )*end")
    draft = script("1, ", "2, ", "3, ", "~")
    result = stencilm.guide(draft, grammar, "prompt", **options)
    assert (result.status, fits(grammar, result)) == ("closed", True)
    assert reason in result.reason
    assert result.response.endswith("end")


def test_the_seed_begins_the_text() -> None:
    result = stencilm.guide(script('Ann", "age": 3}'), JSON, "p", seed_str='{"name": "')
    assert result.response == WHOLE
    with pytest.raises(stencilm.MatcherError, match="seed"):
        stencilm.guide(script(""), JSON, "p", seed_str="[")


def test_coroutine_functions_are_awaited() -> None:
    async def draft(prompt: str) -> str:
        await asyncio.sleep(0)
        return WHOLE

    result = asyncio.run(stencilm.aguide(draft, JSON, "p", max_grammar_corrections=2))
    assert (result.response, result.status) == (WHOLE, "valid")
    assert asyncio.run(stencilm.aguide(script(WHOLE), JSON, "p")).response == WHOLE
    with pytest.raises(TypeError, match="aguide"):
        stencilm.guide(draft, JSON, "p")


def test_cancelling_stops_a_coroutine() -> None:
    async def draft(prompt: str) -> str:
        await asyncio.sleep(60)
        return ""

    async def main() -> None:
        task = asyncio.create_task(stencilm.aguide(draft, JSON, "p"))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_cancelling_stops_a_local_model() -> None:
    model = wants("ab" * 5_000)
    passes = model.calls

    async def main() -> int:
        # Each event waits a little, so that the task is cancelled in the midst of its text.
        guided = stencilm.aguide(
            model, Grammar.from_regex("[ab]{9000}"), ">", token_healing=False,
            on_event=lambda event: time.sleep(0.001),
            budget=Budget(calls=9_000, tokens=9_000),
        )  # fmt: skip
        task = asyncio.create_task(guided)
        while len(passes) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.1)
        stopped_at = len(passes)
        await asyncio.sleep(0.1)
        assert len(passes) == stopped_at
        return stopped_at

    assert asyncio.run(main()) < 9_000


def test_events_are_told_as_they_happen(capsys: Any, tmp_path: Any) -> None:
    told: list[Any] = []
    path = tmp_path / "trace.html"
    result = stencilm.guide(
        script("Well: " + WHOLE), JSON, "p", on_event=told.append, verbose=True, save_html=path
    )
    assert told == list(result.trace)
    assert any(isinstance(event, Rejected) for event in told)
    assert any(isinstance(event, Drafted) for event in told)
    assert '"Ann"' in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == result.html


# Choosers, and how much is asked for


def test_a_chooser_holds_no_event_loop_up() -> None:
    """A function that waits for what only the event loop can do: it must run beside it."""
    happened = threading.Event()

    def chooser(prompt: str) -> str:
        assert happened.wait(30), "the event loop stood still"
        return "LIKE"

    async def main() -> Guided:
        asyncio.get_running_loop().call_later(0.01, happened.set)
        draft = script("SELECT * FROM t WHERE a SIMILAR TO 'x'", " 'x';")
        return await stencilm.aguide(draft, SQL, "q", chooser)

    result = asyncio.run(main())
    assert result.response == "SELECT * FROM t WHERE a LIKE 'x';"


@pytest.mark.parametrize("local", [False, True])
def test_choosers_may_be_coroutine_functions(local: bool) -> None:
    async def chooser(prompt: str) -> str:
        await asyncio.sleep(0)
        return "2"

    draft: Any = wants("a SIMILAR") if local else script("a SIMILAR", "")
    grammar = Grammar.from_ebnf('root ::= "a " ("LIKE" | "IN" | "BETWEEN") " "+ [0-9]+')
    options: dict[str, Any] = {"max_grammar_corrections": 9}
    if local:
        options |= {"token_healing": False}
    result = asyncio.run(stencilm.aguide(draft, grammar, ">", chooser, **options))
    assert result.response.startswith("a IN ")
    assert result.correction_log[0].means == "chooser"
    with pytest.raises(TypeError, match="target model is asynchronous"):
        stencilm.guide(draft, grammar, ">", chooser, **options)


@pytest.mark.parametrize("local", [False, True])
def test_what_a_chooser_raises_is_recorded(local: bool) -> None:
    def chooser(prompt: str) -> str:
        raise OSError("gone")

    grammar = Grammar.from_regex("a (LIKE|IN) [0-9]")
    draft: Any = wants("a SIMILAR") if local else script("a SIMILAR", " 1")
    result = stencilm.guide(draft, grammar, ">", chooser, token_healing=False)
    assert result.is_valid and isinstance(result.error, OSError)
    with pytest.raises(OSError, match="gone"):
        stencilm.choose_candidate(["a", "b"], "x", chooser)
    with pytest.raises(TypeError, match="target_model is a int"):
        stencilm.guide(draft, grammar, ">", 3)


def test_calls_of_a_chooser_count() -> None:
    draft = script("SELECT * FROM t WHERE a SIMILAR TO 'x'", "~")
    for calls in range(1, 6):
        budget = Budget(calls=calls)
        result = stencilm.guide(draft, SQL, "q", lambda prompt: "1", budget=budget)
        assert fits(SQL, result) and result.usage.calls <= calls


def test_drafts_are_as_long_as_they_were_of_use() -> None:
    asked: list[int] = []

    def draft(prefix: str, prompt: str, max_new_tokens: int) -> str:
        asked.append(max_new_tokens)
        return "1111~~~~" * 8 if len(asked) < 5 else "1" * 4 * max_new_tokens

    result = stencilm.guide(
        draft, Grammar.from_regex("[0-9]{200}[a-c]"), "p", token_lookahead=32,
    )  # fmt: skip
    assert result.is_valid
    assert asked[:4] == [32, 16, 8, 4]
    assert asked[5:8] == [8, 16, 32][: len(asked[5:8])]
    assert max(asked) == 32


# The steps by themselves


@pytest.mark.parametrize(
    ("prediction", "prefix", "some"),
    [
        (
            "SELECT * FROM students WHERE name SIMILAR TO 'Dan%';",
            "SELECT * FROM students WHERE name ",
            {"LIKE", "IN", "=", "BETWEEN", "NOT"},
        ),
        ("SELECT * FORM t", "SELECT * ", {" FROM "}),
        ("SELECT * FROM t WHERE a = 1;", "SELECT * FROM t WHERE a = 1;", set()),
        ("DROP TABLE t", "", {"SELECT "}),
        ("SELECT * FROM t WHERE a NO", "SELECT * FROM t WHERE a NO", {"T"}),
        ("", "", {"SELECT "}),
    ],
)
def test_correction_pairs(prediction: str, prefix: str, some: set[str]) -> None:
    grammar = stencilm.load_parser(SQL)
    found, candidates = stencilm.obtain_correction_pairs(prediction, grammar)
    assert prediction.startswith(found)
    assert found.rstrip() == prefix.rstrip()
    texts = {c.text.strip() for c in candidates if isinstance(c, Literal)}
    assert {text.strip() for text in some} <= texts


LARK = """
start: "SELECT" columns "FROM" NAME ("WHERE" NAME operator)? ";"?
columns: "*" | NAME ("," NAME)*
operator: "NOT"? "LIKE" STRING | "IN" "(" value ("," value)* ")" | "=" value
    | "BETWEEN" value "AND" value
value: STRING | NUMBER
NAME: /[a-z_]+/
STRING: /'[^']*'/
NUMBER: /[0-9]+/
%import common.WS
%ignore WS
"""


def test_lark_grammars_are_parsers_too() -> None:
    prediction = "SELECT * FROM students WHERE name SIMILAR TO 'Dan%';"
    prefix, candidates = stencilm.obtain_correction_pairs(prediction, stencilm.load_parser(LARK))
    assert prefix == "SELECT * FROM students WHERE name "
    texts = {candidate.text for candidate in candidates if isinstance(candidate, Literal)}
    assert texts == {"LIKE", "NOT", "IN", "=", "BETWEEN"}
    draft = script(prediction, " 'Dan%';")
    result = stencilm.guide(draft, LARK, "q", target_model=lambda prompt: "LIKE")
    assert result.response == "SELECT * FROM students WHERE name LIKE 'Dan%';"


def test_patterns_stand_for_what_has_many_texts() -> None:
    with pytest.raises(TypeError, match="prediction is None, but must be a str"):
        stencilm.obtain_correction_pairs(None, Grammar.from_regex("a"))  # type: ignore[arg-type]
    _, candidates = stencilm.obtain_correction_pairs("x", Grammar.from_regex("[0-9]+(a|b)"))
    assert len(candidates) == 1 and isinstance(candidates[0], stencilm.Pattern)


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        *[("2", "IN"), ("Number 3.", "="), ("LIKE", "LIKE"), ("99", "LIKE"), ("**2.**", "IN")],
        *[("I cannot say", "LIKE"), ("2 of the 3", "IN"), ("2. IN, not 3", "IN")],
        *[("Not 2, but 3.", "LIKE"), ("2.3", "LIKE"), ("-2", "LIKE"), ("[2, 3]", "LIKE")],
        ("2" * 5_000, "LIKE"),
    ],
)
def test_a_function_chooses_by_number(answer: str, choice: str) -> None:
    candidates: list[Any] = [Literal("LIKE"), "IN", Literal("=")]
    prompts: list[str] = []

    def target(prompt: str) -> str:
        prompts.append(prompt)
        return answer

    assert stencilm.choose_candidate(candidates, "WHERE name ", target) == choice
    assert "1. LIKE\n2. IN\n3. =" in prompts[0]


@pytest.mark.parametrize(
    ("answer", "choice", "told"),
    [(2, "IN", None), ("2", "IN", None), (99, "LIKE", None), (2**70, "LIKE", None)]
    + [(wrong, None, f"gave {type(wrong).__name__}") for wrong in (None, 1.0, True, b"2", ["2"])],
)
def test_what_a_function_answers(answer: Any, choice: str | None, told: str | None) -> None:
    if told is None:
        assert stencilm.choose_candidate(["LIKE", "IN"], "x ", lambda prompt: answer) == choice
    else:
        with pytest.raises(TypeError, match=f"{told} .*, but must give a str or an int"):
            stencilm.choose_candidate(["LIKE", "IN"], "x ", lambda prompt: answer)


@pytest.mark.parametrize("answer", ["0", "4", "-1", "neither", "", "2" * 5_000, 4])
def test_who_names_no_candidate_has_not_chosen(answer: Any) -> None:
    calls: list[str] = []

    def target(prompt: str) -> Any:
        calls.append(prompt)
        return answer

    result = stencilm.guide(lambda prompt: "ax", stencilm.Regex("a(bb|cc|dd)"), "q", target)
    assert len(calls) == 1
    assert (result.response, result.status) == ("abb", "closed")
    assert [(part.text, part.means) for part in result.filled] == [("bb", "shortest")]
    digits = stencilm.Regex("a[0-9]{2}")
    result = stencilm.guide(lambda prompt: "ax", digits, "q", lambda prompt: "none")
    assert result.status == "closed" and result.filled[0].text == "00"
    pattern = [stencilm.Pattern("[0-9]{3}")]
    assert stencilm.choose_candidate(pattern, "x", lambda prompt: "none") == "000"


def test_a_model_chooses_by_probability_and_writes_patterns() -> None:
    model = stencilm.load("tiny")
    assert stencilm.choose_candidate(["yes", "no"], "Is water wet? ", model) in ("yes", "no")
    text = stencilm.choose_candidate([stencilm.Pattern("[0-9]{3}")], "Number: ", model)
    assert len(text) == 3 and text.isdigit()
    assert stencilm.choose_candidate(["only"], "x", model) == "only"
    pattern = [stencilm.Pattern("[0-9]+")]
    assert stencilm.choose_candidate(pattern, "x", lambda prompt: " 42 apples") == "42"
    with pytest.raises(ValueError, match="no candidates"):
        stencilm.choose_candidate([], "x", model)
    with pytest.raises(TypeError, match="target_model is a int"):
        stencilm.choose_candidate(["a", "b"], "x", 3)


def test_parsers_load_from_text_and_files(tmp_path: Any) -> None:
    path = tmp_path / "yes.ebnf"
    path.write_text('root ::= "yes"')
    for source in (path, str(path), 'root ::= "yes"'):
        assert stencilm.guide(script("yes"), stencilm.load_parser(source), "p").response == "yes"
    with pytest.raises(stencilm.GrammarSyntaxError):
        stencilm.load_parser("root ::= (")


def test_a_str_is_never_the_name_of_a_file_to_guide(tmp_path: Any) -> None:
    for ending, text in (("lark", 'start: "yes"'), ("ebnf", 'root ::= "yes"')):
        path = tmp_path / f"yes.{ending}"
        path.write_text(text)
        assert stencilm.guide(script("yes"), path, "p").response == "yes"
        with pytest.raises(stencilm.GrammarSyntaxError):
            stencilm.guide(script("yes"), str(path), "p")
        with pytest.raises(stencilm.GrammarSyntaxError):
            stencilm.obtain_correction_pairs("yes", str(path))


def test_a_file_that_cannot_be_drawn_to_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    def never(prompt: str) -> str:
        raise AssertionError("nothing is asked")

    async def anever(prompt: str) -> str:
        raise AssertionError("nothing is asked")

    cases: list[tuple[Any, type[Exception]]] = [
        (tmp_path, OSError),
        (tmp_path / "no" / "x", OSError),
        (None, TypeError),
        (5, TypeError),
    ]
    for place, error in cases:
        with pytest.raises(error):
            stencilm.guide(never, JSON, "p", save_html=place)
        with pytest.raises(error):
            asyncio.run(stencilm.aguide(anever, JSON, "p", save_html=place))
    kept = tmp_path / "kept.html"
    kept.write_text("kept")
    with pytest.raises(AssertionError):
        stencilm.guide(never, JSON, "p", save_html=kept)
    assert kept.read_text() == "kept"
    with pytest.raises(AssertionError):
        stencilm.guide(never, JSON, "p", save_html=tmp_path / "new.html")
    assert [*tmp_path.iterdir()] == [kept]
    link = tmp_path / "link.html"
    try:
        link.symlink_to(tmp_path / "new.html")
    except OSError:
        return  # Windows asks for a right that few have.
    with pytest.raises(AssertionError):
        stencilm.guide(never, JSON, "p", save_html=link)
    assert link.is_symlink()
    assert not link.exists()


@pytest.mark.parametrize("name", ["calls", "tokens", "seconds", "cost"])
@pytest.mark.parametrize("value", [True, 0, -1, float("nan"), "5"])
def test_a_budget_is_a_number_above_zero(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"the budget of {name} is"):
        Budget(**{name: value})


def test_files_of_grammars(tmp_path: Path) -> None:
    file = tmp_path / "a.ebnf"
    file.write_bytes(b'\xef\xbb\xbfroot ::= "a"\r\n')
    assert stencilm.load_parser(file) == stencilm.load_parser('root ::= "a"\n')
    file.write_bytes(b'root ::= "\xff"')
    with pytest.raises(ValueError, match=r"a\.ebnf' is not UTF-8 text: byte 10"):
        stencilm.load_parser(file)
    for source in (None, 5, b"x", ["a"]):
        with pytest.raises(TypeError, match="must be the text of a grammar, or a Path"):
            stencilm.load_parser(source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("draft", "output_type"),
    [
        ("123", Annotated[int, Field(ge=0, le=50)]),
        ("It is 123.", Annotated[int, Field(ge=0, le=50)]),
        ("12.5", int),
        ("12,500", int),
        ("12e3", int),
        ("0x1F", int),
        ("12th", int),
        ("1_000", int),
        ("-5", Annotated[int, Field(ge=0)]),
        ("It is -5.", Annotated[int, Field(ge=0)]),
        ("3.5", stencilm.Choice([5, 7])),
        ("1e999", float),
        ("yesterday", stencilm.Choice(["yes", "no"])),
        ("don't know", stencilm.Choice(["do", "no"])),
        ("A-12345", stencilm.Regex("[A-Z]-[0-9]{4}")),
        (".5", int),
        ("It is .5", stencilm.Choice([5, 7])),
        ("can't", stencilm.Choice(["can", "no"])),
        ("non-spam", stencilm.Choice(["spam", "ham"])),
        ("It is spam-like.", stencilm.Choice(["spam", "ham"])),
        *[
            (draft, int)
            for draft in (
                "1 000",
                "It is 12 000 000.",
                "1'234",
                "12:30",
                "It is 3/4.",
                "2 1/2",
                "10^6",
                "2024-05-06",
                "3..5",
            )
        ],
        ("1 000.5", float),
        ("1/3", float),
        # What may begin such a number goes on with one text alone, which is forced.
        *[(draft, Annotated[float, Field(ge=0, le=10)]) for draft in ("-7", "-0.5", "10.5", "1e2")],
        ("10.05", Annotated[float, Field(ge=5, le=10)]),
        # The 2 of the exponent is no number by itself.
        *[(draft, int) for draft in ("1e+2", "It is 10E-2.", "-2.999e+2")],
        ("It is [9E+1]", list[Annotated[float, Field(ge=0, le=50)]]),
        # The text begins with the 1, which is forced.
        *[
            (draft, stencilm.Regex("12|13"))
            for draft in ("-12", "1.12", ".12", "1,12", "It is -12")
        ],
        # Each is near to a text that may come.
        *[(draft, stencilm.Regex("12|ab")) for draft in ("12.5", "12,500", "ab_c", "12_0", "abc")],
        ("1,200", stencilm.Regex("[0-9]{2}")),
    ],
)
def test_a_part_of_a_word_or_a_number_is_not_what_was_written(draft: str, output_type: Any) -> None:
    result = stencilm.guide(lambda prompt: draft, output_type, "q")
    assert any(part.is_made_up for part in result.filled)


@pytest.mark.parametrize(
    ("draft", "output_type", "response"),
    [
        ("It is 12.", int, "12"),
        ("12.0", int, "12"),
        *[(draft, Annotated[int, Field(ge=1, le=100)], "2") for draft in ("2!", "2 (two)", "2")],
        ("12.00.", int, "12"),
        ("12, I think", int, "12"),
        ("$5", int, "5"),
        ("5%", int, "5"),
        ("+5", int, "5"),
        ("from 2-5", stencilm.Choice([5, 7]), "5"),
        ("yes.", stencilm.Choice(["yes", "no"]), "yes"),
        # All of them begin with what may be the whole: nothing is written before the draft.
        ("1", stencilm.Choice([1, 11]), "1"),
        ("11", stencilm.Choice([1, 11]), "11"),
        ("ab", stencilm.Regex("(ab)+"), "ab"),
        ("ab ab", stencilm.Regex("ab( ab)*"), "ab ab"),
        ("It is 1, or rather 12", stencilm.Regex("12|13"), "12"),
        ("x-12", stencilm.Regex("12|13"), "12"),
        ("12.0", stencilm.Regex("12|ab"), "12"),
        ("No.5", int, "5"),
        ("0.5-0.7", float, "0.5"),
        ("5 1000", int, "5"),
        ("'yes'", stencilm.Choice(["yes", "no"]), "yes"),
        ("A-1234, of course", stencilm.Regex("[A-Z]-[0-9]{4}"), "A-1234"),
    ],
)
def test_what_stands_by_itself_is(draft: str, output_type: Any, response: str) -> None:
    result = stencilm.guide(lambda prompt: draft, output_type, "q")
    assert (result.response, result.status, result.filled) == (response, "valid", ())


@pytest.mark.parametrize("part", ['{"name": ', '{"a": 1} ', '{"a": [1, ', '{"a": "b'])
def test_a_long_draft_is_not_read_again_behind_each_place_of_its_talk(part: str) -> None:
    matcher = byte_matcher(as_grammar(dict[str, Any]))
    read = 0

    class Counted:
        def longest_valid_prefix(self, text: bytes) -> Any:
            nonlocal read
            verdict = matcher.longest_valid_prefix(text)
            read += verdict.valid_bytes
            return verdict

        def fork(self) -> Counted:
            return Counted()

        def accept_string(self, text: str) -> bool:
            nonlocal read
            read += len(text)
            return True

        def is_completed(self) -> bool:
            return False

    draft = f"Sure: {part * (60_000 // len(part))}".encode()
    assert place_of_text(cast(Any, Counted()), draft) == 6
    assert read < 10 * len(draft)


def test_free_text_before_a_fault_is_no_talk() -> None:
    tag = {
        "type": "triggered_tags",
        "triggers": ["<f"],
        "tags": [
            {
                "type": "tag",
                "begin": "<f>",
                "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
                "end": "</f>",
            }
        ],
    }
    grammar = stencilm.Grammar.from_structural_tag(tag)
    result = stencilm.guide(script("So: <f>x</f> and more"), grammar, "p", budget=Budget(calls=2))
    assert result.response.startswith("So: <f>")


@pytest.mark.parametrize("before", ["", "It is: ", "Answer\n\n"])
@pytest.mark.parametrize(
    ("draft", "options"),
    [
        ("Not spam", ["spam", "not spam"]),
        ("NOT spam, surely", ["spam", "not spam"]),
        ("Dark red", ["red", "blue", "dark red"]),
        ("Öl grün", ["grün", "öl grün"]),
        ("Second-hand smoker", ["smoker", "second-hand smoker"]),
        ("In progress", ["in", "in progress"]),
        ("in Progress", ["in", "in progress"]),
        ("new york", ["New", "New York"]),
    ],
)
def test_what_is_said_in_another_case_is_no_shorter_text(
    draft: str, options: list[str], before: str
) -> None:
    longest, others = max(options, key=len), Choice([*options, "none of these"])
    for choice in (Choice(options), others) if not before or draft[0] in "NDÖS" else ():
        result = stencilm.guide(lambda prompt: before + draft, choice, "p", budget=Budget(calls=4))
        assert (result.response, result.status) == (longest, "valid")
        same = stencilm.guide(lambda prompt: before + options[0], choice, "p")
        assert (same.response, same.status) == (options[0], "valid")


@pytest.mark.parametrize(
    ("draft", "options", "response"),
    [
        ("Positive, not negative.", ["positive", "negative"], "positive"),
        (
            "Approved. There is no reason for it to be rejected.",
            ["approved", "rejected"],
            "approved",
        ),
        ("In progress; it was not started then", ["not started", "in progress"], "in progress"),
        ("There is no doubt: YES", ["YES", "NO"], "YES"),
        ("I would give it a B", ["A", "B", "C"], "B"),
        ("It has positive sides, but is Neutral", ["Positive", "Negative", "Neutral"], "Neutral"),
    ],
)
def test_capitals_of_talk_do_not_count(draft: str, options: list[str], response: str) -> None:
    result = stencilm.guide(lambda prompt: draft, Choice(options), "p", budget=Budget(calls=4))
    assert (result.response, result.status) == (response, "valid")


@pytest.mark.parametrize("draft", ["It is: In progress", "Indeed", "?"])
def test_where_forced_text_ends_is_for_a_draft_to_say(draft: str) -> None:
    """All texts begin with `in`, which is one of them; no draft has said that it is the one."""
    result = stencilm.guide(lambda prompt: draft, Choice(["in", "in progress"]), "p")
    assert (result.response, result.status) == ("in", "closed")
    whole = stencilm.guide(lambda prompt: draft, Choice(["in progress"]), "p")
    assert (whole.response, whole.status) == ("in progress", "valid")


@pytest.mark.parametrize(
    ("drafts", "options", "response", "calls"),
    [
        (["York"], ["york", "york york"], "york", 1),
        (["York "], ["york", "york york"], "york", 1),
        (["'York'."], ["york", "york york"], "york", 1),
        (["York, he said"], ["york", "york york"], "york", 1),
        (["York York"], ["york", "york york"], "york york", 1),
        (["No"], ["no", "no no no"], "no", 1),
        (["In"], ["in", "in progress"], "in", 1),
        (["Straße"], ["strasse", "strasse 5"], "strasse", 1),
    ],
)
def test_who_writes_a_whole_text_in_another_case_has_ended_it(
    drafts: list[str], options: list[str], response: str, calls: int
) -> None:
    result = stencilm.guide(script(*drafts), Choice(options), "p")
    assert (result.response, result.status, result.usage.calls) == (response, "valid", calls)
    assert [filled.means for filled in result.filled] == ["respelled"]


@pytest.mark.parametrize(
    ("draft", "options", "response"),
    [
        ("yes ", ["yes", "yes sir", "no"], "yes"),
        ("yes because it fits", ["yes", "yes sir", "no"], "yes"),
        ("Sure! yes because it fits", ["yes", "yes sir", "no"], "yes"),
        ("in ", ["in", "in progress", "out"], "in"),
        ("v1.", ["v1", "v1.2", "v2"], "v1"),
        ("The answer is v1.", ["v1", "v1.2", "v2"], "v1"),
        ("The answer is v1.2.", ["v1", "v1.2", "v2"], "v1.2"),
        ("C\n\nBecause it fits.", ["C", "C++", "C#"], "C"),
        ("C+", ["C", "C++", "C#"], "C++"),
        ("in  progress", ["in", "in progress", "out"], "in progress"),
    ],
)
def test_a_blank_or_a_mark_behind_a_whole_text_does_not_go_on(
    draft: str, options: list[str], response: str
) -> None:
    """Although a longer text has one there: nothing but that would be made of it by force."""
    result = stencilm.guide(lambda prompt: draft, Choice(options), "p", budget=Budget(calls=4))
    assert (result.response, result.status) == (response, "valid")


@pytest.mark.parametrize("draft", ["12.", "It is 12.", "12. "])
def test_a_point_behind_a_number_ends_the_sentence(draft: str) -> None:
    for output_type in (int, float, Regex("[0-9]+(\\.[0-9]+)?")):
        result = stencilm.guide(lambda prompt: draft, output_type, "p")
        assert (result.response, result.status, result.filled) == ("12", "valid", ())


def test_what_goes_on_in_another_case_is_gone_on_with() -> None:
    colours = stencilm.Grammar.from_ebnf(
        'root ::= colour (" and " colour)* (" " [0-9]+)?\ncolour ::= "red" | "blue"'
    )
    for draft, rest, whole in (("Red And Blue", " and blue", "red and blue"),
                               ("Red 5", " 5", "red 5")):  # fmt: skip
        result = stencilm.guide(script(draft, rest), colours, "p")
        assert (result.response, result.status) == (whole, "valid")


FRAMES = [
    "\ufeff{}", "“{}”", "Answer\uff1a{}", "Result — {}", "→ {}", "→{}", "✅{}", "•{}", "«{}»",
    "„{}“", "It is: \u2018{}\u2019.", "\u200b{}", "{}。", "\u00a0{}", "…{}",
    "x \u2013 {} \u2013 y", "{}✅", "{}”", "That—{}—is it.",
]  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    ("output_type", "text"),
    [
        (Choice(["red", "dark red", "blue"]), "dark red"),
        (Choice(["spam", "not spam"]), "not spam"),
        (Regex("-?[0-9]+"), "-44"),
        (Regex("[0-9]+(\\.[0-9]+)?"), "2.5"),
        (Regex("[a-z]{2}-[0-9]{2}"), "ab-12"),
    ],
    ids=["colour", "spam", "int", "float", "code"],
)
def test_printed_punctuation_is_no_part_of_a_word(frame: str, output_type: Any, text: str) -> None:
    if "—{" in frame and text[0] in "-2":
        return  # the sign of a number, perhaps
    draft = frame.format(text)
    result = stencilm.guide(lambda prompt: draft, output_type, "p", budget=Budget(calls=3))
    assert (result.response, result.status, result.filled) == (text, "valid", ())


@pytest.mark.parametrize(
    ("pattern", "draft"),
    [
        ("can|may", "can\u2019t"),
        ("spam|ham", "non\u2011spam"),
        ("spam|ham", "spam\u2010like"),
        ("[0-9]+", "\u221244"),
        ("[0-9]+", "\u201344"),
        ("[0-9]+", "12\u00a0000"),
        ("[0-9]+", "12\u202f000"),
        ("[0-9]+", "12\u066b5"),
        ("[0-9]+", "12\uff1a30"),
        ("[0-9]+", "12\u201315"),
        ("[0-9]+", "12²"),
        ("caf|bar", "café"),
        ("cafe|bar", "cafe\u0301"),
        ("mi|tu", "mi\u200cravam"),
    ],
)
def test_a_part_of_a_printed_word_or_number_is_no_text(pattern: str, draft: str) -> None:
    result = stencilm.guide(lambda prompt: draft, Regex(pattern), "p", budget=Budget(calls=3))
    assert result.status != "valid" or any(part.is_made_up for part in result.filled) or result.lost
