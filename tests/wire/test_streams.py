"""A stream adds up to the response that the same server gives whole, however it is cut into pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.exchange import Exchange
from prefixguard.wire.decoder import Decoder
from prefixguard.wire.streams import assemble

from .transcripts import DIALECTS, PATHS, TRANSCRIPTS, Answer, anthropic, event_message, openai_responses, sse


def together(stream: bytes, kind: str) -> Any:
    found = assemble(stream, kind)
    return None if found is None else json.loads(found)


@pytest.mark.parametrize("name", DIALECTS)
def test_stream_equals_the_whole_response(name: str) -> None:
    kind, stream, whole = TRANSCRIPTS[name]
    found = together(stream, kind)
    if name == "openai-responses-cut":  # without the last event there is no usage, and no final status
        assert found["output"] == whole["output"]
        assert found["id"] == whole["id"]
    else:
        assert found == whole


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
arguments = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.integers() | texts,
    max_size=3,
)
answers = st.builds(
    Answer,
    text=texts,
    thought=texts,
    calls=st.lists(arguments, max_size=3).map(
        lambda found: tuple((f"call_{i}", f"tool_{i}", a) for i, a in enumerate(found))
    ),
    size=st.integers(1, 50),
)


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "openai-responses-cut"])
@settings(max_examples=60, deadline=None)
@given(answer=answers)
def test_any_answer_in_any_pieces(name: str, answer: Answer) -> None:
    kind, stream, whole = DIALECTS[name](answer)
    assert together(stream, kind) == whole


@pytest.mark.parametrize("name", DIALECTS)
def test_whole_response_passes_as_it_is(name: str) -> None:
    whole = json.dumps(TRANSCRIPTS[name][2]).encode()
    assert assemble(whole, "application/json") == whole
    assert assemble(whole, "") == whole


@pytest.mark.parametrize("name", DIALECTS)
def test_stream_cut_at_any_byte_gives_what_had_arrived(name: str) -> None:
    kind, stream, whole = TRANSCRIPTS[name]
    decoder = Decoder({})
    body = b'{"messages":[],"contents":[],"input":[],"prompt":"x"}'

    def said(response: bytes | None) -> str:
        segments = decoder.reply(Exchange(0.0, PATHS[name], body, response=response))
        return "".join(s.text for s in segments if s.kind.value == "text")

    all_of_it = said(json.dumps(whole).encode())
    longest = 0
    for end in range(len(stream) + 1):
        found = assemble(stream[:end], kind)
        if found is not None:
            text = said(found)
            assert all_of_it.startswith(text)
            assert len(text) >= longest
            longest = len(text)
    assert longest == len(all_of_it) or name == "gemini-array"  # an array is no JSON before its end


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_damaged_streams_never_raise(name: str, data: st.DataObject) -> None:
    kind, stream, _ = TRANSCRIPTS[name]
    damaged = bytearray(stream)
    for at in data.draw(st.lists(st.integers(0, len(stream) - 1), max_size=8)):
        damaged[at] = data.draw(st.integers(0, 255))
    found = assemble(bytes(damaged), kind)
    assert found is None or json.loads(found) is not None


def test_dialect_is_told_by_the_events_not_by_the_content_type() -> None:
    for name, (_, stream, whole) in TRANSCRIPTS.items():
        if name in ("bedrock", "gemini-array", "openai-responses-cut"):
            continue
        assert together(stream, "text/plain") == whole, name


def test_chat_stream_of_two_choices() -> None:
    events = [
        {"choices": [{"index": i, "delta": {"content": text}}]}
        for i, text in [(0, "a"), (1, "x"), (0, "b"), (1, "y")]
    ]
    found = together(sse(events, done=True), "text/event-stream")
    assert [c["message"]["content"] for c in found["choices"]] == ["ab", "xy"]


def test_comment_lines_and_events_of_two_data_lines() -> None:
    stream = (
        b': keep-alive\n\nid: 7\nretry: 10\ndata: {"choices":\n'
        b'data: [{"index":0,"delta":{"content":"ok"}}]}\n\ndata: [DONE]\n\n'
    )
    assert together(stream, "text/event-stream")["choices"][0]["message"]["content"] == "ok"


def test_error_in_a_stream_is_the_response() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert together(sse([error], names=True), "text/event-stream") == error


def test_nothing_that_is_a_response() -> None:
    for body in (b"", b"data: [DONE]\n\n", b"<html>Bad gateway</html>", b"data: {\n\n", b"[]", b"null"):
        assert assemble(body, "text/event-stream") is None
        assert assemble(body, "text/html") is None


def test_failed_response_keeps_its_items() -> None:
    _, stream, whole = openai_responses(Answer(), finished=False)
    failed = {"type": "response.failed", "response": {"id": "resp_1", "status": "failed", "output": []}}
    found = together(stream + sse([failed], names=True), "text/event-stream")
    assert found["status"] == "failed"
    assert found["output"] == whole["output"]


def test_tool_input_that_was_cut_off_is_kept_as_text() -> None:
    kind, stream, _ = anthropic(
        Answer(text="", thought="", calls=(("c", "write", {"path": "a/long/path.txt"}),))
    )
    block = together(stream[: stream.rindex(b"event: content_block_delta")], kind)["content"][0]
    assert isinstance(block["input"], str)
    assert '{"path": "a/long/path.txt"}'.startswith(block["input"])


def test_message_of_an_event_stream_without_a_type_is_passed_over() -> None:
    good = event_message("messageStop", {"stopReason": "end_turn"})
    assert (
        together(event_message("", {"a": 1}) + good, "application/vnd.amazon.eventstream")["stopReason"]
        == "end_turn"
    )
