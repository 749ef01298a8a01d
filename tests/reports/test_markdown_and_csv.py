"""The Markdown and CSV reports."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st
from report_values import APPEND, BREAK, CLOCK, analysis, session, turn

from prefixguard.reports.csv import to_csv
from prefixguard.reports.markdown import code, plain, to_markdown
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Cost, Usage

FINDINGS = Rulebook().findings


def test_markdown_tells_the_break_with_its_window_and_the_advice() -> None:
    text = to_markdown(analysis(session([APPEND, BREAK], "run-7")), FINDINGS)
    assert text.startswith("# Prompt cache report\n\n**1 break** in 1 session.\n")
    assert "| `run-7` | 2 | 1 | 0 | 0 | 47 % | \\~2.1k | 1.1 times | \\~$0.0042 | \\~$0.0018 |" in text
    assert "### PG101 clock-in-prefix: A time of day in a reused part of the prompt" in text
    assert "Turn 1 at `/messages/0/content`: a time of day differs." in text
    assert "```diff\n-You are a helpful agent. It is 14:02:[-07-]. Answer" in text
    assert "**To do:** Say the time where nothing is reused behind it" in text
    assert "Put the time in the newest user message" in text
    assert "genai-prices 0.2.3 of 2026-11-20" in text
    assert text.endswith("\n")


def test_markdown_of_a_clean_session_is_short() -> None:
    text = to_markdown(analysis(session([APPEND] * 3)), FINDINGS)
    assert "**No break** in 1 session." in text
    assert "##" not in text
    assert len(text.splitlines()) < 10


def test_markdown_of_nothing() -> None:
    assert "No requests to a model were found." in to_markdown(analysis(), FINDINGS)


def test_prompt_text_cannot_become_markdown() -> None:
    nasty = "```\n# Heading\n<script>x</script> | [link](http://x)"
    odd = turn(BREAK, findings=(CLOCK.but(message=nasty, pointer="/a|b`c"),), model=nasty)
    text = to_markdown(analysis(session([APPEND, odd], "a|b`c")), FINDINGS)
    assert "\n# Heading" not in text
    assert "<script>" not in text.replace("\\<script", "")
    row = next(line for line in text.splitlines() if line.startswith("| ``"))
    assert row.replace("\\|", "").count("|") == 11


@given(st.text(st.characters()))
def test_spans_stay_on_one_line(text: str) -> None:
    assert "\n" not in plain(text)
    assert "\n" not in code(text)


def test_csv_has_a_row_per_turn_and_empty_cells_for_the_unknown() -> None:
    silent = turn(APPEND, usage=Usage(2000, None), cost=Cost(), cache=None)
    rows = list(csv.DictReader(io.StringIO(to_csv(analysis(session([APPEND, BREAK, silent], "run-7"))))))
    assert [row["shape"] for row in rows] == ["first", "changed", "append"]
    assert rows[1]["break"] == "1"
    assert rows[1]["code"] == "PG101"
    assert rows[1]["pointer"] == "/messages/0/content"
    assert rows[1]["rebilled_tokens"] == "2053"
    assert rows[1]["read"] == "0"
    assert rows[2]["read"] == ""
    assert rows[2]["cost"] == ""
    assert rows[2]["read_high"] == ""


def test_csv_cells_are_no_formulas() -> None:
    odd = turn(APPEND, model='=HYPERLINK("http://x")')
    (row,) = csv.DictReader(io.StringIO(to_csv(analysis(session([odd], "-1+1")))))
    assert row["model"].startswith("'=")
    assert row["session"] == "'-1+1"
