"""The real SDKs, sync and async, whole and streamed: every call is seen, with the line that made it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from prefixguard.callsite import call_site, callers
from prefixguard.testing import Recording, UnstablePrefixError

http = pytest.importorskip("httpx2")
anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

ROOT = Path(__file__).parent
SYSTEM = "You are the guide of a botanical garden. Name plants by their Latin names. " * 4


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {e.get('type', '')}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def anthropic_reply(text: str) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 9},
    }  # fmt: skip


def answer(request: Any) -> Any:
    """Any of the three APIs, whole or streamed."""
    body = json.loads(request.content)
    text = "The palm house opens at nine, and the water lilies bloom until October."
    if request.url.path.endswith("/messages"):
        if not body.get("stream"):
            return http.Response(200, json=anthropic_reply(text))
        start = {**anthropic_reply(""), "content": []}
        return streamed(
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        )
    if request.url.path.endswith("/responses"):
        item = {
            "type": "message", "id": "i1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }  # fmt: skip
        response = {
            "id": "r1", "object": "response", "created_at": 0, "model": "gpt-5.1", "status": "completed",
            "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        }  # fmt: skip
        if not body.get("stream"):
            return http.Response(200, json=response)
        return streamed({"type": "response.completed", "sequence_number": 0, "response": response})
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "gpt-5.1"}
    if body.get("stream"):
        part = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return streamed({**chunk, "choices": [part]}, end=b"data: [DONE]\n\n")
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return http.Response(200, json={**chunk, "object": "chat.completion", "choices": [choice]})


class Pieces(http.SyncByteStream, http.AsyncByteStream):  # type: ignore[misc,name-defined]
    """A body that comes in small pieces, so that the client has to read it as a stream."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def __iter__(self) -> Any:
        for start in range(0, len(self.body), 100):
            yield self.body[start : start + 100]

    async def __aiter__(self) -> Any:
        for piece in self:
            yield piece


def streamed(*events: dict[str, Any], end: bytes = b"") -> Any:
    headers = {"content-type": "text/event-stream"}
    return http.Response(200, headers=headers, stream=Pieces(sse(*events) + end))


def clients(module: Any, name: str) -> tuple[Any, Any]:
    transport = http.MockTransport(answer)
    sync = getattr(module, name)(api_key="none", http_client=http.Client(transport=transport))
    asynchronous = getattr(module, f"Async{name}")(
        api_key="none", http_client=http.AsyncClient(transport=transport)
    )
    return sync, asynchronous


def here() -> int:
    """The row of the caller's line."""
    return sys._getframe(1).f_lineno


def check(recording: Recording, *rows: int) -> None:
    """Each call is recorded with its reply and with its line in this file."""
    exchanges = recording.exchanges()
    sites = [call_site(exchange.extra) for exchange in exchanges]
    assert [(s.filename, s.row) for s in sites if s] == [("test_sdks.py", row) for row in rows]
    for exchange in exchanges:
        assert b"palm house" in (exchange.response or b""), exchange.path
        assert not exchange.aborted


def test_anthropic_whole_and_streamed() -> None:
    sync, asynchronous = clients(anthropic, "Anthropic")
    turn: dict[str, Any] = {
        "model": "claude-sonnet-5-5", "max_tokens": 50, "messages": [{"role": "user", "content": "When?"}],
    }  # fmt: skip

    async def ask() -> list[int]:
        rows = [here() + 1]
        await asynchronous.messages.create(**turn)
        rows.append(here() + 1)
        async with asynchronous.messages.stream(**turn) as stream:
            await stream.get_final_message()
        return rows

    with Recording(ROOT) as recording:
        rows = [here() + 1]
        sync.messages.create(**turn)
        rows.append(here() + 1)
        with sync.messages.stream(**turn) as stream:
            assert "palm house" in stream.get_final_text()
        rows.append(here() + 1)
        for _ in sync.messages.create(**turn, stream=True):
            pass
        rows += asyncio.run(ask())
    check(recording, *rows)


def test_openai_chat_and_responses_whole_and_streamed() -> None:
    sync, asynchronous = clients(openai, "OpenAI")
    messages = [{"role": "user", "content": "When?"}]

    async def ask() -> list[int]:
        rows = [here() + 1]
        await asynchronous.responses.create(model="gpt-5.1", input="When?")
        rows.append(here() + 1)
        stream = await asynchronous.chat.completions.create(model="gpt-5.1", messages=messages, stream=True)
        assert [chunk async for chunk in stream]
        return rows

    with Recording(ROOT) as recording:
        rows = [here() + 1]
        sync.chat.completions.create(model="gpt-5.1", messages=messages)
        rows.append(here() + 1)
        assert list(sync.chat.completions.create(model="gpt-5.1", messages=messages, stream=True))
        rows.append(here() + 1)
        assert list(sync.responses.create(model="gpt-5.1", input="When?", stream=True))
        rows += asyncio.run(ask())
    check(recording, *rows)


def test_calls_that_run_in_tasks_of_their_own_are_traced_to_where_they_were_made() -> None:
    _, asynchronous = clients(openai, "OpenAI")

    async def ask() -> int:
        row = here() + 1
        calls = [asynchronous.responses.create(model="gpt-5.1", input=f"When? {i}") for i in range(2)]
        await asyncio.gather(*calls)
        return row

    before = sys.get_coroutine_origin_tracking_depth()
    with Recording(ROOT) as recording:
        row = asyncio.run(ask())
    check(recording, row, row)
    assert sys.get_coroutine_origin_tracking_depth() == before


def test_callers_stand_behind_the_line_of_the_call() -> None:
    sync, _ = clients(openai, "OpenAI")

    def inner() -> None:
        sync.responses.create(model="gpt-5.1", input="When?")

    def outer() -> None:
        inner()

    with Recording(ROOT) as recording:
        outer()
    (exchange,) = recording.exchanges()
    functions = [caller.function for caller in callers(exchange.extra)]
    assert functions == ["inner", "outer", "test_callers_stand_behind_the_line_of_the_call"]


@pytest.mark.parametrize("broken", [False, True])
def test_an_agent_with_a_clock_in_its_system_text_fails_and_its_line_is_told(broken: bool) -> None:
    sync, _ = clients(openai, "OpenAI")
    messages: list[dict[str, str]] = []
    row = 0
    with Recording(ROOT) as recording:
        for second in range(3):
            messages.append({"role": "user", "content": f"Question {second}?"})
            head = f"It is 12:00:0{second}. {SYSTEM}" if broken else SYSTEM
            system = {"role": "system", "content": head}
            row = here() + 1
            reply = sync.chat.completions.create(model="gpt-5.1", messages=[system, *messages])
            messages.append({"role": "assistant", "content": reply.choices[0].message.content})
    if not broken:
        recording.assert_prefix_stable(min_ratio=1.0)
        return
    with pytest.raises(UnstablePrefixError) as caught:
        recording.assert_prefix_stable()
    told = str(caught.value)
    assert "2 breaks, 0 allowed" in told
    assert "PG101" in told
    assert "12:00:0[-1-]" in told
    assert "12:00:0{+2+}" in told
    assert f"sent by test_sdks.py:{row} in test_an_agent_with" in told
    assert "To do: Put the time in the newest user message" in told
    recording.assert_prefix_stable(allow="PG101")
    recording.assert_prefix_stable(max_breaks=2)
    with pytest.raises(UnstablePrefixError, match="the stable ratio is"):
        recording.assert_prefix_stable(allow="PG1", min_ratio=0.9)
    (finding,) = [f for s in recording.analysis().sessions for f in s.turns[1].findings if f.primary]
    assert finding.source is not None
    assert (finding.source.filename, finding.source.row) == ("test_sdks.py", row)


def test_a_log_of_a_recording_is_read_by_every_command(tmp_path: Path) -> None:
    from prefixguard.analysis import analyze
    from prefixguard.importers import read_log

    sync, _ = clients(anthropic, "Anthropic")
    with Recording(ROOT) as recording:
        row = here() + 2
        for second in range(2):
            sync.messages.create(
                model="claude-sonnet-5-5", max_tokens=9, system=f"It is 12:00:0{second}. {SYSTEM}",
                messages=[{"role": "user", "content": "When does the palm house open on a Sunday? " * 4}],
            )  # fmt: skip
    log = tmp_path / "new" / "log.jsonl"
    assert recording.write_log(log) == 2
    assert [path.name for path in log.parent.iterdir()] == ["log.jsonl"]
    read = list(read_log(log))
    assert [exchange.request for exchange in read] == [e.request for e in recording.exchanges()]
    turns = analyze(read, server="unknown:tools-first").sessions[-1].turns
    sources = {finding.source.row for turn in turns for finding in turn.findings if finding.source}
    assert sources <= {row}
    assert call_site(read[0].extra) is not None
