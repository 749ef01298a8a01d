"""Figures for people: short, marked when estimated, and unknown is never zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_values import APPEND, BREAK, session, turn

from prefixguard.reports import figures
from prefixguard.turn import Cost, Usage


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (None, "?"),
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (12_345, "12.3k"),
        (99_949, "99.9k"),
        (99_951, "100k"),
        (999_499, "999k"),
        (999_501, "1.0M"),
        (1_234_567, "1.2M"),
    ],
)
def test_tokens(count: int | None, written: str) -> None:
    assert figures.tokens(count) == written
    assert figures.exact_tokens(0, estimated=True) == "0"
    assert figures.tokens(count, estimated=True) == (written if count is None else "~" + written)


@given(st.integers(0, 10**12))
def test_tokens_are_short_and_near(count: int) -> None:
    written = figures.tokens(count)
    assert len(written) <= 5
    value = float(written.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(written[-1], 1)
    assert abs(value - count) <= 0.051 * count


@given(st.floats(0, 1))
def test_percent_is_whole_only_when_it_is(share: float) -> None:
    written = figures.percent(share)
    assert (written == "100 %") == (share == 1)
    assert (written == "0 %") == (share == 0)


@pytest.mark.parametrize(
    ("amount", "cost", "written"),
    [
        (None, Cost(), "?"),
        (0.0, Cost(), "$0.00"),
        (0.00123, Cost(), "$0.0012"),
        (0.5, Cost(), "$0.500"),
        (1234.5, Cost(), "$1,234.50"),
        (0.00123, Cost(estimated=True), "~$0.0012"),
        (0.00001, Cost(), "<$0.0001"),
        (-0.5, Cost(), "-$0.500"),
        (2.0, Cost("CHF"), "2.00 CHF"),
    ],
)
def test_money(amount: float | None, cost: Cost, written: str) -> None:
    assert figures.money(amount, cost) == written


def test_the_cached_share_is_unknown_unless_the_server_told() -> None:
    assert figures.cached_share(APPEND) == pytest.approx(1974 / 2079)
    assert figures.cached_share(turn(APPEND, usage=None)) is None
    assert figures.cached_share(turn(APPEND, usage=Usage(2079, None))) is None
    assert figures.cached_share(turn(APPEND, usage=Usage(2079, 0))) == 0


def test_rewrite_factor_counts_what_was_computed() -> None:
    first = turn(APPEND, usage=Usage(1000, 0))
    append = turn(APPEND, usage=Usage(1000, 1000))
    assert figures.rewrite_factor(session([first, append])) == 1.0
    assert figures.rewrite_factor(session([first, turn(APPEND, usage=Usage(2000, 0))])) == 1.5
    assert figures.rewrite_factor(session([first, turn(APPEND, usage=Usage(2000, None))])) is None


def test_the_usual_first_token_leaves_breaks_and_cold_starts_out() -> None:
    assert figures.usual_first_token_ms(session([BREAK, APPEND, BREAK, APPEND])) == 600.0
    assert figures.usual_first_token_ms(session([APPEND, BREAK])) is None


@pytest.mark.parametrize(
    ("value", "written"), [(0.4, "0 s"), (59.6, "1 min"), (61, "1 min 1 s"), (7500, "2 h 5 min")]
)
def test_durations(value: float, written: str) -> None:
    assert figures.duration(value) == written
