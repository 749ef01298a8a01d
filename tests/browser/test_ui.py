"""The live pages in a real browser, while a session is written to a real record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect
from ui.agents import add, captures, record
from ui.running import KEY, TICKET, Running, running

from prefixguard.store import Store
from prefixguard.ui.watch import RecordFeed

PAGES = ("", "#/s/broken", "#/s/broken/t/3", "#/compare/broken/mended", "#/search/parser")
PATIENCE = 20_000  # milliseconds: a busy machine is slow, and a wait ends as soon as it can


@contextmanager
def watched(
    browser: Browser, server: Running, hash_: str = "", forgiven: str = "nothing", **options: object
) -> Iterator[Page]:
    """A page that knows the key; nothing must go wrong in its console, or only what is `forgiven`."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{server.url}/#key={KEY}")
    if hash_:
        go(page, hash_)
    yield page
    context.close()
    assert [text for text in wrong if forgiven not in text] == []


def go(page: Page, hash_: str) -> None:
    """Goes to another of the pages, and waits until it is drawn."""
    page.evaluate("hash => { location.hash = hash; }", hash_)
    expect(page.locator("main h1, main h2").first).to_be_visible()
    expect(page.locator("main[aria-busy]")).to_have_count(0)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "record.sqlite")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A record of two sessions that tests only read."""
    path = tmp_path_factory.mktemp("ui") / "record.sqlite"
    with Store.open(path) as store:
        record(store, "mended", turns=8)
        record(store, "broken", clock=True, turns=8, start=1_796_001_000.0)
    with running(RecordFeed(str(path))) as server:
        yield server


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def test_a_session_appears_and_its_break_is_seen(
    browser: Browser, path: str, record_property: Callable[[str, object], None]
) -> None:
    with Store.open(path) as store, running(RecordFeed(path)) as server, watched(browser, server) as page:
        expect(page.get_by_text("prefixguard run -- my-agent")).to_be_visible()
        live = captures("run-7", clock=True)
        add(store, next(live))
        expect(row(page, "run-7")).to_contain_text("1 turn", timeout=PATIENCE)
        expect(page.get_by_text("prefixguard run -- my-agent")).not_to_be_visible()
        add(store, next(live))
        expect(row(page, "run-7")).to_contain_text("2 turns", timeout=PATIENCE)
        written = time.monotonic()
        add(store, next(live))
        expect(row(page, "run-7")).to_contain_text("PG101", timeout=PATIENCE)
        seen = time.monotonic() - written
        record_property("seconds_until_a_break_is_seen", round(seen, 3))
        print(f"a break was seen after {seen:.2f} s")
        expect(page.get_by_role("status").filter(has_text="A break in session run-7")).to_have_count(1)


def test_an_open_session_grows_in_place(browser: Browser, path: str) -> None:
    with Store.open(path) as store:
        record(store, "run-7", turns=60)
        with running(RecordFeed(path)) as server, watched(browser, server, "#/s/run-7") as page:
            bars = page.get_by_role("listbox")
            expect(bars).to_be_visible()
            page.evaluate("scrollTo(0, 120)")
            bars.focus()
            page.keyboard.press("ArrowRight")
            before = page.evaluate("[scrollY, document.activeElement.getAttribute('role')]")
            add(store, list(captures("run-7", turns=61))[60])
            expect(page.get_by_text("61 turns").first).to_be_visible(timeout=PATIENCE)
            assert page.evaluate("[scrollY, document.activeElement.getAttribute('role')]") == before
            assert before[0] > 0


def test_what_is_open_and_focused_stays_so(browser: Browser, path: str) -> None:
    live = captures("run-7", clock=True)
    with Store.open(path) as store, running(RecordFeed(path)) as server, watched(browser, server) as page:
        record(store, "run-6", turns=2)
        for _ in range(3):
            add(store, next(live))
        cause = page.locator("details").filter(has_text="clock-in-prefix")
        cause.locator("summary").click()
        add(store, next(live))
        expect(row(page, "run-7")).to_contain_text("4 turns", timeout=PATIENCE)
        expect(cause).to_contain_text("2 turns")
        assert cause.evaluate("one => [one.open, one.contains(document.activeElement)]") == [True, True]
        row(page, "run-7").get_by_role("link", name="run-7").focus()
        add(store, next(live))
        expect(row(page, "run-7")).to_contain_text("5 turns", timeout=PATIENCE)
        assert page.evaluate("document.activeElement.textContent") == "run-7"


def test_the_list_is_filtered(browser: Browser, both: Running) -> None:
    with watched(browser, both) as page:
        expect(row(page, "mended")).to_be_visible()
        page.get_by_label("breaks only").check()
        expect(row(page, "mended")).to_have_count(0)
        expect(row(page, "broken")).to_be_visible()
        page.get_by_label("breaks only").uncheck()
        page.get_by_label("Only sessions with this cause").select_option("PG101")
        expect(row(page, "mended")).to_have_count(0)
        page.get_by_label("Only sessions with this cause").select_option("")
        page.get_by_label("Filter the sessions").fill("mend")
        expect(row(page, "broken")).to_have_count(0)
        expect(row(page, "mended")).to_be_visible()


def test_two_sessions_are_compared(browser: Browser, both: Running) -> None:
    with watched(browser, both) as page:
        page.get_by_role("link", name="Compare").first.click()
        page.get_by_label("before", exact=True).select_option("broken")
        page.get_by_label("after", exact=True).select_option("mended")
        breaks = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="breaks", exact=True))
        expect(breaks).to_contain_text("better")
        expect(page.get_by_role("listbox")).to_have_count(2)
        page.get_by_role("button", name="Swap").click()
        expect(breaks).to_contain_text("worse")
        assert page.evaluate("location.hash") == "#/compare/mended/broken"


def test_a_text_is_looked_for_in_all_prompts(browser: Browser, both: Running) -> None:
    with watched(browser, both, "#/search") as page:
        page.get_by_label("Text to look for in prompts").fill("file number 3 holds")
        expect(page.get_by_text("2 places")).to_be_visible()
        expect(page.locator("mark").first).to_have_text("File number 3 holds")
        page.get_by_role("link", name="turn 4").first.click()
        expect(page.get_by_role("heading", name="Turn 4")).to_be_visible()
        page.go_back()
        expect(page.get_by_text("2 places")).to_be_visible()


def test_a_turn_is_opened_and_found_again(browser: Browser, both: Running) -> None:
    with watched(browser, both, "#/s/broken/t/3") as page:
        expect(page.get_by_role("heading", name="Turn 3")).to_be_visible()
        expect(page.get_by_text("clock-in-prefix").first).to_be_visible()
        assert "key=" not in page.url
        page.reload()
        expect(page.get_by_role("heading", name="Turn 3")).to_be_visible()


def test_a_page_comes_back_when_the_server_does(browser: Browser, path: str) -> None:
    with Store.open(path) as store:
        live = captures("run-7")
        add(store, next(live))
        with (
            running(RecordFeed(path)) as server,
            watched(browser, server, forgiven="ERR_CONNECTION_REFUSED") as page,
        ):
            port = int(server.url.rpartition(":")[2])
            expect(page.get_by_text("live", exact=True)).to_be_visible()
            expect(row(page, "run-7")).to_contain_text("1 turn")
            server.stop()
            expect(page.get_by_text("disconnected, trying again")).to_be_visible()
            with running(RecordFeed(path), port=port):
                expect(page.get_by_text("live", exact=True)).to_be_visible()
                add(store, next(live))
                expect(row(page, "run-7")).to_contain_text("2 turns", timeout=PATIENCE)


def test_nobody_without_the_key_sees_anything(browser: Browser, both: Running) -> None:
    page = browser.new_page()
    page.goto(both.url)
    expect(page.get_by_text("open the address that `prefixguard ui` printed").first).to_be_visible()
    assert "broken" not in page.content()
    page.close()


def test_a_ticket_opens_the_page_once(browser: Browser, path: str) -> None:
    with Store.open(path) as store, running(RecordFeed(path)) as server:
        record(store, "run-7", turns=1)
        for expected in ("run-7", "open the address that `prefixguard ui` printed"):
            context = browser.new_context()
            page = context.new_page()
            page.goto(f"{server.url}/#ticket={TICKET}")
            expect(page.get_by_text(expected).first).to_be_visible(timeout=PATIENCE)
            assert "ticket" not in page.url
            context.close()


def test_other_sites_get_nothing(browser: Browser, both: Running) -> None:
    port = both.url.rpartition(":")[2]
    page = browser.new_page()
    answer = page.goto(f"http://rebound.localhost:{port}/")
    assert answer is not None
    assert answer.status == 403
    # The same server under its other name is another site for the browser.
    page.goto(f"http://localhost:{port}/")
    ask = "([url, key]) => fetch(url, {headers: {authorization: `Bearer ${key}`}})"
    tried = page.evaluate(f"{ask}.then((answer) => answer.status, String)", [f"{both.url}/api/overview", KEY])
    assert "TypeError" in tried  # not even an answer to look at
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_axe(browser: Browser, both: Running, scheme: str) -> None:
    with watched(browser, both, color_scheme=scheme) as page:
        for hash_ in PAGES:
            go(page, hash_)
            serious = [
                (hash_, one["id"], [node["target"] for node in one["nodes"]])
                for one in Axe().run(page).response["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == []


def test_a_phone_shows_it_without_sideways_scrolling(browser: Browser, both: Running) -> None:
    with watched(browser, both, viewport={"width": 390, "height": 844}) as page:
        for hash_ in PAGES:
            go(page, hash_)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, hash_
