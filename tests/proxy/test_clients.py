"""The SDKs that agents use, through the proxy: they get what they would get without it."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest

from .running import RunningProxy, of
from .upstream import Answer, Request, Upstream

SSE = (("Content-Type", "text/event-stream; charset=utf-8"),)
QUESTION = "What is the capital of France?"


def sse(events: list[dict[str, object]], *, names: bool) -> list[bytes]:
    return [
        (f"event: {event['type']}\n" if names else "").encode() + b"data: %s\n\n" % json.dumps(event).encode()
        for event in events
    ]


def chat(request: Request) -> Answer:
    body = json.loads(request.body)
    usage = {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}
    usage["prompt_tokens_details"] = {"cached_tokens": 0}  # type: ignore[assignment]
    base = {"id": "c1", "created": 1, "model": body["model"]}
    if not body.get("stream"):
        message = {"role": "assistant", "content": "Paris."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Answer(
            [json.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()]
        )
    deltas = [{"role": "assistant", "content": ""}, {"content": "Par"}, {"content": "is."}]
    events = [
        {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
        for delta in deltas
    ]
    events.append({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return Answer([*sse(events, names=False), b"data: [DONE]\n\n"], headers=SSE, chunked=True)


def messages(request: Request) -> Answer:
    body = json.loads(request.body)
    usage = {
        "input_tokens": 11,
        "output_tokens": 2,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
    }
    message = {
        "id": "m1", "type": "message", "role": "assistant", "model": body["model"],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    if not body.get("stream"):
        content = [{"type": "text", "text": "Paris."}]
        return Answer([json.dumps({**message, "content": content, "stop_reason": "end_turn"}).encode()])
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {**message, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Par"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "is."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    return Answer(sse(events, names=True), headers=SSE, chunked=True)


def responses(request: Request) -> Answer:
    body = json.loads(request.body)
    text = {"type": "output_text", "text": "Paris.", "annotations": []}
    item = {"id": "i1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    usage = {
        "input_tokens": 11, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 13,
    }  # fmt: skip
    response = {
        "id": "r1", "object": "response", "created_at": 1, "model": body["model"],
        "output": [item], "usage": usage, "status": "completed",
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    if not body.get("stream"):
        return Answer([json.dumps(response).encode()])
    place = {"item_id": "i1", "output_index": 0, "content_index": 0}
    events: list[dict[str, object]] = [
        {"type": "response.created", "sequence_number": 0, "response": {**response, "output": []}},
        {"type": "response.output_text.delta", "sequence_number": 1, "delta": "Par", "logprobs": [], **place},
        {"type": "response.output_text.delta", "sequence_number": 2, "delta": "is.", "logprobs": [], **place},
        {"type": "response.completed", "sequence_number": 3, "response": response},
    ]
    return Answer(sse(events, names=True), headers=SSE, chunked=True)


def ask_chat(url: str, session: str, *, stream: bool) -> str:
    client = openai.OpenAI(api_key="sk-x", base_url=f"{url}/v1", default_headers={"x-session-id": session})
    question = [{"role": "user", "content": QUESTION}]
    if stream:
        chunks = client.chat.completions.create(model="gpt-4.1", messages=question, stream=True)  # type: ignore[call-overload]
        return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    answer = client.chat.completions.create(model="gpt-4.1", messages=question)  # type: ignore[call-overload]
    return str(answer.choices[0].message.content)


def ask_messages(url: str, session: str, *, stream: bool) -> str:
    client = anthropic.Anthropic(api_key="sk-x", base_url=url, default_headers={"x-session-id": session})
    question = [{"role": "user", "content": QUESTION}]
    options = {"model": "claude-test", "max_tokens": 9, "messages": question}
    if stream:
        with client.messages.stream(**options) as answer:  # type: ignore[arg-type]
            return "".join(answer.text_stream)
    return str(client.messages.create(**options).content[0].text)  # type: ignore[call-overload]


def ask_responses(url: str, session: str, *, stream: bool) -> str:
    client = openai.OpenAI(api_key="sk-x", base_url=f"{url}/v1", default_headers={"x-session-id": session})
    if stream:
        events = client.responses.create(model="gpt-5.2", input=QUESTION, stream=True)
        return "".join(e.delta for e in events if e.type == "response.output_text.delta")
    return client.responses.create(model="gpt-5.2", input=QUESTION).output_text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("script", "ask", "api"),
    [
        (chat, ask_chat, "openai-chat"),
        (messages, ask_messages, "anthropic-messages"),
        (responses, ask_responses, "openai-responses"),
    ],
    ids=["chat", "messages", "responses"],
)
def test_sdk(upstream: Upstream, proxy: RunningProxy, script, ask, api: str, stream: bool) -> None:  # type: ignore[no-untyped-def]
    upstream.script = script
    session = f"sdk-{api}-{stream}"
    assert ask(proxy.url, session, stream=stream) == "Paris."
    (capture,) = proxy.captures(session, 1)
    assert QUESTION in capture.body.decode()
    assert not capture.aborted
    turn = proxy.wait_for(
        lambda events: next((e for e in of(events, "turn") if e["session"] == session), None), "turn"
    )
    assert turn["api"] == api
    assert turn["note"] == ""
    assert turn["reported_read"] == 0
