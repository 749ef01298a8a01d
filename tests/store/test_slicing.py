"""Slices always join to the body, and bodies that share text share slices."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.store import slicing
from prefixguard.store.slicing import CHUNK, LONG, Copy, Cuts, cut, cut_like, shared_prefix


def slices(body: bytes, cuts: Cuts | None = None) -> list[bytes]:
    cuts = cuts or cut(body)
    assert len(cuts.ends) == len(cuts.nesting) == len(cuts.inside)
    assert cuts.ends == sorted(set(cuts.ends))
    return [body[start:end] for start, end in zip([0, *cuts.ends], cuts.ends, strict=False)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=40,
)


@given(st.binary(max_size=300))
def test_any_bytes_come_back(body: bytes) -> None:
    assert b"".join(slices(body)) == body
    assert all(slices(body))


@settings(max_examples=60)
@given(st.text(alphabet='{}[]",:\\ \nab0', max_size=200), st.integers(1, 80))
def test_broken_json_comes_back(text: str, long: int) -> None:
    body = text.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slicing, "LONG", long)
        patch.setattr(slicing, "SMALL", 2)
        patch.setattr(slicing, "CHUNK", 4)
        patch.setattr(slicing, "MAX_CHUNK", 16)
        assert b"".join(slices(body)) == body


def check_like(body: bytes, other: bytes, known: Cuts | None = None) -> tuple[Cuts, list[Copy]]:
    """Cuts `body` like `other`, and checks all that must hold."""
    known = known or cut(other)
    cuts, copies = cut_like(body, other, known)
    mine, theirs = slices(body, cuts), slices(other, known)
    assert b"".join(mine) == body
    assert all(mine)
    position = 0
    for copy in copies:
        assert copy.index >= position
        assert mine[copy.index : copy.index + copy.count] == theirs[copy.base : copy.base + copy.count]
        position = copy.index + copy.count
    assert position <= len(mine)
    return cuts, copies


@settings(max_examples=80)
@given(
    st.dictionaries(
        st.sampled_from(["messages", "tools", "input", "x"]), json_values | st.lists(json_values)
    ),
    st.sampled_from([None, 0, 3, "\t"]),
    st.booleans(),
    st.data(),
)
def test_a_body_cut_like_another_comes_back(
    value: dict[str, object], indent: int | str | None, ascii_only: bool, data: st.DataObject
) -> None:
    other = body = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        gone = data.draw(st.integers(0, 30))
        body = (
            body[:at]
            + data.draw(st.sampled_from([b"", b'"', b"\\", b"}]", b',{"a":1}', b"text"]))
            + body[at + gone :]
        )
    with pytest.MonkeyPatch.context() as patch:
        for name, small in {
            "LONG": 24, "SMALL": 4, "CHUNK": 8, "MAX_CHUNK": 16, "_WORTH": 6, "_NEEDLE": 4, "_WINDOW": 2,
            "_WORTH_MARKING": 3,
        }.items():  # fmt: skip
            patch.setattr(slicing, name, small)
        cuts, _ = check_like(body, other)
        check_like(other, body, cuts)


def messages_of(body: bytes) -> list[bytes]:
    return [json.dumps(message).encode() for message in json.loads(body)["messages"]]


def long_body(count: int, **more: object) -> dict[str, object]:
    messages = [
        {"role": "user", "content": f"message {i}: {i * 7919 % 10007} " + "x" * (i % 90 + 40)}
        for i in range(count)
    ]
    tools = [{"name": f"tool {i}", "description": f"what it does {i * i} " * 5} for i in range(9)]
    return {"model": "m", "system": "You are", "messages": messages, "tools": tools, **more}


def test_only_the_differences_are_cut_anew() -> None:
    before = long_body(400)
    after = long_body(402)
    after["system"] = "At 12:01 you are"
    after["messages"][200]["content"] = "pruned " * 20  # type: ignore[index]
    del after["messages"][300]  # type: ignore[attr-defined]
    body, other = json.dumps(after).encode(), json.dumps(before).encode()
    cuts, copies = check_like(body, other)
    # The envelope's start, one edited message, two new ones, and the commas and bits around them.
    assert len(cuts.ends) - sum(copy.count for copy in copies) < 14
    assert set(messages_of(body)) <= set(slices(body, cuts))
    assert cuts.ends == cut(body).ends


def test_a_clock_in_a_long_string_costs_the_clock() -> None:
    rules = [f"rule {i}: {i * 7919 % 10007}" for i in range(2000)]
    other, known = b"{}", cut(b"{}")
    for turn, clock in enumerate(("9:01", "12:00", "12:01", "13:27")):
        rules[1000] = f"The time is {clock} o'clock"
        body = json.dumps(long_body(300) | {"system": clock + "\n".join(rules)}).encode()
        cuts, _ = check_like(body, other, known)
        if turn > 1:
            # The first time the clocks are cut out of their slices; from then on nothing else is new.
            fresh = set(slices(body, cuts)) - set(slices(other, known))
            assert sum(map(len, fresh)) < 200
        other, known = body, cuts


def test_an_appended_turn_costs_two_copies() -> None:
    other, body = (json.dumps(long_body(count)).encode() for count in (400, 402))
    cuts, copies = check_like(body, other)
    assert copies[0].index == 0
    assert len(copies) == 2
    assert len(cuts.ends) - sum(copy.count for copy in copies) <= 5
    assert cuts.ends == cut(body).ends


def test_each_element_of_a_top_level_array_is_a_slice() -> None:
    first = b'{ "role" : "user", "content": "' + b"a" * 60 + b'" }'
    second = b'{"role":"assistant","content":"[{,\\"' + b"b" * 60 + b'"}'
    tool = b'{"name":"t","parameters":{"type":"object","properties":{"x":[{}]}}, "description": "d"}'
    body = b'{"messages": [\n' + first + b" ,\n" + second + b'], "tools":[' + tool + b'],"x":1}\n'
    assert slices(body) == [
        b'{"messages": [\n', first, b" ,\n", second, b'], "tools":[', tool, b'],"x":1}\n'
    ]  # fmt: skip


def test_small_elements_stay_with_what_stands_around_them() -> None:
    assert slices(b'{"stop":["a","b"],"messages":[{"role":"user"},{"role":"x"}]}') == [
        b'{"stop":["a","b"],"messages":[{"role":"user"},{"role":"x"}]}'
    ]


def test_a_moved_cache_marker_leaves_the_text_shared() -> None:
    text = "long " * LONG
    plain = json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}).encode()
    marked = plain.replace(b'"}]', b'", "cache_control": {"type": "ephemeral"}}]')
    shared = set(slices(plain)) & set(slices(marked))
    assert sum(map(len, shared)) >= len(text)


def test_an_insertion_into_a_very_long_string_leaves_most_of_it_shared() -> None:
    lines = [f"line {i}: {i * 7919 % 10007} and {i * 31 % 997}" for i in range(20_000)]
    before = json.dumps({"prompt": "\n".join(lines)}).encode()
    lines.insert(500, "a new line that nobody had seen before")
    after = json.dumps({"prompt": "\n".join(lines)}).encode()
    shared = set(slices(before)) & set(slices(after))
    assert sum(map(len, shared)) > 0.9 * len(after)
    assert max(map(len, slices(after))) < 3 * CHUNK


def test_a_grown_raw_prompt_shares_its_start() -> None:
    text = "\n".join(f"step {i}: {i * i}" for i in range(9000))
    before = json.dumps({"model": "m", "prompt": text}).encode()
    after = json.dumps({"model": "m", "prompt": text + "\nand more"}).encode()
    cuts, copies = check_like(after, before)
    assert len(cuts.ends) - sum(copy.count for copy in copies) <= 4


def test_base64_without_line_ends_is_cut_too() -> None:
    body = json.dumps({"messages": [{"image": "A" * 300_000}]}).encode()
    assert max(map(len, slices(body))) <= slicing.MAX_CHUNK + 1


@pytest.mark.parametrize(
    "body", [b'"' * 200_000, b'{"a' * 100_000, b"[" * 200_000, b'{"\\' * 100_000, b"\\" * 400_000]
)
def test_hostile_bodies_cost_one_pass(body: bytes) -> None:
    # Quadratic work on these would run into the test's time limit.
    assert b"".join(slices(body)) == body


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_shared_prefix(start: bytes, a: bytes, b: bytes) -> None:
    one, two = start + a, start + b
    length = shared_prefix(one, two)
    assert one[:length] == two[:length]
    assert length in (len(one), len(two)) or one[length] != two[length]


def test_shared_prefix_from_the_middle() -> None:
    one = b"ab" * 70_000 + b"x"
    assert shared_prefix(one, one, 0, 2) == len(one) - 3
    assert shared_prefix(one, one, 1, 0) == 0
    assert shared_prefix(one, one, len(one), 0) == 0


def test_shared_prefix_of_long_bodies() -> None:
    one = bytes(range(256)) * 1000
    for at in (0, 1, 65535, 65536, 65537, 131072, 255_999):
        two = one[:at] + bytes([one[at] ^ 1]) + one[at + 1 :]
        assert shared_prefix(one, two) == at
    assert shared_prefix(one, one + b"x") == len(one)
