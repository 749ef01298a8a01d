"""What attributes say, in each way of saying it: messages, tools, figures, sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.exchange import Capture
from prefixguard.importers import messages as forms
from prefixguard.importers.figures import usage_of
from prefixguard.importers.foreign import read_foreign
from prefixguard.importers.formats import named_format
from prefixguard.importers.spans import any_value, spans_of
from prefixguard.importers.told import Told

RULE = named_format("otel")


def span(
    attributes: dict[str, Any], *, name: str = "1", parent: str | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "name": "chat m", "context": {"trace_id": "0xAB", "span_id": f"0x{name}"}, "parent_id": parent,
        "start_time": f"2026-11-30T21:00:0{name}.000000Z", "end_time": f"2026-11-30T21:00:0{name}.500000Z",
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **attributes},
        "status": {"status_code": "UNSET"}, "events": [], **more,
    }  # fmt: skip


def read(tmp_path: Path, *spans: dict[str, Any]) -> tuple[list[Capture], Told]:
    path = tmp_path / "spans"
    path.write_text("\n".join(map(json.dumps, spans)))
    told = Told("spans")
    return list(read_foreign(path, RULE, told)), told


def body(tmp_path: Path, attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    (capture,), _ = read(tmp_path, span(attributes, **more))
    found: dict[str, Any] = json.loads(capture.body)
    return found


CHAT = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "a b"},
]  # fmt: skip
PARTS = [
    {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
    {"role": "user", "parts": [{"type": "text", "content": "list"}]},
    {"role": "assistant", "parts": [
        {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "."}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "a b"}]},
]  # fmt: skip
OPENINFERENCE = {
    "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "be brief",
    "llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.content": "list",
    "llm.input_messages.2.message.role": "assistant",
    "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "ls",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": '{"path":"."}',
    "llm.input_messages.3.message.role": "tool", "llm.input_messages.3.message.content": "a b",
    "llm.input_messages.3.message.tool_call_id": "c1",
}  # fmt: skip
OLD = {
    "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "be brief",
    "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "list",
    "gen_ai.prompt.2.role": "assistant", "gen_ai.prompt.2.tool_calls.0.id": "c1",
    "gen_ai.prompt.2.tool_calls.0.name": "ls", "gen_ai.prompt.2.tool_calls.0.arguments": '{"path":"."}',
    "gen_ai.prompt.3.role": "tool", "gen_ai.prompt.3.content": "a b", "gen_ai.prompt.3.tool_call_id": "c1",
}  # fmt: skip


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.input.messages": json.dumps(PARTS)},
        {"gen_ai.input.messages": json.dumps(CHAT)},
        {
            "gen_ai.system_instructions": json.dumps(PARTS[0]["parts"]),
            "gen_ai.input.messages": json.dumps(PARTS[1:]),
        },
        {"gen_ai.system_instructions": "be brief", "gen_ai.input.messages": json.dumps(PARTS[1:])},
        OPENINFERENCE,
        OLD,
        {"input.value": json.dumps({"model": "m", "messages": CHAT})},
        {"langfuse.observation.input": json.dumps(CHAT)},
    ],
)
def test_the_same_messages_in_every_form(tmp_path: Path, attributes: dict[str, Any]) -> None:
    assert body(tmp_path, attributes)["messages"] == CHAT


def test_messages_as_events(tmp_path: Path) -> None:
    events = [
        {"name": "gen_ai.system.message", "attributes": {"content": "be brief"}},
        {"name": "gen_ai.user.message", "attributes": {"content": "list"}},
        {"name": "exception", "attributes": {"content": "no message"}},
    ]
    assert body(tmp_path, {}, events=events)["messages"] == CHAT[:2]
    details = [{"name": "gen_ai.client.inference.operation.details",
                "attributes": {"gen_ai.input.messages": json.dumps(PARTS[:2])}}]  # fmt: skip
    assert body(tmp_path, {}, events=details)["messages"] == CHAT[:2]
    listed = [{"event.name": "gen_ai.user.message", "content": "list", "role": "user"}]
    assert body(tmp_path, {"events": json.dumps(listed)})["messages"] == CHAT[1:2]


TOOL = {"type": "function", "function": {"name": "ls", "description": "d", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.tool.definitions": json.dumps([{"type": "function", **TOOL["function"]}])},  # type: ignore[dict-item]
        {"gen_ai.tool.definitions": json.dumps([TOOL])},
        {"llm.tools.0.tool.json_schema": json.dumps(TOOL)},
        {
            "llm.request.functions.0.name": "ls", "llm.request.functions.0.description": "d",
            "llm.request.functions.0.parameters": json.dumps({"type": "object"}),
        },
    ],
)  # fmt: skip
def test_the_same_tools_in_every_form(tmp_path: Path, attributes: dict[str, Any]) -> None:
    (capture,), told = read(tmp_path, span({"gen_ai.input.messages": json.dumps(PARTS[:2]), **attributes}))
    assert json.loads(capture.body)["tools"] == [TOOL]
    assert not told.lost["tools"]


def test_a_contents_attribute_that_was_cut_off_is_a_missing_prompt(tmp_path: Path) -> None:
    _, told = read(tmp_path, span({"gen_ai.input.messages": json.dumps(PARTS)[:100]}))
    assert told.lost["prompt"] == 1


def test_a_framework_s_own_objects_are_no_body(tmp_path: Path) -> None:
    told = read(tmp_path, span({"input.value": json.dumps({"messages": [[{"lc": 1, "kwargs": {}}]]})}))[1]
    assert told.lost["prompt"] == 1


def test_marks_of_a_provider_that_needs_them_are_said_to_be_missing(tmp_path: Path) -> None:
    said = {"gen_ai.input.messages": json.dumps(PARTS), "gen_ai.provider.name": "anthropic"}
    (capture,), told = read(tmp_path, span(said))
    assert told.lost["breakpoints"] == 1
    assert capture.upstream == "https://api.anthropic.com"


def test_parameters_are_part_of_the_body(tmp_path: Path) -> None:
    said = {"gen_ai.input.messages": json.dumps(PARTS), "gen_ai.request.temperature": 0.5,
            "llm.invocation_parameters": '{"top_p": 1}'}  # fmt: skip
    found = body(tmp_path, said)
    assert (found["temperature"], found["top_p"], found["model"]) == (0.5, 1, "m")


@pytest.mark.parametrize(
    ("told", "provider", "usage"),
    [
        ({"input": 100, "read": 60, "written": 30, "output": 5}, "anthropic",
         {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30,
          "output_tokens": 5}),
        # A writer that counts cached tokens beside the input: the parts are larger than the whole.
        ({"input": 10, "read": 60, "written": 30}, "anthropic",
         {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}),
        ({"input": 100, "read": 60, "output": 5}, "openai",
         {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}),
        ({"input": 10, "read": 60}, "openai",
         {"prompt_tokens": 70, "prompt_tokens_details": {"cached_tokens": 60}}),
        ({"input": 100}, "", {"prompt_tokens": 100}),
        ({"input": "100", "read": "0"}, "",
         {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 0}}),
        ({"read": 60}, "openai", None),
        ({"input": -1}, "openai", None),
        ({"input": True}, "openai", None),
    ],
)  # fmt: skip
def test_figures(told: dict[str, Any], provider: str, usage: dict[str, Any] | None) -> None:
    assert usage_of(told, provider) == usage


@pytest.mark.parametrize(
    "name", ["gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"]
)
def test_old_and_new_names_of_cached_tokens(tmp_path: Path, name: str) -> None:
    (capture,), _ = read(tmp_path, span({"gen_ai.usage.input_tokens": 100, name: 64}))
    assert json.loads(capture.response_body)["usage"]["prompt_tokens_details"] == {"cached_tokens": 64}


def test_sessions_and_nesting(tmp_path: Path) -> None:
    alone, told = read(tmp_path, span({"gen_ai.usage.input_tokens": 1}))
    assert "x-prefixguard-session" not in alone[0].headers
    inside, _ = read(tmp_path, span({"gen_ai.usage.input_tokens": 1}, parent="0xFF"))
    assert inside[0].headers["x-prefixguard-session"] == "ab"
    named, _ = read(tmp_path, span({"gen_ai.usage.input_tokens": 1, "session.id": "s"}, parent="0xFF"))
    assert named[0].headers["x-prefixguard-session"] == "s"
    inner = span({"gen_ai.usage.input_tokens": 1}, name="2", parent="0x1")
    outer = span({"gen_ai.input.messages": json.dumps(PARTS)})
    for order in ((inner, outer), (outer, inner)):
        captures, told = read(tmp_path, *order)
        assert len(captures) == 1
        assert b"be brief" in captures[0].body
        assert told.requests == 1


def test_what_is_no_model_call(tmp_path: Path) -> None:
    _, told = read(
        tmp_path,
        span({"gen_ai.operation.name": "execute_tool"}),
        span({"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 5}, name="2"),
        span({"gen_ai.operation.name": None, "openinference.span.kind": "TOOL"}, name="3"),
    )
    assert (told.requests, told.aside["other spans"]) == (0, 3)


def test_a_failed_call_has_the_status_that_was_told(tmp_path: Path) -> None:
    failed = {"status_code": "ERROR"}
    (one,), _ = read(
        tmp_path, span({"gen_ai.usage.input_tokens": 1, "http.response.status_code": 429}, status=failed)
    )
    (other,), _ = read(tmp_path, span({"gen_ai.usage.input_tokens": 1}, status=failed))
    assert (one.status, other.status) == (429, None)


def test_every_kind_of_value_of_otlp() -> None:
    value = {"kvlistValue": {"values": [
        {"key": "a", "value": {"arrayValue": {"values": [
            {"intValue": "9007199254740993"}, {"boolValue": True}]}}},
        {"key": "b", "value": {"doubleValue": 1.5}}, {"key": "c", "value": {"stringValue": "x"}},
        {"key": "d", "value": {}},
    ]}}  # fmt: skip
    assert any_value(value) == {"a": [9007199254740993, True], "b": 1.5, "c": "x", "d": None}


def test_nested_attributes_are_the_same_as_dotted_ones() -> None:
    nested = {"llm": {"input_messages": [{"message": {"role": "user", "content": "hi"}}], "model_name": "m"}}
    (found,) = spans_of({"name": "x", "attributes": nested})
    assert found.attributes == {
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi",
        "llm.model_name": "m",
    }  # fmt: skip


def test_a_message_without_parts_and_one_with_several_texts() -> None:
    parts = [
        {"type": "text", "content": "a"},
        {"type": "text", "content": "b"},
        {"type": "blob", "data": "x"},
    ]
    assert forms.from_parts([{"role": "user", "parts": parts}]) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, parts[2]]}
    ]
    assert forms.from_parts([{"role": "user", "parts": []}]) == []
    with pytest.raises(ValueError, match="the messages are no list"):
        forms.from_parts("text")
    with pytest.raises(ValueError, match="a message is no object"):
        forms.from_parts([1])
