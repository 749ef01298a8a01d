"""Text from prompts on a terminal: nothing in it acts, and differences can be seen."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from report_values import BREAK

from prefixguard.reports.visible import one_line, safe, windows
from prefixguard.turn import Divergence

assert BREAK.divergence is not None
DIVERGENCE: Divergence = BREAK.divergence


def _parted(before: str, after: str, at: int) -> tuple[str | None, str | None]:
    from dataclasses import replace

    changed = replace(DIVERGENCE, before=before, after=after, before_at=at, after_at=at)
    one, other = windows(changed)
    return one and one.plain, other and other.plain


@given(st.text(st.characters()))
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    shown = safe(text)
    assert all(unicodedata.category(c) not in ("Cc", "Cs") or c == "\n" for c in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
    assert "\n" not in one_line(text)
    shown.encode()


@given(st.text(st.characters(categories=["L", "Nd", "Zs", "Po"])))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert safe(text) == text


def test_the_difference_is_marked_without_colours() -> None:
    before, after = _parted("It is 14:02:07. Answer briefly.", "It is 14:02:13. Answer briefly.", 12)
    assert before == "It is 14:02:[-07-]. Answer briefly."
    assert after == "It is 14:02:{+13+}. Answer briefly."


def test_what_was_inserted_or_cut_off_by_the_window_is_marked_too() -> None:
    before, after = _parted("one two three four five", "one NEW AND LONG two three fo", 4)
    assert after == "one {+NEW AND LONG +}two three fo"
    assert before == "one [--]two three four five"


def test_white_space_is_spelled_where_nothing_else_differs() -> None:
    before, after = _parted("a\n  b and some more", "a\n\tb and some more", 2)
    assert (before, after) == ("a\n[-··-]b and some more", "a\n{+\\t+}b and some more")


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    before, _ = _parted("\x1b[31mred\x1b[0m", "plain", 0)
    assert before is not None
    assert "\x1b" not in before
    assert "\\e[31mred" in before


def test_nothing_before_is_nothing_to_show() -> None:
    before, after = _parted("", "new text", 0)
    assert before is None
    assert after == "{+new text+}"


@given(st.text(max_size=30), st.text(max_size=30), st.integers(0, 30))
def test_any_two_windows_can_be_shown(before: str, after: str, at: int) -> None:
    one, other = _parted(before, after, at)
    assert (one is None) == (before == "")
    assert (other is None) == (after == "")
