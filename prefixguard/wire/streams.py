"""Puts a stream together: the bytes of a streamed reply to the response object that they add up to.

Every API streams its own way; the dialect is told by the events themselves, so
that a gateway's mixture is read as what it is. A stream that was cut off adds
up to what had arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from prefixguard.surrogates import lenient
from prefixguard.wire import eventstream

type _Event = dict[str, Any]

_decode = lenient(msgspec.json.Decoder().decode)


def assemble(body: bytes, content_type: str) -> bytes | None:
    """The response object as JSON, or None when `body` holds none.

    A body that is already one JSON object is handed back as it is.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/vnd.amazon.eventstream":
        events = list(eventstream.events(body))
        return _pack(_bedrock(events)) if events else None
    start = body.lstrip()[:1]
    if kind != "text/event-stream" and start == b"{":
        try:
            _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        else:
            return body
    if kind == "application/json" and start == b"[":
        events = _json_array(body)
    elif kind == "text/event-stream" or body.lstrip()[:5] in (b"data:", b"event"):
        events = list(sse_events(body))
    else:
        events = list(_json_lines(body))
    if not events:
        return None
    return _pack(_put_together(events))


def _pack(response: _Event | None) -> bytes | None:
    return None if response is None else msgspec.json.encode(response)


def sse_events(body: bytes) -> Iterator[_Event]:
    """The JSON objects in the `data:` lines of a server-sent event stream."""
    data: list[bytes] = []
    for line in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield from _object(b"\n".join(data))
            data = []
    if data:
        yield from _object(b"\n".join(data))


def _json_lines(body: bytes) -> Iterator[_Event]:
    for line in body.splitlines():
        yield from _object(line)


def _json_array(body: bytes) -> list[_Event]:
    try:
        return [event for event in _decode(body) if isinstance(event, dict)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def _object(data: bytes) -> Iterator[_Event]:
    if not data.lstrip().startswith(b"{"):
        return
    try:
        event = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if isinstance(event, dict):
        yield event


def _put_together(events: list[_Event]) -> _Event | None:
    for fits, build in _DIALECTS:
        if any(fits(event) for event in events):
            try:
                return build(events)
            except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError):
                return None
    return None


def _merge(target: _Event, delta: _Event) -> None:
    """Strings grow, lists are joined by `index`, everything else is replaced."""
    for key, value in delta.items():
        old = target.get(key)
        if value is None:
            target.setdefault(key, None)
        elif isinstance(value, str) and isinstance(old, str) and key not in ("id", "type", "role", "name"):
            target[key] = old + value
        elif isinstance(value, dict) and isinstance(old, dict):
            _merge(old, value)
        elif isinstance(value, list) and isinstance(old, list):
            _merge_list(old, value)
        elif isinstance(value, list):
            grown: list[Any] = []
            target[key] = grown
            _merge_list(grown, value)
        else:
            target[key] = value


def _merge_list(old: list[Any], new: list[Any]) -> None:
    for item in new:
        place = item.get("index") if isinstance(item, dict) else None
        same = next((o for o in old if isinstance(o, dict) and o.get("index") == place), None)
        if place is not None and isinstance(same, dict):
            _merge(same, item)
        else:
            old.append(dict(item) if isinstance(item, dict) else item)


def _openai_chat(events: list[_Event]) -> _Event:
    response: _Event = {"object": "chat.completion", "choices": []}
    choices: dict[int, _Event] = {}
    for event in events:
        for key, value in event.items():
            if key not in ("choices", "object") and value is not None:
                response[key] = value
        for part in event.get("choices") or []:
            index = part.get("index", 0)
            choice = choices.setdefault(index, {"index": index, "message": {"role": "assistant"}})
            if isinstance(part.get("delta"), dict):
                _merge(choice["message"], part["delta"])
            elif "text" in part:
                choice["text"] = choice.get("text", "") + (part["text"] or "")
            if part.get("finish_reason") is not None:
                choice["finish_reason"] = part["finish_reason"]
    for choice in choices.values():
        if "text" in choice:
            del choice["message"]
            response["object"] = "text_completion"
        else:
            for call in choice["message"].get("tool_calls") or []:
                call.pop("index", None)
    response["choices"] = [choices[i] for i in sorted(choices)]
    return response


def _anthropic(events: list[_Event]) -> _Event:
    message: _Event = {"type": "message", "role": "assistant", "content": []}
    blocks: dict[int, _Event] = {}
    inputs: dict[int, str] = {}
    for event in events:
        match event.get("type"):
            case "message_start":
                message.update(event["message"])
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                index, delta = event["index"], event["delta"]
                block = blocks.setdefault(index, {"type": "text"})
                match delta.get("type"):
                    case "text_delta":
                        block["text"] = block.get("text", "") + delta["text"]
                    case "input_json_delta":
                        inputs[index] = inputs.get(index, "") + delta["partial_json"]
                    case "thinking_delta":
                        block["thinking"] = block.get("thinking", "") + delta["thinking"]
                    case "signature_delta":
                        block["signature"] = delta["signature"]
                    case "citations_delta":
                        block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case "message_delta":
                message.update({k: v for k, v in event.get("delta", {}).items() if v is not None})
                usage = {k: v for k, v in (event.get("usage") or {}).items() if v is not None}
                message["usage"] = {**(message.get("usage") or {}), **usage}
    for index, text in inputs.items():
        if text:
            blocks[index]["input"] = _tolerant(text)
    message["content"] = [blocks[i] for i in sorted(blocks)]
    return message


def _tolerant(text: str) -> Any:
    """The JSON a stream carried in pieces, or the text itself when the stream was cut off inside it."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def _openai_responses(events: list[_Event]) -> _Event:
    response: _Event = {"object": "response", "output": []}
    items: dict[int, _Event] = {}
    named: dict[str, int] = {}

    def place(event: _Event) -> int:
        """Where its item stands; llama.cpp before October 2026 gives only the item's id."""
        index = event.get("output_index")
        if isinstance(index, int):
            return index
        return named.setdefault(event.get("item_id") or event["item"].get("id", ""), len(named))

    for event in events:
        kind = event.get("type", "")
        if kind in ("response.completed", "response.incomplete", "response.failed", "response.done"):
            final: _Event = event["response"]
            if not final.get("output") and items:
                final["output"] = [items[i] for i in sorted(items)]
            return final
        if isinstance(event.get("response"), dict):
            response.update(event["response"])
        elif kind in ("response.output_item.added", "response.output_item.done"):
            items[place(event)] = event["item"]
        elif kind == "response.output_text.delta":
            item = items.setdefault(place(event), {"type": "message", "role": "assistant"})
            content = item.setdefault("content", [])
            if not content:
                content.append({"type": "output_text", "text": ""})
            content[-1]["text"] = content[-1].get("text", "") + event["delta"]
        elif kind == "response.function_call_arguments.delta":
            item = items.setdefault(place(event), {"type": "function_call"})
            item["arguments"] = item.get("arguments", "") + event["delta"]
    response["output"] = [items[i] for i in sorted(items)]
    return response


def _gemini(events: list[_Event]) -> _Event:
    response: _Event = {"candidates": []}
    parts: list[Any] = []
    candidate: _Event = {}
    for event in events:
        response.update({k: v for k, v in event.items() if k != "candidates"})
        for found in (event.get("candidates") or [])[:1]:
            candidate.update({k: v for k, v in found.items() if k != "content"})
            for part in (found.get("content") or {}).get("parts") or []:
                last = parts[-1] if parts else None
                if (
                    isinstance(last, dict) and "text" in part and "text" in last
                    and bool(part.get("thought")) == bool(last.get("thought"))
                    and "thoughtSignature" not in last
                ):  # fmt: skip
                    parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
                else:
                    parts.append(part)
    response["candidates"] = [{**candidate, "content": {"role": "model", "parts": parts}}]
    return response


def _bedrock(events: list[_Event]) -> _Event:
    response: _Event = {}
    role, blocks = "assistant", dict[int, _Event]()
    inputs: dict[int, str] = {}
    for event in events:
        kind, payload = next(iter(event.items()))
        index = payload.get("contentBlockIndex", 0)
        if kind == "messageStart":
            role = payload.get("role", role)
        elif kind == "contentBlockStart":
            blocks[index] = {k: dict(v) for k, v in payload.get("start", {}).items()}
        elif kind == "contentBlockDelta":
            block, delta = blocks.setdefault(index, {}), payload.get("delta", {})
            if "text" in delta:
                block["text"] = block.get("text", "") + delta["text"]
            elif "toolUse" in delta:
                inputs[index] = inputs.get(index, "") + delta["toolUse"].get("input", "")
            elif "reasoningContent" in delta:
                inner = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {})
                _merge(inner, delta["reasoningContent"])
        elif kind == "messageStop":
            response["stopReason"] = payload.get("stopReason")
        elif kind == "metadata":
            response.update(payload)
    for index, text in inputs.items():
        blocks[index].setdefault("toolUse", {})["input"] = _tolerant(text) if text else {}
    response["output"] = {"message": {"role": role, "content": [blocks[i] for i in sorted(blocks)]}}
    return response


def _llamacpp(events: list[_Event]) -> _Event:
    response: _Event = {}
    text = ""
    for event in events:
        text += event.get("content") or ""
        response.update(event)
    response["content"] = text
    return response


def _ollama(events: list[_Event]) -> _Event:
    response: _Event = {}
    message: _Event = {"role": "assistant"}
    for event in events:
        response.update(event)
        _merge(message, event.get("message") or {})
    response["message"] = message
    return response


def _error(events: list[_Event]) -> _Event:
    return next(event for event in events if "error" in event)


# Asked in this order; the first dialect that any event belongs to reads them all.
_DIALECTS: tuple[tuple[Callable[[_Event], bool], Callable[[list[_Event]], _Event]], ...] = (
    (lambda e: e.get("type") in ("message_start", "content_block_start"), _anthropic),
    (lambda e: str(e.get("type", "")).startswith("response."), _openai_responses),
    (lambda e: "choices" in e, _openai_chat),
    (lambda e: "candidates" in e, _gemini),
    (lambda e: isinstance(e.get("message"), dict) and "done" in e, _ollama),
    (lambda e: "content" in e and "stop" in e, _llamacpp),
    (lambda e: "error" in e, _error),
)
