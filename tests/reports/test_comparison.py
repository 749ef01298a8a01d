"""Two turns, or two sessions, side by side."""

from __future__ import annotations

import io
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from report_values import APPEND, BREAK, session, turn
from rich.console import RenderableType

from prefixguard.exchange import Exchange
from prefixguard.prompt import Prompt, Segment
from prefixguard.reports.comparison import compare_sessions, comparison_to_dict, merged
from prefixguard.reports.prompts import changed_parameters, compare_prompts, steps_to_json
from prefixguard.reports.text import console
from prefixguard.reports.text.difference import sessions_difference, turns_difference
from prefixguard.turn import Cost, Usage
from prefixguard.wire.decoder import Decoder

DECODER = Decoder({"*": ("temperature",)})


def prompt(*messages: str | dict[str, Any], tools: tuple[str, ...] = (), **fields: Any) -> Prompt:
    """A chat prompt; a bare string is a user message."""
    body = {
        "model": "gpt-5.1",
        "tools": [
            {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
            for name in tools
        ],
        "messages": [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages],
        **fields,
    }
    return DECODER.prompt(Exchange(0.0, "/v1/chat/completions", json.dumps(body).encode()))


def characters(segment: Segment) -> int:
    return len(segment.text)


def changes(before: Prompt, after: Prompt) -> list[tuple[str, str | None, str | None]]:
    steps = compare_prompts(before, after, characters)
    return [(step.change, step.before, step.after) for step in steps if step.change != "same"]


def printed(renderable: RenderableType) -> str:
    stream = io.StringIO()
    console(stream).print(renderable)
    return stream.getvalue()


def test_an_append_is_new_segments_only() -> None:
    assert changes(prompt("one", "two"), prompt("one", "two", "three")) == [
        ("new", None, "/messages/2/content")
    ]


def test_an_edit_a_removal_and_a_move() -> None:
    before = prompt("alpha beta", "gamma", "delta", tools=("a", "b"))
    assert changes(before, prompt("alpha BETA", "gamma", "delta", tools=("a", "b"))) == [
        ("changed", "/messages/0/content", "/messages/0/content")
    ]
    assert changes(before, prompt("alpha beta", "delta", tools=("a", "b"))) == [
        ("gone", "/messages/1/content", None)
    ]
    moved = changes(before, prompt("alpha beta", "gamma", "delta", tools=("b", "a")))
    assert {change for change, _, _ in moved} == {"moved"}
    assert len(moved) == 2


def test_other_bytes_of_the_same_content_are_rewritten() -> None:
    one = prompt(tools=("a",), messages=[{"role": "user", "content": "x"}])
    other = DECODER.prompt(
        Exchange(
            0.0,
            "/v1/chat/completions",
            b'{"model":"gpt-5.1","tools":[{"function":{"parameters":{"type":"object"},"name":"a"},'
            b'"type":"function"}],"messages":[{"role":"user","content":"x"}]}',
        )
    )
    assert changes(one, other) == [("rewritten", "/tools/0", "/tools/0")]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from("abcdef"), max_size=8),
    st.lists(st.sampled_from("abcdef"), max_size=8),
)
def test_every_segment_of_both_prompts_is_told_once(one: list[str], other: list[str]) -> None:
    before, after = prompt(*one), prompt(*other)
    steps = compare_prompts(before, after, characters)
    pointers = [f"/messages/{i}/content" for i in range(max(len(one), len(other)))]
    assert sorted(step.before for step in steps if step.before) == sorted(pointers[: len(one)])
    assert [step.after for step in steps if step.after] == pointers[: len(other)]
    assert (one == other) == all(step.change == "same" for step in steps)
    json.dumps(steps_to_json(steps))


def test_turns_are_printed_with_the_difference_marked() -> None:
    before = prompt({"role": "system", "content": "It is 14:02:07. Be brief."}, "hello", temperature=0)
    after = prompt({"role": "system", "content": "It is 14:02:13. Be brief."}, "hello", "more", temperature=1)
    steps = compare_prompts(before, after, characters)
    text = printed(turns_difference(steps, changed_parameters(before, after), estimated=True))
    assert "! parameter temperature: [-0-] {+1+}" in text
    assert "! /messages/0/content system text: changed, ~25 tokens" in text
    assert "It is 14:02:[-07-]. Be brief." in text
    assert "It is 14:02:{+13+}. Be brief." in text
    assert "= 1 segment the same, ~5 tokens: /messages/1/content" in text
    assert "+ /messages/2/content user text: new, ~4 tokens" in text
    same = printed(turns_difference(compare_prompts(before, before, characters), [], estimated=False))
    assert "The two prompts are the same." in same


def test_sessions_before_and_after_a_fix() -> None:
    broken = session([APPEND, BREAK, BREAK], "broken")
    mended = session([APPEND] * 3, "mended")
    measures = {m.name: m for m in compare_sessions(broken, mended)}
    assert measures["breaks"].before == 2
    assert measures["breaks"].after == 0
    assert measures["breaks"].better is True
    assert measures["hit_rate"].better is True
    assert measures["turns"].better is None
    text = printed(sessions_difference(broken, mended))
    assert text.startswith("broken -> mended: breaks 2 -> 0, read from the cache 32 % -> 95 %,")
    assert "PG101 clock-in-prefix" in text
    document = comparison_to_dict(broken, mended)
    assert document["measures"]["rebilled_tokens"] == {"before": 4106, "after": 0, "better": True}
    assert document["codes"]["PG101"] == {"name": "clock-in-prefix", "before": 2, "after": 0}
    worse = {m.name: m.better for m in compare_sessions(mended, broken)}
    assert worse["breaks"] is False
    assert worse["cost"] is False


def test_what_is_unknown_on_one_side_is_not_compared() -> None:
    silent = session([turn(APPEND, usage=Usage(2000, None), cost=Cost())] * 2, "silent")
    told = session([APPEND] * 2, "told")
    measures = {m.name: m for m in compare_sessions(silent, told)}
    assert measures["hit_rate"].before is None
    assert measures["hit_rate"].better is None
    assert measures["cost"].better is None
    row = next(
        line for line in printed(sessions_difference(silent, told)).splitlines() if "read from" in line
    )
    assert "?" in row


def test_equal_sessions_are_said_to_be_equal() -> None:
    one, other = session([APPEND] * 2, "one"), session([APPEND] * 2, "other")
    assert "No difference in breaks" in printed(sessions_difference(one, other))


def test_several_sessions_of_a_log_are_compared_as_one() -> None:
    one, other = session([APPEND, BREAK], "one"), session([APPEND] * 2, "other")
    both = merged("log", [one, other])
    assert both.id == "log"
    assert both.totals.turns == 4
    assert both.totals.breaks == 1
    assert both.totals.hit_rate == 3 * 1974 / (4 * 2079)
    assert both.totals.cost.actual is not None
    assert merged("log", [one]) is one
    unpriced = session([turn(APPEND, cost=Cost())], "unpriced")
    assert merged("log", [one, unpriced]).totals.cost.actual is None
