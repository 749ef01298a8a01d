"""The two identities of a segment: what decides the cache, and what says that content is the same."""

from __future__ import annotations

from typing import Any

from prefixguard.exchange import Exchange
from prefixguard.prompt import Kind, Segment
from prefixguard.wire.decoder import Decoder

from .reading import read


def one(content: Any, role: str = "user", path: str = "/v1/messages") -> Segment:
    return read(path, {"messages": [{"role": role, "content": content}]}).segments[0]


def test_exact_and_alike() -> None:
    a, b = one("Hello  world\n"), one("Hello world")
    assert a.exact != b.exact
    assert a.alike == b.alike
    clock, later = one("It is 10:00"), one("It is 10:01")
    assert clock.alike != later.alike  # clocks stay in both identities
    composed, decomposed = one("caf\u00e9"), one("cafe\u0301")
    assert composed.alike == decomposed.alike
    assert composed.exact != decomposed.exact
    assert one("x").exact != one("x", "assistant").exact


def test_string_and_block_of_the_same_text_are_the_same_but_for_their_shape() -> None:
    as_string, as_block = one("Hello"), one([{"type": "text", "text": "Hello"}])
    assert as_string.exact == as_block.exact
    assert (as_string.shape, as_block.shape) == ("string", "blocks")


def call(arguments: str, identity: str = "c1") -> Segment:
    body = {
        "messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": identity, "type": "function", "function": {"name": "f", "arguments": arguments}}
                ],
            }
        ]
    }
    return read("/v1/chat/completions", body).segments[0]


def test_call_that_differs_in_its_id_only() -> None:
    a, b = call('{"x": 1}', "c1"), call('{"x": 1}', "c2")
    assert a.exact != b.exact
    assert a.loose == b.loose
    assert a.alike == b.alike
    assert call('{"x":1}').alike == a.alike
    assert call('{"x":1}').exact != a.exact
    assert call('{"a":1,"x":1}').alike == call('{"x":1.0,"a":1}').alike


def test_tool_with_its_keys_in_another_order() -> None:
    def tool(definition: str) -> Segment:
        body = f'{{"messages": [], "tools": [{definition}]}}'
        return Decoder({}).prompt(Exchange(0.0, "/v1/messages", body.encode())).segments[0]

    a = tool('{"name": "f", "input_schema": {"a": 1, "b": 2}}')
    b = tool('{"name": "f", "input_schema": {"b": 2, "a": 1}}')
    c = tool('{"name":"f","input_schema":{"a":1,"b":2}}')
    assert a.exact == c.exact
    assert a.exact != b.exact
    assert a.alike == b.alike
    assert a.name == "f"


def test_media_by_content_never_by_base64() -> None:
    def image(source: dict[str, str]) -> Segment:
        return one([{"type": "image", "source": source}])

    data = "iVBORw0KGgo" * 1000
    a = image({"type": "base64", "media_type": "image/png", "data": data})
    assert a.kind is Kind.MEDIA
    assert len(a.text) < 100
    assert a.exact == image({"type": "base64", "media_type": "image/png", "data": data}).exact
    url = image({"type": "url", "url": "https://h/a.png?sig=1"})
    signed = image({"type": "url", "url": "https://h/a.png?sig=2"})
    assert url.exact != signed.exact
    assert url.alike == signed.alike
    assert url.loose == signed.loose


def test_unknown_block_is_kept_and_compared_as_json() -> None:
    a = one([{"type": "hologram", "beam": {"x": 1, "y": 2}}])
    b = one([{"type": "hologram", "beam": {"y": 2, "x": 1}}])
    assert a.kind is Kind.OTHER
    assert (a.exact != b.exact, a.alike == b.alike) == (True, True)


def test_unrendered_fields_of_items_are_no_identity() -> None:
    def item(**more: str) -> Segment:
        message = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "x"}],
            **more,
        }
        return read("/v1/responses", {"input": [message]}).segments[0]

    assert item().exact == item(id="msg_1", status="completed").exact
