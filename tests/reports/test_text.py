"""The text reports, as they are printed."""

from __future__ import annotations

import io
import re

import pytest
from any_values import analyses
from hypothesis import given, settings
from report_values import APPEND, BREAK, CLOCK, PRICES, analysis, session, turn
from rich.console import RenderableType

from prefixguard.exchange import Timing
from prefixguard.reports.csv import to_csv
from prefixguard.reports.markdown import to_markdown
from prefixguard.reports.text import console, explain_turn, render_report, sessions_table, turn_line
from prefixguard.reports.ticket import ticket_line
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Analysis, CacheOutcome, Cost, Usage

FINDINGS = Rulebook().findings
EXPIRED = CLOCK.but(
    code="PG601", name="expired", severity="warning", by="time", message="no request for 406 s"
)
COMPACTION = CLOCK.but(code="PG303", name="compaction", severity="warning", deliberate=True)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(renderable: RenderableType, stream: io.StringIO | None = None, **options: bool) -> str:
    stream = stream or io.StringIO()
    console(stream).print(renderable, **options)  # type: ignore[arg-type]
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_a_clean_session_is_told_in_two_lines() -> None:
    lines = printed(render_report(analysis(session([APPEND] * 12, "tidy")), FINDINGS)).splitlines()
    assert lines[0].startswith("tidy  12 turns")
    assert lines[1] == "No break. 95 % of the prompt tokens were read from the cache, $0.0144."
    assert lines[2] == ""
    assert lines[3].startswith("Prices: genai-prices 0.2.3 of 2026-11-20.")
    assert len(lines) == 4


def test_a_broken_session_says_what_where_and_what_to_do() -> None:
    text = printed(render_report(analysis(session([APPEND, BREAK, BREAK])), FINDINGS))
    assert "2 breaks: ~4.1k tokens were re-billed, ~$0.0036 avoidable." in text
    assert text.count("break: PG101 clock-in-prefix") == 2
    assert "turn 1 at /messages/0/content: a time of day differs" in text
    assert "2 turns, ~4.1k tokens re-billed, ~$0.0036 avoidable" in text
    assert "14:02:[-07-]" in text
    assert "14:02:{+13+}" in text
    assert "Put the time in the newest user message" in text
    assert "Computed" in text


def test_a_decision_is_not_called_a_fault() -> None:
    text = printed(render_report(analysis(session([APPEND, turn(BREAK, findings=(COMPACTION,))])), FINDINGS))
    assert "No break, but 1 decision: ~2.1k tokens were re-billed" in text
    assert "decided: PG303 compaction" in text
    assert "break:" not in text


def test_unknown_figures_are_question_marks() -> None:
    silent = turn(APPEND, usage=Usage(2000, None), cache=None, cost=Cost(), timing=Timing())
    text = printed(render_report(analysis(session([silent, silent])), FINDINGS))
    assert "Cached tokens ?: the server did not report them." in text
    assert "$" not in text
    assert "No price is known for gpt-5.1." in text
    line = turn_line(silent).plain
    assert "? cached" in line
    assert "0 %" not in line


def test_quiet_turns_of_a_long_session_are_drawn_together() -> None:
    long = session([BREAK, *[APPEND] * 60, BREAK])
    text = printed(render_report(analysis(long), FINDINGS))
    assert "60 quiet turns" in text
    assert len(text.splitlines()) < 30
    whole = printed(render_report(analysis(long), FINDINGS, every_turn=True))
    assert "quiet turns" not in whole
    assert len(whole.splitlines()) > 60


def test_many_sessions_become_a_table_and_the_worst_findings() -> None:
    many = [session([APPEND, BREAK], f"run-{i}") for i in range(5)]
    text = printed(render_report(analysis(*many), FINDINGS))
    assert len(re.findall(r"^run-\d", text, re.M)) == 5
    assert "5 turns, ~10.3k tokens re-billed" in text
    assert "what happened" not in text


def test_no_sessions_are_said_so() -> None:
    assert "No requests to a model were found." in printed(render_report(analysis(), FINDINGS))


def test_a_break_is_explained_in_full() -> None:
    whole = session([APPEND, APPEND, BREAK])
    text = printed(explain_turn(whole.turns[2], FINDINGS, whole))
    assert text.splitlines()[0] == "Turn 2 of s-1: break"
    for part in (
        "/messages/0/content: changed",
        "character 35",
        "~12 of ~2,079 tokens stand before it",
        "14:02:[-07-]",
        "14:02:{+13+}",
        "~2,053 tokens",
        "~$0.0018 of it avoidable",
        "3.1 s to the first token; 0.60 s is usual here",
        "rule openai, chosen by host",
        "PG101 clock-in-prefix: A time of day",
        "error, on every request",
        "14:02:07 -> 14:02:13",
        "Say the time where nothing is reused",
        "keep the system message byte for byte the same",
    ):
        assert part in text, part


def test_advice_for_the_engine_comes_before_that_for_the_api() -> None:
    on_vllm = turn(
        BREAK,
        cache=CacheOutcome("vllm:block=16", "host", True, 0, 0, 0, "as-predicted"),
        findings=(CLOCK.but(code="PG104", name="random-id"),),
    )
    text = printed(explain_turn(on_vllm, FINDINGS))
    assert "vLLM drops a system block" in text


def test_a_code_of_another_version_is_still_shown() -> None:
    strange = turn(BREAK, findings=(CLOCK.but(code="PG999", name="from-the-future"),))
    assert "PG999 from-the-future" in printed(explain_turn(strange, FINDINGS))
    assert "PG999 from-the-future" in printed(render_report(analysis(session([APPEND, strange])), FINDINGS))


def test_lines_of_the_live_view() -> None:
    broken = turn_line(turn(BREAK, index=7), session="0123456789").plain
    assert broken.startswith("01234567    7 changed")
    assert "break: PG101 clock-in-prefix at /messages/0/content, ~2.1k tokens re-billed, ~$0.0018" in broken
    missed = turn(
        APPEND,
        usage=Usage(2079, 0),
        cache=CacheOutcome("openai", "host", True, 1920, 2048, 0, "less"),
        findings=(EXPIRED,),
    )
    assert "miss: PG601 expired, read 0 of 1.9k to 2.0k predicted" in turn_line(missed).plain
    assert "failed with status 529" in turn_line(turn(APPEND, status=529)).plain
    assert "no answer" in turn_line(turn(APPEND, status=None, usage=None)).plain
    assert "aborted by the client" in turn_line(turn(APPEND, aborted=True)).plain
    assert turn_line(APPEND).plain.rstrip().endswith("0.60 s")
    assert turn_line(turn(APPEND, usage=None)).plain.count("~2.1k") == 1
    assert printed(turn_line(turn(BREAK)), soft_wrap=True).count("\n") == 1


def test_a_pipe_gets_no_escape_codes_and_a_sensible_width() -> None:
    text = printed(render_report(analysis(session([APPEND, BREAK])), FINDINGS))
    assert "\x1b" not in text
    assert 80 < max(map(len, text.splitlines())) <= 120
    assert not re.search(r" +$", text, re.M)


def test_a_pipe_takes_the_width_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    text = printed(render_report(analysis(session([APPEND, BREAK])), FINDINGS))
    assert max(map(len, text.splitlines())) <= 70


def test_a_terminal_gets_colours_unless_it_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    report = render_report(analysis(session([APPEND, BREAK])), FINDINGS)
    colour = re.compile(r"\x1b\[[0-9;]*3[0-9]")
    assert colour.search(printed(report, _Terminal()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colour.search(printed(report, _Terminal()))


def test_a_stream_that_cannot_write_a_character_does_not_stop_the_report() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    console(stream).print(render_report(analysis(session([APPEND, turn(BREAK, model="модель")])), FINDINGS))
    stream.flush()
    assert b"PG101" in raw.getvalue()


def test_markup_in_names_is_text() -> None:
    odd = session([turn(APPEND, model="[bold]x[/bold]")], "[red]id[/red]")
    text = printed(render_report(analysis(odd), FINDINGS)) + printed(sessions_table([odd]))
    assert text.count("[red]id[/red]") == 2
    assert "[bold]x[/bold]" in text


def test_the_line_for_a_ticket() -> None:
    broken = session([APPEND, BREAK], "run-7")
    assert ticket_line(broken, PRICES) == (
        "prefixguard: session run-7: 1 of 2 turns broke the prompt cache, ~2.1k tokens re-billed "
        "(~$0.0018 avoidable); mostly PG101 clock-in-prefix at /messages/0/content. "
        "Prices: genai-prices 0.2.3 of 2026-11-20."
    )
    assert "no break of the prompt cache in 2 turns, 95 %" in ticket_line(session([APPEND, APPEND]), PRICES)


@settings(max_examples=50, deadline=None)
@given(analyses)
def test_whatever_was_found_can_be_printed(value: Analysis) -> None:
    text = printed(render_report(value, FINDINGS, every_turn=True))
    text += printed(render_report(value, FINDINGS)) + to_markdown(value, FINDINGS) + to_csv(value)
    for one in value.sessions:
        text += ticket_line(one, value.prices)
        for each in one.turns:
            text += printed(explain_turn(each, FINDINGS, one)) + printed(turn_line(each), soft_wrap=True)
    assert "\x1b" not in text.replace(to_csv(value), "")
