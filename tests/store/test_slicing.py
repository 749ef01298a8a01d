"""Slices always join to the body, and bodies that share text share slices."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.store import slicing
from prefixguard.store.slicing import CHUNK, LONG, Cuts, cut, shared_prefix


def slices(body: bytes, cuts: Cuts | None = None) -> list[bytes]:
    cuts = cuts or cut(body)
    assert len(cuts.ends) == len(cuts.nesting)
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


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(["messages", "tools", "input", "x"]), json_values | st.lists(json_values)
    ),
    st.sampled_from([None, 0, 3, "\t"]),
    st.booleans(),
    st.data(),
)
def test_what_is_known_of_another_body_changes_nothing_but_the_work(
    value: dict[str, object], indent: int | str | None, ascii_only: bool, data: st.DataObject
) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    at = data.draw(st.integers(0, len(body)))
    other = body[:at] + data.draw(st.binary(max_size=20)) + body[at:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slicing, "LONG", 24)
        patch.setattr(slicing, "SMALL", 4)
        patch.setattr(slicing, "CHUNK", 16)
        known = cut(body)
        cuts = cut(other, known, shared_prefix(body, other))
        assert b"".join(slices(other, cuts)) == other
        assert cuts.ends == sorted(set(cuts.ends))


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
    first = cut(before)
    cuts = cut(after, first, shared_prefix(before, after))
    assert cuts.ends == cut(after).ends
    assert len(set(slices(after)) - set(slices(before))) <= 3


def test_base64_without_line_ends_is_cut_too() -> None:
    body = json.dumps({"messages": [{"image": "A" * 300_000}]}).encode()
    assert max(map(len, slices(body))) <= slicing.MAX_CHUNK + 1


@pytest.mark.parametrize("body", [b'"' * 200_000, b'{"a' * 100_000, b"[" * 200_000, b'{"\\' * 100_000])
def test_hostile_bodies_cost_one_pass(body: bytes) -> None:
    # Quadratic work on these would run into the test's time limit.
    assert b"".join(slices(body)) == body


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_shared_prefix(start: bytes, a: bytes, b: bytes) -> None:
    one, two = start + a, start + b
    length = shared_prefix(one, two)
    assert one[:length] == two[:length]
    assert length in (len(one), len(two)) or one[length] != two[length]


def test_shared_prefix_of_long_bodies() -> None:
    one = bytes(range(256)) * 1000
    for at in (0, 1, 65535, 65536, 65537, 131072, 255_999):
        two = one[:at] + bytes([one[at] ^ 1]) + one[at + 1 :]
        assert shared_prefix(one, two) == at
    assert shared_prefix(one, one + b"x") == len(one)
