"""A headless Chromium for tests, where the machine has one with its driver and selenium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest


class Look(NamedTuple):
    """How a page is looked at."""

    name: str
    is_dark: bool
    width: int
    height: int


LOOKS = (
    Look("light", False, 1400, 1200),
    Look("dark", True, 1400, 1200),
    Look("narrow", False, 390, 1600),
)


def _missing() -> str | None:
    if find_spec("selenium") is None:
        return "selenium is not installed: pip install selenium"
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        return "there is no chromium with its chromedriver: apt-get install chromium-driver"
    return None


@contextmanager
def chromium(look: Look = LOOKS[0]) -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    missing = _missing()
    if missing:
        pytest.skip(missing)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.add_argument(f"--window-size={look.width},{look.height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        set_look(driver, look)
        yield driver
    finally:
        driver.quit()


def set_look(driver: Any, look: Look) -> None:
    """Light or dark, wide or narrow."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if look.is_dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": look.width, "height": look.height}
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {**size, "deviceScaleFactor": 1, "mobile": look.width < 600},
    )


def console_errors(driver: Any) -> list[str]:
    """What the console has said in anger since it was last asked."""
    return [
        entry["message"]
        for entry in driver.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]
