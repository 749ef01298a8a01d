"""The HTML report in a real browser: what it shows, by keyboard, by ear, on a phone, with hostile texts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from prefixguard.analysis import Fold, Options
from prefixguard.exchange import Exchange
from prefixguard.reports import figures
from prefixguard.reports.html import Listed, assets
from prefixguard.reports.html.document import ReportedSession, html_report
from prefixguard.reports.html.overview import Recording
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Cost

from .conftest import Opened
from .sessions import coding_session, hostile_session, long_session

RULEBOOK = Rulebook()


def written(path: Path, *logs: Sequence[Exchange], recording: Recording = "full") -> Path:
    """The report on these logs, in a file."""
    found: list[ReportedSession] = []
    for log in logs:
        fold = Fold(RULEBOOK, Options.standard(RULEBOOK))
        for exchange in log:
            fold.step(exchange)
        analysis = fold.result()
        for session in analysis.sessions:
            found.append(ReportedSession(Listed(str(len(found) + 1), session, recording), fold))
    path.write_bytes(html_report(found, RULEBOOK.findings, analysis.prices, analysis.version))
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions; the first breaks at turns 12, 21, 26, 31 and 35, and fails at turn 40."""
    return written(
        tmp_path_factory.mktemp("report") / "report.html", coding_session(), coding_session(3, "short")
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("hostile") / "report.html", hostile_session())


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 turns, the last prompts of a megabyte."""
    log = long_session()
    assert len(log) == 200
    assert len(log[-1].request) > 1_000_000
    return written(tmp_path_factory.mktemp("long") / "report.html", log)


PLACES = ("#/", "#/s/1", "#/s/1/t/26", "#/s/1/t/40")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with a break at turn 12, another at 21 and a refused request."""
    folder = tmp_path_factory.mktemp("small")
    return written(folder / "report.html", coding_session(6), coding_session(3, "short"))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_accessible(browser: Any, small: Path, scheme: str, width: int) -> None:
    """No serious finding of axe on any kind of page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}) as context:
        opened = Opened(context)
        for place in ("#/", "#/s/1", "#/s/1/t/12"):
            page = opened.go(small, place)
            for details in page.query_selector_all("details:not([open]) > summary"):
                details.click()
            found = axe.run(page).response["violations"]
            grave = [one for one in found if one["impact"] in ("serious", "critical")]
            assert not grave, [(place, one["id"], one["nodes"][0]["html"]) for one in grave]
        assert opened.wrongs == []


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_no_page_is_wider_than_the_screen(browser: Any, report: Path, hostile: Path, width: int) -> None:
    with browser.new_context(viewport={"width": width, "height": 844}) as context:
        opened = Opened(context)
        for file, place in [
            *((report, place) for place in PLACES),
            (hostile, "#/s/1"),
            (hostile, "#/s/1/t/5"),
        ]:
            page = opened.go(file, place)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (file, place)


def test_asks_nobody_anything(opened: Opened, report: Path) -> None:
    for place in PLACES:
        opened.go(report, place)
    assert {url.split("#")[0] for url in opened.requests} <= {report.as_uri(), "about:blank"}


def test_a_turn_from_the_bars_by_keyboard(opened: Opened, report: Path) -> None:
    page = opened.go(report, "#/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.session-id')"):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector(".timeline-box")
    for _ in range(20):
        if page.evaluate("document.activeElement.matches('.timeline-box')"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # the first break
    assert "turn 12 " in page.inner_text(".timeline-saying")
    active = page.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).ariaLabel"
    )
    assert "PG201 tools-reordered" in active
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Turn 12')")
    page.keyboard.press("n")
    page.wait_for_selector("h1:has-text('Turn 21')")
    assert (
        page.locator("[role=status]").last.text_content() == "Turn 21 of 7f3a19c2-fix-invoice-tax is shown."
    )
    page.keyboard.press("p")
    page.keyboard.press("j")  # faster than a turn is drawn
    page.wait_for_selector("h1:has-text('Turn 13')")
    page.keyboard.press("Escape")
    page.wait_for_selector("h1:has-text('7f3a19c2')")
    assert page.url.endswith("#/s/1")


def test_single_keys_can_be_switched_off(opened: Opened, report: Path) -> None:
    page = opened.go(report, "#/s/1/t/12")
    page.click("footer summary")
    page.click("text=Single keys: on")
    page.keyboard.press("n")
    page.wait_for_timeout(50)
    assert page.url.endswith("#/s/1/t/12")


def test_the_focus_can_be_seen(opened: Opened, report: Path) -> None:
    """Every stop of the Tab key has an outline."""
    page = opened.go(report, "#/s/1/t/26")
    stops = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        tag, width, style = page.evaluate(
            "(() => {const e = document.activeElement, s = getComputedStyle(e);"
            "return [e.className || e.tagName, parseFloat(s.outlineWidth), s.outlineStyle]})()"
        )
        if tag == "BODY":
            break
        stops.add(tag)
        assert width >= 2, tag
        assert style != "none", tag
    assert {"timeline-box", "segment-button", "reader-text"} <= {stop.split()[0] for stop in stops}


def test_what_a_break_shows(opened: Opened, report: Path) -> None:
    page = opened.go(report, "#/s/1/t/26")
    assert "break" in page.inner_text("h1")
    assert page.locator("del").all_text_contents() == ["gone: 05:35"]
    assert page.locator("ins").all_text_contents() == ["new: 06:42"]
    page.click("text=By tokens")
    assert "o200k_base, an estimate" in page.inner_text(".difference")
    assert page.locator("ins.token").all_text_contents() == ["new: 06", "new: 42"]
    finding = page.inner_text(".finding >> nth=0")
    assert "PG101 clock-in-prefix" in finding
    assert "To do: Say the time where nothing is reused behind it" in finding
    assert "predicted 0 tokens read, reported 0: as predicted" in page.inner_text(".facts")
    assert page.inner_text(".segment-parted .tag-parted") == "parts here"
    parted = page.locator(".reader-text").text_content() or ""
    assert "The time is 2026-09-21 14:0here the prompt parts: 6:42." in parted
    states = page.locator(".prompt .legend-entry").all_text_contents()
    assert [state.split()[1] for state in states] == ["lost", "new"]


def test_any_segment_can_be_read(opened: Opened, report: Path) -> None:
    page = opened.go(report, "#/s/1/t/13")
    page.wait_for_selector(".reader-text")
    page.click(".segment-button >> nth=6")
    page.wait_for_selector(".reader h3:has-text('system')")
    assert page.inner_text(".reader-text").startswith("You are a careful software engineer")
    page.focus(".segment-button >> nth=6")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".reader h3:has-text('user')")
    assert "tax on invoices" in page.inner_text(".reader-text")


def test_filter_of_sessions(opened: Opened, report: Path) -> None:
    page = opened.go(report, "#/")
    assert page.locator(".sessions .rows > *").count() == 2
    page.keyboard.press("/")
    page.keyboard.type("short claude")
    assert page.locator(".sessions .rows > *").count() == 1
    assert "1 of 2 sessions" in page.inner_text("[role=status] >> nth=1")
    page.fill("#filter", "no such thing")
    assert page.locator(".sessions .rows > *").count() == 0


def test_theme_switch(opened: Opened, report: Path) -> None:
    page = opened.go(report, "#/")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.click("text=Theme: auto")
    assert page.evaluate(colour) == light
    page.click("text=Theme: light")
    assert page.evaluate(colour) != light


def test_only_turns_with_something_to_say(opened: Opened, report: Path) -> None:
    page = opened.go(report, "#/s/1")
    rows = ".turns .rows > *"
    assert page.locator(rows).count() == 51
    page.click("text=With something to say")
    assert page.locator(rows).count() == 7
    assert "PG601 expired" in page.inner_text(f"{rows} >> nth=6")


def test_places_that_do_not_exist(opened: Opened, report: Path) -> None:
    for place, said in (
        ("#/s/9", "no such session"),
        ("#/s/1/t/999", "no turn 999"),
        ("#/nowhere", "no page"),
    ):
        page = opened.go(report, place)
        assert "This cannot be shown" in page.inner_text("h1")
        assert said in page.inner_text("[role=alert]")


def test_hostile_texts_stay_texts(opened: Opened, hostile: Path) -> None:
    page = opened.go(hostile, "#/s/1")
    assert page.inner_text("h1") == '"><script>document.title="broken out"</script>\\u202e'
    seen = ""
    for turn in (2, 5, 7):
        page = opened.go(hostile, f"#/s/1/t/{turn}")
        page.wait_for_selector(".reader-text")
        for i in range(page.locator(".segment-button").count()):
            page.click(f".segment-button >> nth={i}")
        page.wait_for_timeout(60)
        seen += page.inner_text(".reader-text") + page.inner_text("main")
        assert "broken out" not in page.title().replace('document.title="broken out"', "")
    assert "</script><script>document.title='broken out'</script>" in seen
    assert "\\u202eesrever\\u202c" in seen
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u2028\u2029\x00\x1b]", seen)
    types = page.evaluate("[...document.scripts].map((script) => script.type)")
    assert set(types) == {"text/plain", "application/json", "module"}
    assert types.count("module") == 1
    assert page.evaluate("document.querySelectorAll('main img, main style, main script').length") == 0


def test_a_very_long_text_comes_in_windows(opened: Opened, hostile: Path) -> None:
    page = opened.go(hostile, "#/s/1/t/5")
    page.wait_for_selector(".reader-text")
    page.click(".segment-button:has(.segment-what:text-is('user')):has-text('xxxxxxxxxx')")
    page.wait_for_selector(".pager:has-text('of 400,000')")
    assert "left out to keep the file small" in page.inner_text(".pager")
    for _ in range(3):
        assert page.evaluate("document.querySelector('.reader-text').textContent.length") <= 17_000
        page.click("[aria-label='Later text']")
        page.wait_for_timeout(30)
    assert "characters 49,153 to 65,536" in page.inner_text(".pager")


NODES = 2500
"""Elements in the document at most, whatever a session holds: what is out of view is not there."""


def test_a_long_session_stays_light(opened: Opened, long: Path) -> None:
    assert long.stat().st_size < 1_000_000
    page = opened.go(long, "#/s/1")
    count = "document.querySelectorAll('*').length"
    assert page.evaluate(count) < NODES + 1000  # 200 bars are all in view at this width
    assert page.locator(".turns .rows > *").count() < 60
    page.evaluate("document.querySelector('.turns .scroller').scrollTop = 1e6")
    page.wait_for_selector(".turns .rows > [data-row='199']")
    page.click(".turns .rows > [data-row='199'] a")
    page.wait_for_selector("h1:has-text('Turn 199')")
    page.wait_for_selector(".segment-button")
    assert page.locator(".segment-button").count() < 80
    assert "400 segments" in page.inner_text(".prompt")
    page.click("text=Go to first new")
    page.wait_for_selector(".segment-button[aria-current]:has-text('Answer 198')")
    assert page.evaluate(count) < NODES
    page.focus(".segment-button[aria-current]")
    page.keyboard.press("Home")
    page.wait_for_selector(".segments [data-row='0']")
    assert page.evaluate("document.activeElement.closest('[data-row]').dataset.row") == "0"


@pytest.mark.parametrize(
    ("recording", "said"), [("hashes", "digests only"), ("redacted", "secrets taken out")]
)
def test_says_what_cannot_be_seen(opened: Opened, tmp_path: Path, recording: Recording, said: str) -> None:
    file = written(tmp_path / "report.html", coding_session(2), recording=recording)
    assert said in opened.go(file, "#/s/1").inner_text(".page-head .note")
    assert said in opened.go(file, "#/s/1/t/3").inner_text(".note")


def test_figures_are_those_of_the_other_reports(opened: Opened) -> None:
    """The page's own formatting, held to `reports/figures.py` value by value."""
    page = opened.page
    page.goto("about:blank")
    counts = [None, 0, 1, 949, 950, 999, 1000, 9949, 9950, 12_250, 12_350, 99_949, 99_950, 999_499, 999_500,
              1_249_999, 1_250_000, 123_456_789, 5 * 10**9]  # fmt: skip
    shares = [None, 0.0, 1e-6, 0.004, 0.005, 0.0149, 0.125, 0.135, 0.5, 0.985, 0.9901, 0.99951, 0.9999, 1.0]
    amounts = [None, 0.0, 1e-6, 4.9e-5, 5e-5, 0.00005, 0.01235, 0.09999, 0.1, 0.1235, 0.99951, 1.0, 1.005,
               2.675, 1234.5, -0.5, 1e6]  # fmt: skip
    times = [None, 0.0, 4.0, 994.9, 999.9, 1000.0, 1050.0, 2250.0, 99_949.0, 100_500.0]
    spans = [0.0, 0.5, 1.5, 59.4, 59.5, 60.0, 200.0, 3599.6, 7500.0]
    costs = [Cost("USD"), Cost("EUR", estimated=True), Cost("CHF")]
    page.add_script_tag(content=assets.read("figures.js").decode().replace("export ", ""))
    asked = {"counts": counts, "shares": shares, "amounts": amounts, "times": times, "spans": spans}
    told = page.evaluate(
        """(asked) => ({
          tokens: asked.counts.flatMap((n) =>
            [tokens(n), tokens(n, true), exactTokens(n), exactTokens(n, true)]),
          percent: asked.shares.map(percent),
          money: asked.amounts.flatMap((n) => [["USD", false], ["EUR", true], ["CHF", false]]
            .map(([currency, estimated]) => money(n, { currency, estimated }))),
          seconds: asked.times.map(seconds),
          duration: asked.spans.map(duration),
          clock: asked.spans.map(clock),
        })""",
        json.loads(json.dumps(asked)),
    )
    assert told == {
        "tokens": [
            written_
            for n in counts
            for written_ in (
                figures.tokens(n), figures.tokens(n, estimated=True), figures.exact_tokens(n),
                figures.exact_tokens(n, estimated=True),
            )
        ],
        "percent": [figures.percent(share) for share in shares],
        "money": [figures.money(amount, cost) for amount in amounts for cost in costs],
        "seconds": [figures.seconds(time) for time in times],
        "duration": [figures.duration(span) for span in spans],
        "clock": [figures.clock(span) for span in spans],
    }  # fmt: skip
