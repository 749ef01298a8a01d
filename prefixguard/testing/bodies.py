"""Request bodies that a test built and never sent: where they would have gone, and what would have
come back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from prefixguard.errors import InputError
from prefixguard.exchange import Exchange

type Body = Mapping[str, Any] | bytes | str

_ANTHROPIC_ONLY = ("system", "stop_sequences", "anthropic_version", "thinking", "cache_control")


def encode_body(body: Body) -> bytes:
    """The body as an SDK would write it. Raises InputError for what is no JSON object."""
    if isinstance(body, str):
        body = body.encode()
    if isinstance(body, bytes):
        return body
    if not isinstance(body, Mapping):
        raise InputError(f"a request body is a dictionary, or its JSON; this is {type(body).__name__}")
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=_plain).encode(
            "utf-8", "surrogatepass"
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"the request body is no JSON: {error}") from error


def _plain(value: Any) -> Any:
    """What SDKs take beside plain JSON: models with `model_dump`, and other mappings."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def guess_path(raw: bytes) -> str:
    """The path that a body belongs to, by its fields. Raises InputError where they do not say."""
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise InputError(f"the request body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise InputError(f"a request body is a JSON object; this is {type(body).__name__}")
    if "contents" in body:
        return f"/v1beta/models/{body.get('model', 'unknown')}:generateContent"
    if "inferenceConfig" in body or "toolConfig" in body:
        return f"/model/{body.get('modelId', 'unknown')}/converse"
    if "input" in body:
        return "/v1/responses"
    if "messages" in body:
        return "/v1/messages" if _is_anthropic(body) else "/v1/chat/completions"
    if "prompt" in body:
        return "/v1/completions"
    fields = ", ".join(sorted(body)) or "none"
    raise InputError(f"cannot tell which API this body is for (fields: {fields}); say so with path=")


def _is_anthropic(body: Mapping[str, Any]) -> bool:
    tools = body.get("tools")
    first = tools[0] if isinstance(tools, list) and tools else {}
    return (
        any(name in body for name in _ANTHROPIC_ONLY)
        or (isinstance(first, dict) and "input_schema" in first)
        or str(body.get("model", "")).startswith("claude")
    )


def with_replies(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The exchanges, each unanswered one with the reply that the next body of its conversation holds.

    What the model said stands in the next request, behind what this one sent.
    Without it, a changed prompt could not be told from another conversation.
    """
    return [
        replace(exchange, response=reply)
        if exchange.response is None and (reply := _reply(exchange, later)) is not None
        else exchange
        for exchange, later in zip(exchanges, [*exchanges[1:], None], strict=True)
    ]


def _reply(exchange: Exchange, later: Exchange | None) -> bytes | None:
    if later is None or later.path != exchange.path:
        return None
    try:
        now, then = json.loads(exchange.request), json.loads(later.request)
        field = next(name for name in ("messages", "input", "contents") if isinstance(now.get(name), list))
        new = then[field][len(now[field]) :]
        said = []
        for item in new:
            if not _is_models(item):
                break
            said.append(item)
    except (ValueError, StopIteration, AttributeError, TypeError, KeyError):
        return None
    return json.dumps(_response(exchange.path, field, said)).encode() if said else None


def _is_models(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    if "role" in item:
        return item["role"] in ("assistant", "model")
    return item.get("type") in ("function_call", "reasoning", "custom_tool_call")


def _response(path: str, field: str, said: list[Any]) -> dict[str, Any]:
    if field == "input":
        return {"object": "response", "output": said}
    if field == "contents":
        return {"candidates": [{"content": said[0]}]}
    if "/converse" in path:
        return {"output": {"message": said[0]}}
    if path.partition("?")[0].endswith("/messages"):
        return {"type": "message", "role": "assistant", "content": said[0].get("content")}
    if path.endswith("/api/chat"):
        return {"message": said[0]}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": said[0]}]}
