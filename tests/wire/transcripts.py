"""One answer in the words of every API: the whole response, and the stream that adds up to it.

The streams have the events, in the order and with the envelopes, that the real
servers send; texts are cut into pieces of any length.
"""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

type Made = tuple[str, bytes, dict[str, Any]]
"""(content type, the stream's bytes, the whole response)"""


@dataclass(frozen=True)
class Answer:
    """What a model answered. calls: (id, name, arguments). size: characters of a stream's pieces."""

    text: str = 'Let me see. Ünïcode too: 早安, "quotes" and \\ signs.\nA second line.'
    thought: str = "The user wants the file; I read it first."
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("call_1", "read_file", {"path": "src/a.py", "limit": 20, "nested": {"x": [1, None, True]}}),
        ("call_2", "list_dir", {}),
    )
    size: int = 7
    usage: dict[str, Any] = field(default_factory=dict)

    def pieces(self, text: str) -> Iterator[str]:
        for at in range(0, len(text), self.size):
            yield text[at : at + self.size]


def sse(events: list[dict[str, Any]], *, names: bool = False, done: bool = False, end: str = "\n") -> bytes:
    """Server-sent events. names: each with an `event:` line of its type. done: OpenAI's last line."""
    parts = []
    for event in events:
        name = f"event: {event['type']}{end}" if names else ""
        parts.append(f"{name}data: {json.dumps(event)}{end}{end}")
    return ("".join(parts) + (f"data: [DONE]{end}{end}" if done else "")).encode()


def openai_chat(answer: Answer) -> Made:
    usage = {"prompt_tokens": 120, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 64}}
    message: dict[str, Any] = {"role": "assistant"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    if answer.thought:
        message["reasoning_content"] = answer.thought
        deltas += [{"reasoning_content": piece} for piece in answer.pieces(answer.thought)]
    message["content"] = answer.text or None
    deltas += [{"content": piece} for piece in answer.pieces(answer.text)]
    calls = []
    for i, (identity, name, arguments) in enumerate(answer.calls):
        written = json.dumps(arguments)
        calls.append({"id": identity, "type": "function", "function": {"name": name, "arguments": written}})
        first = {"index": i, "id": identity, "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [first]})
        deltas += [
            {"tool_calls": [{"index": i, "function": {"arguments": piece}}]}
            for piece in answer.pieces(written)
        ]
    if calls:
        message["tool_calls"] = calls
    reason = "tool_calls" if calls else "stop"
    envelope = {"id": "chatcmpl-1", "created": 1796000000, "model": "gpt-5.2", "system_fingerprint": "fp"}
    events: list[dict[str, Any]] = [
        {**envelope, "object": "chat.completion.chunk", "usage": None,
         "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]  # fmt: skip
    last = {"index": 0, "delta": {}, "finish_reason": reason}
    events.append({**envelope, "object": "chat.completion.chunk", "usage": None, "choices": [last]})
    events.append({**envelope, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    choice = {"index": 0, "message": message, "finish_reason": reason}
    whole = {**envelope, "object": "chat.completion", "choices": [choice], "usage": usage}
    return "text/event-stream; charset=utf-8", sse(events, done=True), whole


def completions(answer: Answer) -> Made:
    envelope = {"id": "cmpl-1", "created": 1796000000, "model": "m"}
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    events = [
        {
            **envelope,
            "object": "text_completion",
            "choices": [{"index": 0, "text": piece, "finish_reason": None}],
        }
        for piece in [*answer.pieces(answer.text), ""]
    ]
    events[-1]["choices"][0]["finish_reason"] = "stop"
    events.append({**envelope, "object": "text_completion", "choices": [], "usage": usage})
    choice = {"index": 0, "text": answer.text, "finish_reason": "stop"}
    whole = {**envelope, "object": "text_completion", "choices": [choice], "usage": usage}
    return "text/event-stream", sse(events, done=True, end="\r\n"), whole


def anthropic(answer: Answer) -> Made:
    begun = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 1,
    }
    content: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []

    def block(start: dict[str, Any], deltas: list[dict[str, Any]], whole: dict[str, Any]) -> None:
        index = len(content)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.append({"type": "ping"})
        events.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
        content.append(whole)

    if answer.thought:
        block(
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                *({"type": "thinking_delta", "thinking": piece} for piece in answer.pieces(answer.thought)),
                {"type": "signature_delta", "signature": "c2lnbmF0dXJl"},
            ],
            {"type": "thinking", "thinking": answer.thought, "signature": "c2lnbmF0dXJl"},
        )
    if answer.text:
        block(
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in answer.pieces(answer.text)],
            {"type": "text", "text": answer.text},
        )
    for identity, name, arguments in answer.calls:
        written = json.dumps(arguments) if arguments else ""
        start = {"type": "tool_use", "id": identity, "name": name, "input": {}}
        pieces = ["", *answer.pieces(written)]
        block(
            start,
            [{"type": "input_json_delta", "partial_json": p} for p in pieces],
            {**start, "input": arguments},
        )
    envelope = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-8"}
    first = {**envelope, "content": [], "stop_reason": None, "stop_sequence": None, "usage": begun}
    reason = "tool_use" if answer.calls else "end_turn"
    ended = {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 44},
    }
    events = [{"type": "message_start", "message": first}, *events, ended, {"type": "message_stop"}]
    whole = {
        **envelope, "content": content, "stop_reason": reason, "stop_sequence": None,
        "usage": {**begun, "output_tokens": 44},
    }  # fmt: skip
    return "text/event-stream; charset=utf-8", sse(events, names=True), whole


def openai_responses(answer: Answer, *, finished: bool = True) -> Made:
    """finished: the last event carries the whole response, as it does unless the stream is cut off."""
    usage = {"input_tokens": 90, "output_tokens": 12, "input_tokens_details": {"cached_tokens": 64}}
    output: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    envelope = {"id": "resp_1", "object": "response", "model": "gpt-5.2"}

    def item(open_: dict[str, Any], deltas: list[dict[str, Any]], closed: dict[str, Any]) -> None:
        index = len(output)
        events.append({"type": "response.output_item.added", "output_index": index, "item": open_})
        events.extend({"output_index": index, "item_id": closed["id"], **delta} for delta in deltas)
        events.append({"type": "response.output_item.done", "output_index": index, "item": closed})
        output.append(closed)

    if answer.thought:
        summary = {"type": "summary_text", "text": answer.thought}
        closed: dict[str, Any] = {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [summary],
            "encrypted_content": "gAAA",
        }
        deltas = [
            {"type": "response.reasoning_summary_text.delta", "delta": p}
            for p in answer.pieces(answer.thought)
        ]
        item({**closed, "summary": []}, deltas, closed)
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        closed = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        deltas = [
            {"type": "response.output_text.delta", "content_index": 0, "delta": p}
            for p in answer.pieces(answer.text)
        ]
        item({**closed, "status": "in_progress", "content": []}, deltas, closed)
    for identity, name, arguments in answer.calls:
        written = json.dumps(arguments)
        closed = {
            "type": "function_call", "id": f"fc_{identity}", "call_id": identity, "name": name,
            "arguments": written, "status": "completed",
        }  # fmt: skip
        deltas = [
            {"type": "response.function_call_arguments.delta", "delta": p} for p in answer.pieces(written)
        ]
        item({**closed, "arguments": "", "status": "in_progress"}, deltas, closed)
    whole = {**envelope, "status": "completed", "output": output, "usage": usage}
    events.insert(
        0, {"type": "response.created", "response": {**envelope, "status": "in_progress", "output": []}}
    )
    if finished:
        events.append({"type": "response.completed", "response": whole})
    return "text/event-stream", sse(events, names=True), whole


def _gemini_chunks(answer: Answer) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    envelope = {"modelVersion": "gemini-2.5-pro", "responseId": "r1"}
    usage = {
        "promptTokenCount": 100,
        "candidatesTokenCount": 9,
        "cachedContentTokenCount": 40,
        "totalTokenCount": 109,
    }
    parts: list[dict[str, Any]] = []
    chunks: list[list[dict[str, Any]]] = []
    if answer.thought:
        parts.append({"text": answer.thought, "thought": True})
        chunks += [[{"text": p, "thought": True}] for p in answer.pieces(answer.thought)]
    if answer.text:
        parts.append({"text": answer.text})
        chunks += [[{"text": p}] for p in answer.pieces(answer.text)]
    for identity, name, arguments in answer.calls:
        call = {"functionCall": {"id": identity, "name": name, "args": arguments}, "thoughtSignature": "c2ln"}
        parts.append(call)
        chunks.append([call])
    made: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": c}, "index": 0}], **envelope} for c in chunks
    ]
    end = {"content": {"role": "model", "parts": []}, "index": 0, "finishReason": "STOP"}
    made.append({"candidates": [end], "usageMetadata": usage, **envelope})
    whole = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": "STOP"}],
        "usageMetadata": usage, **envelope,
    }  # fmt: skip
    return made, whole


def gemini(answer: Answer) -> Made:
    chunks, whole = _gemini_chunks(answer)
    return "text/event-stream", sse(chunks, end="\r\n"), whole


def gemini_array(answer: Answer) -> Made:
    """Without `alt=sse` the stream is one JSON array."""
    chunks, whole = _gemini_chunks(answer)
    return "application/json; charset=UTF-8", json.dumps(chunks, indent=2).encode(), whole


def event_message(kind: str, payload: dict[str, Any]) -> bytes:
    """One message of Amazon's event stream, checksums included."""

    def header(name: str, value: str) -> bytes:
        return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()

    headers = (
        header(":event-type", kind)
        + header(":content-type", "application/json")
        + header(":message-type", "event")
    )
    data = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(data), len(headers))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + data
    return message + struct.pack(">I", binascii.crc32(message))


def bedrock(answer: Answer) -> Made:
    content: list[dict[str, Any]] = []
    out = [event_message("messageStart", {"role": "assistant"})]

    def block(start: dict[str, Any] | None, deltas: list[dict[str, Any]], whole: dict[str, Any]) -> None:
        index = len(content)
        if start is not None:
            out.append(event_message("contentBlockStart", {"contentBlockIndex": index, "start": start}))
        out.extend(
            event_message("contentBlockDelta", {"contentBlockIndex": index, "delta": d}) for d in deltas
        )
        out.append(event_message("contentBlockStop", {"contentBlockIndex": index}))
        content.append(whole)

    if answer.thought:
        inner = {"text": answer.thought, "signature": "c2ln"}
        deltas: list[dict[str, Any]] = [
            {"reasoningContent": {"text": p}} for p in answer.pieces(answer.thought)
        ]
        block(
            None,
            [*deltas, {"reasoningContent": {"signature": "c2ln"}}],
            {"reasoningContent": {"reasoningText": inner}},
        )
    if answer.text:
        block(None, [{"text": p} for p in answer.pieces(answer.text)], {"text": answer.text})
    for identity, name, arguments in answer.calls:
        use = {"toolUseId": identity, "name": name}
        written = json.dumps(arguments) if arguments else ""
        pieces = [{"toolUse": {"input": p}} for p in ["", *answer.pieces(written)]]
        block({"toolUse": use}, pieces, {"toolUse": {**use, "input": arguments}})
    usage = {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 80, "cacheWriteInputTokens": 0}
    reason = "tool_use" if answer.calls else "end_turn"
    out.append(event_message("messageStop", {"stopReason": reason}))
    out.append(event_message("metadata", {"usage": usage, "metrics": {"latencyMs": 700}}))
    whole = {
        "output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason,
        "usage": usage, "metrics": {"latencyMs": 700},
    }  # fmt: skip
    return "application/vnd.amazon.eventstream", b"".join(out), whole


def ollama(answer: Answer) -> Made:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    envelope = {"model": "qwen3:8b", "created_at": "2026-11-30T10:00:00Z"}
    lines: list[dict[str, Any]] = []
    if answer.thought:
        message["thinking"] = answer.thought
        lines += [{"role": "assistant", "content": "", "thinking": p} for p in answer.pieces(answer.thought)]
    lines += [{"role": "assistant", "content": p} for p in answer.pieces(answer.text)]
    if answer.calls:
        calls = [{"id": i, "function": {"name": n, "arguments": a}} for i, n, a in answer.calls]
        message["tool_calls"] = calls
        lines += [{"role": "assistant", "content": "", "tool_calls": [call]} for call in calls]
    last = {"done": True, "done_reason": "stop", "prompt_eval_count": 44, "eval_count": 9}
    events = [{**envelope, "message": m, "done": False} for m in lines]
    events.append({**envelope, "message": {"role": "assistant", "content": ""}, **last})
    stream = "".join(json.dumps(e) + "\n" for e in events).encode()
    return "application/x-ndjson", stream, {**envelope, "message": message, **last}


def llamacpp(answer: Answer) -> Made:
    """llama.cpp's own `/completion`."""
    events: list[dict[str, Any]] = [
        {"index": 0, "content": p, "tokens": [], "stop": False, "id_slot": 0, "tokens_predicted": n}
        for n, p in enumerate(answer.pieces(answer.text))
    ]
    last = {"index": 0, "content": "", "tokens": [], "stop": True, "id_slot": 0, "tokens_predicted": 9,
            "tokens_evaluated": 30, "tokens_cached": 38,
            "timings": {"prompt_n": 4, "cache_n": 26}}  # fmt: skip
    return "text/event-stream", sse([*events, last]), {**last, "content": answer.text}


DIALECTS: dict[str, Callable[[Answer], Made]] = {
    "openai-chat": openai_chat,
    "completions": completions,
    "anthropic": anthropic,
    "openai-responses": openai_responses,
    "openai-responses-cut": lambda answer: openai_responses(answer, finished=False),
    "gemini": gemini,
    "gemini-array": gemini_array,
    "bedrock": bedrock,
    "ollama": ollama,
    "llamacpp": llamacpp,
}
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "anthropic": "/v1/messages",
    "openai-responses": "/v1/responses",
    "openai-responses-cut": "/v1/responses",
    "gemini": "/v1beta/models/g:streamGenerateContent",
    "gemini-array": "/v1beta/models/g:streamGenerateContent",
    "bedrock": "/model/m/converse-stream",
    "ollama": "/api/chat",
    "llamacpp": "/completion",
}
TRANSCRIPTS: dict[str, Made] = {name: make(Answer()) for name, make in DIALECTS.items()}
