"""From the message forms of tracing conventions to the body of a chat request.

Conventions tell the same messages in their own words; the analysis reads API
bodies. What comes out is the Chat Completions form, which every convention can
be told in, whatever API was really spoken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.importers.records import encode

type Message = dict[str, Any]


def from_parts(messages: object) -> list[Message]:
    """Messages of the form {role, parts} as chat messages. Raises ValueError for another form."""
    if not isinstance(messages, list):
        raise ValueError("the messages are no list")
    found: list[Message] = []
    for message in messages:
        if not isinstance(message, dict):
            raise ValueError("a message is no object")
        role = str(message.get("role", "user"))
        parts = message.get("parts")
        if parts is None:
            found.append(message)  # written in the API's own form
            continue
        found += _message(role, parts)
    return found


def _message(role: str, parts: Sequence[Any]) -> list[Message]:
    """One message; each tool result in it is a message of its own in the chat form."""
    content: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    results: list[Message] = []
    for part in parts:
        match part.get("type") if isinstance(part, dict) else None:
            case "text":
                content.append({"type": "text", "text": _text(part.get("content"))})
            case "tool_call":
                arguments = part.get("arguments")
                calls.append(_call(part.get("id"), part.get("name"), arguments))
            case "tool_call_response":
                said = part.get("response", part.get("result"))
                results.append({"role": "tool", "tool_call_id": part.get("id"), "content": _text(said)})
            case _:
                content.append(part if isinstance(part, dict) else {"type": "text", "text": _text(part)})
    if not content and not calls:
        return results
    message: Message = {"role": role, "content": _short(content)}
    if calls:
        message["tool_calls"] = calls
    return [*results, message]


def _call(identity: object, name: object, arguments: object) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else encode(arguments or {}).decode()
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": text}}


def _short(content: list[dict[str, Any]]) -> Any:
    if not content:
        return None
    if len(content) == 1 and content[0].get("type") == "text":
        return content[0]["text"]
    return content


def system_text(instructions: object) -> list[Message]:
    """System instructions, a text or a list of parts, as a message; [] for none."""
    if isinstance(instructions, str):
        return [{"role": "system", "content": instructions}] if instructions else []
    if isinstance(instructions, list):
        return _message("system", instructions)
    return []


def tools_of(definitions: object) -> list[dict[str, Any]]:
    """Tool definitions as a chat request has them."""
    found = []
    for tool in definitions if isinstance(definitions, list) else ():
        if not isinstance(tool, dict):
            continue
        if tool.get("type", "function") == "function" and "function" not in tool and "name" in tool:
            inner = {key: value for key, value in tool.items() if key != "type"}
            found.append({"type": "function", "function": inner})
        else:
            found.append(tool)
    return found


def indexed(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """What is spread over NAME.0.FIELD, NAME.1.FIELD ... as flat objects, by number."""
    rows: dict[int, dict[str, Any]] = {}
    start = prefix + "."
    for name, value in attributes.items():
        if not name.startswith(start):
            continue
        number, _, field = name[len(start) :].partition(".")
        if number.isdecimal() and field:
            rows.setdefault(int(number), {})[field] = value
    return [rows[number] for number in sorted(rows)]


def from_fields(row: Mapping[str, Any]) -> Message:
    """A message of one attribute a field (OpenInference, OpenLLMetry) as a chat message."""
    fields = {name.removeprefix("message."): value for name, value in row.items()}
    message: Message = {"role": fields.get("role") or "user", "content": fields.get("content")}
    blocks = [
        {"type": block.get("message_content.type", "text"), **_block(block)}
        for block in indexed(fields, "contents")
    ]
    if blocks:
        message["content"] = blocks
    calls = [_field_call(call) for call in indexed(fields, "tool_calls")]
    if calls:
        message["tool_calls"] = calls
    if fields.get("tool_call_id") is not None:
        message["tool_call_id"] = fields["tool_call_id"]
    return message


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix("message_content."): value
        for name, value in block.items()
        if name != "message_content.type"
    }


def _field_call(call: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name.removeprefix("tool_call.").removeprefix("function."): v for name, v in call.items()}
    return _call(plain.get("id"), plain.get("name"), plain.get("arguments"))


def reply(messages: Sequence[Message]) -> dict[str, Any]:
    """Replies as a chat response."""
    return {
        "object": "chat.completion",
        "choices": [{"index": i, "message": message} for i, message in enumerate(messages)],
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode(value).decode()
