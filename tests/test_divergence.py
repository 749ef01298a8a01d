"""Where two prompts part: the place, the kind, the certainty; and what is sent again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.divergence import Parting, part, rebilled, token_offset, windows
from prefixguard.exchange import Exchange
from prefixguard.prompt import Parameter
from prefixguard.rendering.prefixes import shared_characters, shared_suffix
from prefixguard.tokens.counter import Counter, Weights
from prefixguard.tokens.layout import KeyedParameters, Layout, lay_out
from prefixguard.wire.decoder import Decoder


class Words:
    name, exact = "words", True

    def count(self, text: str) -> int:
        return len(text.split())


COUNTER = Counter(Words(), Weights(message=0, call=0, tool=0), namespace=False)
TOOLS = [
    {"name": f"tool_{i}", "description": f"does {i} things", "input_schema": {"a": 1, "b": i}}
    for i in range(3)
]


def laid(body: dict[str, Any], keyed: KeyedParameters = KeyedParameters()) -> Layout:  # noqa: B008
    prompt = Decoder({}).prompt(Exchange(0.0, "/v1/messages", json.dumps(body).encode()))
    return lay_out(prompt, COUNTER, keyed)


def body(*texts: str, system: str = "Be brief.", tools: Any = TOOLS) -> dict[str, Any]:
    messages = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": text} for i, text in enumerate(texts)
    ]
    return {"system": system, "tools": tools, "messages": messages}


def parting(a: dict[str, Any], b: dict[str, Any]) -> Parting | None:
    return part(laid(a), laid(b))


def found(a: dict[str, Any], b: dict[str, Any]) -> tuple[str, str, str, int]:
    result = parting(a, b)
    assert result is not None
    return result.kind, result.certainty, result.pointer, result.char


LONG = [f"the {i}th message of this talk, which says a thing or two" for i in range(8)]


def test_nothing_parts_in_an_append_a_repetition_and_a_prefix() -> None:
    assert parting(body(*LONG[:4]), body(*LONG)) is None
    assert parting(body(*LONG), body(*LONG)) is None
    assert parting(body(*LONG), body(*LONG[:4])) is None


def test_changed_text_by_segment_and_character() -> None:
    a, b = body(*LONG, system="It is 10:00 now."), body(*LONG, system="It is 10:05 now.")
    assert found(a, b) == ("changed", "certain", "/system", 10)


@pytest.mark.parametrize(
    ("change", "kind", "pointer"),
    [
        (lambda t: [*t[:3], *t[4:]], "removed", "/messages/3/content"),
        (lambda t: [*t[:3], "something new that nobody said", *t[3:]], "inserted", "/messages/3/content"),
        (lambda t: [*t[:3], t[4], t[3], *t[5:]], "moved", "/messages/3/content"),
        (lambda t: [*t[:3], "replaced by this", *t[4:]], "changed", "/messages/3/content"),
    ],
)
def test_kinds(change: Any, kind: str, pointer: str) -> None:
    texts = [f"{text} [{'u' if i % 2 == 0 else 'a'}]" for i, text in enumerate(LONG)]

    def told(texts: list[str]) -> dict[str, Any]:
        messages = [{"role": "user" if t.endswith("[u]") else "assistant", "content": t} for t in texts]
        return {**body(), "messages": messages}

    kind_found, certainty, pointer_found, _ = found(told(texts), told(change(texts)))
    assert (kind_found, certainty, pointer_found) == (kind, "certain", pointer)


def test_tools_in_another_order() -> None:
    assert found(body(*LONG), body(*LONG, tools=TOOLS[::-1]))[:3] == ("reordered", "certain", "/tools/0")


def test_the_same_json_with_keys_in_another_order_is_seen_by_some_servers() -> None:
    turned = [{k: tool[k] for k in reversed(tool)} for tool in TOOLS]
    assert found(body(*LONG), body(*LONG, tools=turned))[:2] == ("changed", "server")


def test_call_ids_are_seen_by_some_servers() -> None:
    def told(identity: str) -> dict[str, Any]:
        use = {"type": "tool_use", "id": identity, "name": "tool_1", "input": {}}
        return {
            **body(),
            "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": [use]}],
        }

    kind, certainty, pointer, _ = found(told("a"), told("b"))
    assert (kind, certainty, pointer) == ("changed", "server", "/messages/1/content/0")


def test_keyed_parameters_part_where_their_level_starts() -> None:
    def keyed(level: str, value: str) -> Layout:
        return laid(
            body(*LONG), KeyedParameters(**{level: (Parameter("tool_choice", "/tool_choice", value),)})
        )

    for level, boundary, certainty in (
        ("top", 0, "certain"),
        ("head", 3, "certain"),
        ("history", 4, "certain"),
        ("unknown", 0, "server"),
    ):
        result = part(keyed(level, '"auto"'), keyed(level, '"any"'))
        assert result is not None
        assert (result.kind, result.boundary, result.certainty) == ("parameter", boundary, certainty), level
        assert windows(result) == ('"auto"', 0, '"any"', 0)


def test_token_offset_counts_into_the_segment() -> None:
    layout = laid(body("one two three four five"))
    start = layout.ends[4]
    assert token_offset(layout, 4, 0, COUNTER) == start
    assert token_offset(layout, 4, len("one two three"), COUNTER) == start + 3
    assert token_offset(layout, 5, 0, COUNTER) == layout.total


def test_windows_show_the_place_in_long_texts() -> None:
    a, b = body("x" * 500 + " before " + "y" * 500), body("x" * 500 + " after " + "y" * 500)
    result = parting(a, b)
    assert result is not None
    before, before_at, after, after_at = windows(result)
    assert before[before_at:].startswith("before")
    assert after[after_at:].startswith("after")
    assert len(before) < 320


def again(a: dict[str, Any], b: dict[str, Any], got: int = 0, keep: int | None = None) -> int:
    earlier, later = laid(a), laid(b)
    result = part(earlier, later)
    assert result is not None
    keep = earlier.total if keep is None else keep
    return rebilled(earlier, later, result, got, keep, COUNTER)[0]


def test_everything_behind_a_change_at_the_start_is_sent_again() -> None:
    a, b = body(*LONG, system="It is 10:00 now."), body(*LONG, system="It is 10:05 now.")
    earlier = laid(a)
    assert again(a, b) >= earlier.total - 8


def test_what_is_dropped_is_not_sent_again() -> None:
    a, b = body(*LONG), body(*LONG[:4])
    b["messages"][0]["content"] = "something else"
    assert again(a, b) <= laid(b).total


def test_pieces_inside_a_new_message_are_sent_again() -> None:
    text = "\n".join(f"line {i} of a file with something in it" for i in range(20))
    a = body("read the file", "sure", text)
    b = body("please read", "fine", "Here it is again:\n" + text)
    assert again(a, b) >= 150


texts = st.lists(st.sampled_from(LONG) | st.text(max_size=40), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(
    a=texts, b=texts, systems=st.tuples(st.sampled_from(LONG[:2]), st.sampled_from(LONG[:2])), data=st.data()
)
def test_rebilled_lies_between_nothing_and_what_is_lost(
    a: list[str], b: list[str], systems: tuple[str, str], data: st.DataObject
) -> None:
    earlier, later = laid(body(*a, system=systems[0])), laid(body(*b, system=systems[1]))
    result = part(earlier, later)
    if result is None:
        return
    keep = data.draw(st.integers(0, earlier.total))
    got = data.draw(st.integers(0, keep))
    sent, spared = rebilled(earlier, later, result, got, keep, COUNTER)
    assert 0 <= sent <= keep - got
    assert sent <= later.total
    assert spared >= 0
    assert 0 <= token_offset(later, result.boundary, result.char, COUNTER) <= later.total


@given(a=st.text(max_size=60), b=st.text(max_size=60), common=st.text(max_size=60))
def test_shared_characters_from_both_ends(a: str, b: str, common: str) -> None:
    n = shared_characters(common + a, common + b)
    assert n >= len(common)
    assert (common + a)[:n] == (common + b)[:n]
    assert n == min(len(common + a), len(common + b)) or (common + a)[n] != (common + b)[n]
    m = shared_suffix(a + common, b + common)
    assert m >= len(common)
    assert m == 0 or (a + common)[-m:] == (b + common)[-m:]
    longest = min(len(a + common), len(b + common))
    assert m == longest or (a + common)[-m - 1] != (b + common)[-m - 1]
