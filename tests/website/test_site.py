"""The site: built strictly, with nothing from elsewhere, and every page looked at in a browser."""

from __future__ import annotations

import functools
import importlib.util
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import stencilm
from browser import LOOKS, chromium, console_errors, set_look
from website import contents
from website.build import groups

ROOT = Path(__file__).parent.parent.parent
ASKED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"([^\"]+)\"|<link ([^>]+)>")

SHOWN = """return document.documentElement.scrollWidth <= arguments[0]
    && document.body.getAttribute("data-md-color-scheme") === arguments[1]"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("mkdocs", "material", "mkdocstrings", "griffe"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the site is built with {package}: pip install --group docs")
    from website.build import build

    out = tmp_path_factory.mktemp("site")
    build(out)  # strict: a link or an anchor that leads nowhere raises
    return out


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        del arguments


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=site))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(30)


def pages(site: Path) -> list[str]:
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def test_every_public_name_is_in_the_reference_once() -> None:
    listed = [name for group in groups() for name in group.names]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(stencilm.__all__) - {"__version__"}


def test_every_page_is_in_the_menu() -> None:
    listed = {entry for _, entries in contents.NAVIGATION for entry in entries}
    folders = (*contents.FOLDERS, contents.COMING_FROM)
    for page in (ROOT / "docs").rglob("*.md"):
        place = page.relative_to(ROOT).as_posix()
        assert place in listed or str(Path(place).parent.as_posix()) in folders, place


def test_the_site_has_all_pages(site: Path) -> None:
    there = pages(site)
    assert "index.html" in there and "docs/tutorial.html" in there
    assert "docs/cookbook/sql.html" in there and "reference/matching.html" in there
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


def test_the_reference_has_the_methods_of_the_extension(site: Path) -> None:
    page = (site / "reference" / "matching.html").read_text(encoding="utf-8")
    for name in ("accept_token", "fill_next_token_bitmask", "find_jump_forward_tokens"):
        assert re.search(rf'id="stencilm\.[\w.]+\.{name}"', page), name
    assert "Accept the next token of the sequence" in page  # from the Rust source, by the stub
    assert "_naive_bitmask" not in page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for name in pages(site):
        for source, link in ASKED.findall((site / name).read_text(encoding="utf-8")):
            assert not re.match(r"(https?:)?//", source), (name, source)
            if 'rel="stylesheet"' in link or 'rel="icon"' in link or "preconnect" in link:
                assert not re.search(r"href=\"(https?:)?//", link), (name, link)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_every_page_opens_without_an_error(site: Path, address: str) -> None:
    pytest.importorskip("selenium")
    from selenium.webdriver.support.ui import WebDriverWait

    with chromium() as driver:
        # A request to anywhere else fails, and says so on the console.
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["https://*"]})
        for page in pages(site):
            driver.get(f"{address}/{page}")
            for look in LOOKS:
                set_look(driver, look)
                assert console_errors(driver) == [], (page, look.name)
                # Size and colours follow a moment after the look has changed.
                WebDriverWait(driver, 20).until(
                    lambda driver, look=look: driver.execute_script(
                        SHOWN, look.width, "slate" if look.is_dark else "default"
                    ),
                    f"{page} is wider than the {look.name} screen, or in other colours",
                )
                broken = driver.execute_script(
                    "return [...document.images].filter(image => !image.naturalWidth)"
                    ".map(image => image.src)"
                )
                assert broken == [], page


def test_the_search_finds(address: str) -> None:
    pytest.importorskip("selenium")
    from selenium.webdriver.support.ui import WebDriverWait

    with chromium() as driver:
        driver.get(f"{address}/index.html")
        driver.find_element("css selector", "[data-md-component=search-query]").send_keys(
            "rollback"
        )
        found = WebDriverWait(driver, 60).until(
            lambda driver: driver.find_elements("css selector", ".md-search-result__item a")
        )
        assert any("engine" in link.get_attribute("href") for link in found)
        assert console_errors(driver) == []


def test_the_pictures_are_what_their_script_draws() -> None:
    from website.pictures import FOLDER, PICTURES

    for name, draw in PICTURES.items():
        assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == draw(), (
            f"{name}.svg is not up to date: python -m website.pictures"
        )
