"""The gate: what counts, what passes, and that what cannot be measured does not pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import report_values as make

from prefixguard.baseline import read_baseline, write_baseline
from prefixguard.errors import InputError
from prefixguard.finding import Finding
from prefixguard.gate import Input, Known, Policy, Verdict, judge, place_of, to_known
from prefixguard.turn import Cost, Turn

DECIDED = replace(make.BREAK, findings=(replace(make.CLOCK, code="PG303", deliberate=True),))
SHUFFLED = replace(make.BREAK, findings=(replace(make.CLOCK, code="PG201", name="tools-reordered"),))
REMARK = Finding("PG504", "x", "x", severity="warning")


def verdict(turns: list[Turn], known: Counter[Known] | None = None, **policy: Any) -> Verdict:
    return judge([Input("log", make.analysis(make.session(turns)))], Policy(**policy), known)


def test_a_break_that_nobody_decided_on_fails_and_names_its_turn() -> None:
    result = verdict([make.APPEND, make.BREAK, make.APPEND, make.BREAK])
    assert not result.holds
    (violation,) = result.violations
    assert (violation.limit, violation.allowed, violation.found) == ("max-breaks", 0, 2)
    assert [fault.turn.index for fault in violation.faults] == [1, 3]
    assert [fault.code for fault in result.faults] == ["PG101", "PG101"]
    assert violation.message == "2 breaks, 0 allowed"


def test_breaks_by_decision_and_allowed_ones_pass() -> None:
    assert verdict([make.APPEND, DECIDED]).holds
    assert verdict([make.APPEND, make.BREAK], max_breaks=1).holds
    assert verdict([make.APPEND, make.BREAK], max_breaks=None).holds
    assert not verdict([make.APPEND, make.BREAK, DECIDED]).holds


def test_tokens_and_money_count_for_faults_only() -> None:
    turns = [make.APPEND, make.BREAK, DECIDED]
    result = verdict(turns, max_breaks=9, max_rebilled_tokens=2052, max_avoidable_usd=0.001)
    assert [v.limit for v in result.violations] == ["max-rebilled-tokens", "max-avoidable-usd"]
    assert result.figures.rebilled_tokens == make.BREAK.tokens.rebilled
    assert result.figures.avoidable_usd == pytest.approx(0.0018)
    assert verdict(turns, max_breaks=9, max_rebilled_tokens=2053, max_avoidable_usd=0.0018).holds


def test_the_hit_rate_is_over_all_tokens() -> None:
    turns = [make.APPEND, make.BREAK]  # 1974 of 4158 tokens
    assert verdict(turns, max_breaks=9, min_hit_rate=0.47).holds
    result = verdict(turns, max_breaks=9, min_hit_rate=0.475)
    assert result.violations[0].message == "a hit rate of 47.5%, at least 47.5% is asked for".replace(
        "of 47.5%", "of 47.475%"
    )


def test_what_is_not_known_does_not_pass() -> None:
    silent = replace(make.APPEND, usage=None, cost=Cost())
    result = verdict([silent], min_hit_rate=0.1, max_avoidable_usd=1.0)
    assert [(v.limit, v.found) for v in result.violations] == [
        ("min-hit-rate", None),
        ("max-avoidable-usd", None),
    ]
    assert verdict([silent]).holds
    euros = replace(make.BREAK, cost=Cost("EUR", 1.0, 1.0, 1.0, 0.5))
    assert verdict([euros], max_breaks=9, max_avoidable_usd=9.0).violations[0].found is None


def test_select_and_ignore_take_codes_and_their_beginnings() -> None:
    turns = [make.APPEND, make.BREAK, SHUFFLED]
    assert [f.code for f in verdict(turns, select=("PG2",)).faults] == ["PG201"]
    assert [f.code for f in verdict(turns, ignore=("PG2",)).faults] == ["PG101"]
    assert verdict(turns, ignore=("PG",)).holds
    # Money of a break that does not count is not the policy's business either.
    assert verdict(turns, ignore=("PG",), max_avoidable_usd=0.0).holds


def test_a_selected_finding_counts_without_a_break() -> None:
    turns = [make.APPEND, replace(make.APPEND, findings=(REMARK,))]
    assert verdict(turns).holds
    result = verdict(turns, select=("PG504", "PG101"))
    assert [fault.turn.index for fault in result.faults] == [1]
    assert result.violations[0].message == "1 selected finding, 0 allowed"
    quiet = replace(make.APPEND, findings=(replace(REMARK, severity="info"),))
    assert verdict([quiet], select=("PG504",)).holds


def test_a_baseline_accepts_as_many_as_it_knows_and_says_what_it_knows_too_much() -> None:
    known = to_known(verdict([make.APPEND, make.BREAK, SHUFFLED]).faults)
    again = verdict([make.APPEND, make.BREAK, SHUFFLED], known)
    assert again.holds
    assert len(again.accepted) == 2
    assert again.figures.rebilled_tokens == 0
    more = verdict([make.APPEND, make.BREAK, make.BREAK, SHUFFLED], known)
    assert [fault.turn.index for fault in more.faults] == [2]
    less = verdict([make.APPEND, make.BREAK], known)
    assert less.unneeded == ((Known("PG201", "openai-chat", "/messages/*/content"), 1),)


def test_the_baseline_file_comes_back_as_it_was(tmp_path: Path) -> None:
    known = Counter({Known("PG101", "openai-chat", "/a"): 3, Known("", "gemini", ""): 1})
    write_baseline(tmp_path / "b.json", known)
    assert read_baseline(tmp_path / "b.json") == known


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": "x/1", "faults": []}', '{"schema": 1}'])
def test_what_is_no_baseline_is_told_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(content)
    with pytest.raises(InputError, match="not a baseline"):
        read_baseline(path)
    with pytest.raises(InputError, match="--write-baseline"):
        read_baseline(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("/messages/12/content/0/text", "/messages/*/content/*/text"),
        ("/input/3", "/input/*"),
        ("/system/0/text", "/system/0/text"),
        ("/tools/2/description", "/tools/2/description"),
        ("", ""),
    ],
)
def test_places_hold_while_a_conversation_grows(pointer: str, place: str) -> None:
    assert place_of(pointer) == place


@given(
    kinds=st.lists(st.sampled_from([make.APPEND, make.BREAK, DECIDED, SHUFFLED]), max_size=12),
    most=st.integers(0, 12),
)
def test_its_own_baseline_always_holds_and_a_wider_limit_never_breaks_more(
    kinds: list[Turn], most: int
) -> None:
    result = verdict(kinds, max_breaks=most)
    assert result.holds == (sum(turn in (make.BREAK, SHUFFLED) for turn in kinds) <= most)
    assert verdict(kinds, to_known(verdict(kinds).faults)).holds
    if result.holds:
        assert verdict(kinds, max_breaks=most + 1).holds
