"""An action as each API says it, whole or as a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from bench.agents.cache import Usage
from bench.agents.script import Action, Api, Call, Json

_OUTPUT = 24


def reply(
    api: Api, model: str, action: Action, usage: Usage, identity: str, *, stream: bool
) -> tuple[str, list[bytes]]:
    """The content type and the pieces of a body. identity: what its ids are made of."""
    if api == "messages":
        return _messages(model, action, usage, identity, stream)
    if api == "responses":
        return _responses(model, action, usage, identity, stream)
    if api == "gemini":
        return _gemini(model, action, usage, identity, stream)
    return _chat(model, action, usage, identity, stream)


def _whole(body: Json) -> tuple[str, list[bytes]]:
    return "application/json", [json.dumps(body).encode()]


def _events(events: Sequence[Json], *, named: bool = True, done: bool = False) -> tuple[str, list[bytes]]:
    pieces = [
        (f"event: {event['type']}\n" if named else "").encode() + b"data: %s\n\n" % json.dumps(event).encode()
        for event in events
    ]
    return "text/event-stream", [*pieces, b"data: [DONE]\n\n"] if done else pieces


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _chat(model: str, action: Action, usage: Usage, identity: str, stream: bool) -> tuple[str, list[bytes]]:
    counted = {
        "prompt_tokens": usage.total,
        "completion_tokens": _OUTPUT,
        "total_tokens": usage.total + _OUTPUT,
        "prompt_tokens_details": {"cached_tokens": usage.read},
    }
    base = {"id": f"chatcmpl-{identity}", "created": int(time.time()), "model": model}
    message: Json = {"role": "assistant"}
    if isinstance(action, Call):
        function = {"name": action.tool, "arguments": json.dumps(action.arguments)}
        calls = [{"id": f"call_{identity}", "type": "function", "function": function}]
        message |= {"content": None, "tool_calls": calls}
        reason = "tool_calls"
    else:
        message["content"] = action.text
        reason = "stop"
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return _whole({**base, "object": "chat.completion", "choices": [choice], "usage": counted})
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if isinstance(action, Call):
        call = message["tool_calls"][0]
        first, second = _halves(call["function"]["arguments"])
        deltas += [
            {"tool_calls": [{"index": 0, **call, "function": {"name": action.tool, "arguments": first}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": second}}]},
        ]
    else:
        deltas += [{"content": half} for half in _halves(action.text)]
    chunk = {**base, "object": "chat.completion.chunk"}
    events: list[Json] = [{**chunk, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    events.append({**chunk, "choices": [], "usage": counted})
    return _events(events, named=False, done=True)


def _messages(
    model: str, action: Action, usage: Usage, identity: str, stream: bool
) -> tuple[str, list[bytes]]:
    counted = {
        "input_tokens": usage.total - usage.read - usage.written,
        "cache_read_input_tokens": usage.read,
        "cache_creation_input_tokens": usage.written,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": _OUTPUT,
    }
    if isinstance(action, Call):
        block: Json = {
            "type": "tool_use",
            "id": f"toolu_{identity}",
            "name": action.tool,
            "input": action.arguments,
        }
        reason = "tool_use"
        deltas = [
            {"type": "input_json_delta", "partial_json": h} for h in _halves(json.dumps(action.arguments))
        ]
        empty = {**block, "input": {}}
    else:
        block, reason = {"type": "text", "text": action.text}, "end_turn"
        deltas = [{"type": "text_delta", "text": half} for half in _halves(action.text)]
        empty = {"type": "text", "text": ""}
    message = {"id": f"msg_{identity}", "type": "message", "role": "assistant", "model": model}
    ending = {"stop_reason": reason, "stop_sequence": None}
    if not stream:
        return _whole({**message, "content": [block], **ending, "usage": counted})
    begun: Json = {
        **message,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**counted, "output_tokens": 1},
    }
    return _events(
        [
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ending, "usage": {"output_tokens": _OUTPUT}},
            {"type": "message_stop"},
        ]
    )


def response_events(model: str, action: Action, usage: Usage, identity: str) -> list[Json]:
    """The events of the Responses API, which are also its messages in a WebSocket."""
    counted = {
        "input_tokens": usage.total,
        "input_tokens_details": {"cached_tokens": usage.read},
        "output_tokens": _OUTPUT,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total + _OUTPUT,
    }
    if isinstance(action, Call):
        item: Json = {
            "type": "function_call", "id": f"fc_{identity}", "call_id": f"call_{identity}",
            "name": action.tool, "arguments": json.dumps(action.arguments), "status": "completed",
        }  # fmt: skip
    else:
        content = [{"type": "output_text", "text": action.text, "annotations": [], "logprobs": []}]
        item = {"type": "message", "id": f"msg_{identity}", "role": "assistant", "status": "completed"}
        item["content"] = content
    base: Json = {
        "id": f"resp_{identity}", "object": "response", "created_at": int(time.time()), "model": model,
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
    }  # fmt: skip
    events: list[Json] = [
        {
            "type": "response.created",
            "response": {**base, "status": "in_progress", "output": [], "usage": None},
        },
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {
                **item,
                "status": "in_progress",
                **({"arguments": ""} if isinstance(action, Call) else {"content": []}),
            },
        },
    ]
    at = {"item_id": item["id"], "output_index": 0}
    if isinstance(action, Call):
        kind = "response.function_call_arguments"
        events += [{"type": f"{kind}.delta", **at, "delta": half} for half in _halves(item["arguments"])]
        events.append({"type": f"{kind}.done", **at, "arguments": item["arguments"]})
    else:
        inside = {**at, "content_index": 0}
        empty = {**item["content"][0], "text": ""}
        events.append({"type": "response.content_part.added", **inside, "part": empty})
        events += [
            {"type": "response.output_text.delta", **inside, "delta": half, "logprobs": []}
            for half in _halves(action.text)
        ]
        events.append({"type": "response.output_text.done", **inside, "text": action.text, "logprobs": []})
        events.append({"type": "response.content_part.done", **inside, "part": item["content"][0]})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    whole = {**base, "status": "completed", "output": [item], "usage": counted}
    events.append({"type": "response.completed", "response": whole})
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]


def _responses(
    model: str, action: Action, usage: Usage, identity: str, stream: bool
) -> tuple[str, list[bytes]]:
    events = response_events(model, action, usage, identity)
    return _events(events) if stream else _whole(events[-1]["response"])


def _gemini(model: str, action: Action, usage: Usage, identity: str, stream: bool) -> tuple[str, list[bytes]]:
    counted = {
        "promptTokenCount": usage.total,
        "cachedContentTokenCount": usage.read,
        "candidatesTokenCount": _OUTPUT,
        "totalTokenCount": usage.total + _OUTPUT,
    }
    if isinstance(action, Call):
        parts: list[list[Any]] = [[{"functionCall": {"name": action.tool, "args": action.arguments}}]]
    else:
        parts = [[{"text": half}] for half in _halves(action.text)]
    chunks: list[Json] = []
    for n, part in enumerate(parts):
        candidate: Json = {"index": 0, "content": {"role": "model", "parts": part}}
        if n == len(parts) - 1:
            candidate["finishReason"] = "STOP"
        chunks.append(
            {
                "candidates": [candidate],
                "usageMetadata": counted,
                "modelVersion": model,
                "responseId": identity,
            }
        )
    if stream:
        return _events(chunks, named=False)
    joined = [part for group in parts for part in group]
    if not isinstance(action, Call):
        joined = [{"text": action.text}]
    chunks[-1]["candidates"][0]["content"]["parts"] = joined
    return _whole(chunks[-1])
