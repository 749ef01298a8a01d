"""A real Chromium. Tests in it are skipped where the machine has none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a file; two drivers at once do not stand each other."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Opened:
    """A page in a browser, and what it did that it should not: errors, refused things, requests."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.wrongs: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.wrongs.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.wrongs.append(said.text) if said.type in ("error", "warning") else None,
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: self.wrongs.append(f"dialog: {dialog.message}"))

    def go(self, file: Path, place: str = "#/") -> Page:
        """Opens a place of a report, and waits until it is drawn."""
        self.page.goto("about:blank")
        self.page.goto(f"{file.as_uri()}{place}")
        self.page.wait_for_selector("main > * h1:visible")
        return self.page


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """A page of its own. The test fails when anything in it went wrong."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        found = Opened(context)
        yield found
        assert found.wrongs == []
