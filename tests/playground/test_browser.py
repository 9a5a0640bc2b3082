"""The playground in a real browser: what a person sees and does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from browser import LOOKS, chromium, console_errors, set_look

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import uvicorn

from stencilm.playground.server import create_app, listen
from stencilm.playground.session import Session

XSS = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(create_app(Session()), log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = True
    thread.join(30)


class Page:
    """What a person does on the page, each step done when the page has drawn the answer."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        self.address = address
        self.open(address)

    def open(self, url: str) -> None:
        self.driver.get("about:blank")
        self.driver.get(url)
        self.wait(lambda: self.answers() > 0)

    def answers(self) -> int:
        return int(self.script("return document.body.dataset.answers || 0"))

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def wait(self, condition: Any) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "the page did not get there"
            time.sleep(0.02)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return str(self.script("return document.querySelector(arguments[0]).textContent", selector))

    def write(self, name: str, text: str) -> None:
        """Replaces what an editor holds, as pasting does."""
        before = self.answers()
        self.script(
            "const area = document.getElementById(arguments[0]); area.value = arguments[1];"
            "area.dispatchEvent(new InputEvent('input', {bubbles: true}))",
            name,
            text,
        )
        self.wait(lambda: self.answers() > before)

    def choose(self, name: str, value: str) -> None:
        before = self.answers()
        self.script(
            "const box = document.getElementById(arguments[0]); box.value = arguments[1];"
            "box.dispatchEvent(new Event('change', {bubbles: true}))",
            name,
            value,
        )
        self.wait(lambda: self.answers() > before)

    def click(self, selector: str) -> None:
        before = self.answers()
        self.find(selector).click()
        self.wait(lambda: self.answers() > before)

    def chips(self) -> list[str]:
        found: list[str] = self.script(
            "return [...document.querySelectorAll('#steps button')].map(chip => chip.textContent)"
        )
        return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Page]:
    set_look(browser, LOOKS[0])
    browser.get_log("browser")
    found = Page(browser, address)
    yield found
    assert console_errors(browser) == []


def test_an_error_is_marked_where_it_stands(page: Page) -> None:
    page.choose("notation", "ebnf")
    page.write("grammar", 'root ::= "a" other\nother ::= [z-b]\n')
    assert page.text("#to-problem") == "line 2, column 12"
    assert page.text("#grammar + .backdrop, .tall mark.error") == "z"
    assert "reversed" in page.text("#problem-text")
    page.find("#to-problem").click()
    assert page.script("return document.activeElement.id") == "grammar"
    assert page.script("return document.getElementById('grammar').selectionStart") == 30
    page.write("grammar", 'root ::= "a" other\nother ::= [b-z]\n')
    assert not page.find("#grammar-problem").is_displayed()


def test_a_text_is_stepped_through(page: Page) -> None:
    page.choose("notation", "regex")
    page.write("grammar", "(cat|dog)s? (run|sleep)")
    page.write("text", "cats run")
    assert page.text("#status") == "fits, and may end here"
    count = len(page.chips())
    page.click("#first")
    assert page.text("#place") == "after 0 tokens"
    for step in range(count):
        page.click("#forward")
        assert page.text("#token-count") == f"{step + 1} of {count} read"
    assert not page.find("#forward").is_enabled()
    page.write("text", "dogs ")
    page.wait(lambda: page.text("#listing-count") != "")
    assert "/(?:run|sleep)/" in page.text("#next-facts") or "run" in page.text("#next-facts")


def test_examples_bring_their_names_and_what_stands_behind_a_hole(page: Page) -> None:
    names = [option.text for option in page.driver.find_elements("css selector", "#example option")]
    for title in ("Names from a list", "Variables that", "A hole in", "A query over two"):
        (place,) = [at for at, name in enumerate(names) if name.startswith(title)]
        page.choose("example", str(place - 1))
        assert not page.find("#grammar-problem").is_displayed(), title
        assert page.text("#status").startswith("fits"), title
        assert page.find("#names-box").is_displayed() == (not title.startswith("A query"))
    page.choose("notation", "ebnf")
    page.write("grammar", 'root ::= "Dear " %symbols("people") "!"')
    assert page.find("#grammar-problem").is_displayed()
    page.write("names", '{"people": ["ada"]}')
    page.write("text", "Dear ")
    assert page.text("#status") == "fits so far"
    page.write("behind", "da!")
    page.write("text", "Dear a")
    assert page.text("#status") == "fits, and may end here"
    link = page.driver.current_url
    page.open(link)
    assert page.script("return document.getElementById('behind').value") == "da!"
    assert page.script("return document.getElementById('names').value") == '{"people": ["ada"]}'
    assert page.find("#behind").is_displayed()


def test_a_refused_token_is_explained(page: Page) -> None:
    page.choose("notation", "regex")
    page.write("grammar", "20[0-9]{2}-(0[1-9]|1[0-2])")
    page.write("text", "2024-17")
    assert page.text("#status") == "does not fit"
    assert "cannot come next" in page.text("#refusal")
    assert page.text("#text-panel mark.dead") == "7"
    page.find("#which").send_keys("may not come")
    page.find("#search").send_keys("zz")
    page.wait(lambda: "found" in page.text("#listing-count"))
    page.find("#listing button").click()
    page.wait(lambda: page.find("#explanation").is_displayed())
    assert "cannot come next" in page.text("#explanation")


def test_a_token_is_gone_on_with(page: Page) -> None:
    page.choose("notation", "regex")
    page.write("grammar", "yes|no")
    page.write("text", "")
    page.wait(lambda: len(page.driver.find_elements("css selector", "#listing button")) > 2)
    page.find("#search").send_keys("ye")
    page.wait(lambda: "found" in page.text("#listing-count"))
    page.find("#listing button").click()
    page.wait(lambda: page.find("#explanation").is_displayed())
    page.click("#go-on")
    assert page.script("return document.getElementById('text').value").startswith("ye")
    assert page.text("#place") == "after 1 token"


def test_a_link_restores_the_state(page: Page) -> None:
    page.choose("notation", "lark")
    page.write("grammar", 'start: "grüße" | "😀" "<b>"~2')
    page.write("text", "😀<b>")
    page.click("#back")
    seen = [page.chips(), page.text("#place"), page.text("#status")]
    page.find("#share").click()
    page.wait(lambda: page.text("#shared") != "")
    link = page.driver.current_url
    assert "#" in link
    page.open(link)
    assert page.script("return document.getElementById('notation').value") == "lark"
    assert [page.chips(), page.text("#place"), page.text("#status")] == seen
    page.open(page.address + "#not-a-state!")
    assert "holds no state" in page.text("#notice")


def test_what_others_wrote_stays_text(page: Page) -> None:
    page.choose("notation", "json-schema")
    page.write("grammar", '{"const": %s, "title": %s}' % ((repr_json(XSS),) * 2))
    page.write("text", '"<img src=x onerror=1>')
    page.write("grammar", XSS)
    assert "img" in page.text(".tall .backdrop")
    page.choose("notation", "regex")
    page.write("grammar", "<img src=x onerror=alert\\(1\\)>|<script>")
    page.write("text", "<img")
    page.write("text", XSS)
    assert page.script("return document.querySelectorAll('main img, main script').length") == 0
    assert page.driver.title == "stencilm playground"


def repr_json(text: str) -> str:
    import json

    return json.dumps(text)


def test_the_model_writes_and_its_trace_is_coloured(page: Page) -> None:
    if find_spec("transformers") is None:
        pytest.skip("the embedded model needs transformers")
    page.choose("notation", "regex")
    page.write("grammar", "<b>[a-z]{4}</b> is bold")
    page.find("#run").click()
    page.wait(lambda: page.text("#outcome") != "")
    text = page.text("#trace")
    assert text.startswith("<b>") and text.endswith("</b> is bold")
    kinds = page.script(
        "return [...document.querySelectorAll('#trace span')].map(span => span.className)"
    )
    assert {"masked", "forced"} <= set(kinds)
    assert page.script("return document.querySelectorAll('#trace b').length") == 0
    page.click("#take")
    assert page.text("#status") == "fits, and may end here"


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_nothing_is_wider_than_the_screen(page: Page, look: Any) -> None:
    set_look(page.driver, look)
    page.write("text", "x" * 400)
    wide = page.script("return document.documentElement.scrollWidth")
    assert wide <= look.width
    ink, ground = (
        page.script(f"return getComputedStyle(document.body).{name}")
        for name in ("color", "backgroundColor")
    )
    shades = [sum(int(part) for part in each[4:-1].split(",")) for each in (ink, ground)]
    assert (shades[0] > shades[1]) == look.is_dark
