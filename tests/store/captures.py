"""Captures for the store's tests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from prefixguard.exchange import Capture, SessionKey, Timing

_COUNT = itertools.count()
KEY = SessionKey("header", "x-session-id", "ses_one")
OTHER = SessionKey("body", "prompt_cache_key", "ses_two")


def capture(body: bytes | dict[str, Any], response: bytes = b'{"id":"r1"}', **changes: Any) -> Capture:
    """A capture with this body; the clock moves one second each time."""
    number = next(_COUNT)
    response_headers: Mapping[str, str] = {"content-type": "application/json"}
    values: dict[str, Any] = {
        "id": f"x{number}",
        "t": 1796000000.0 + number,
        "method": "POST",
        "path": "/v1/chat/completions",
        "upstream": "https://api.example.org",
        "headers": {"content-type": "application/json", "user-agent": "test/1"},
        "body": body if isinstance(body, bytes) else json.dumps(body).encode(),
        "status": 200,
        "response_headers": response_headers,
        "response_body": response,
        "timing": Timing(12.5, 250.0),
    }
    return Capture(**(values | changes))


def words(seed: int, count: int) -> str:
    """Text that does not repeat itself."""
    return " ".join(f"w{seed * 1_000_003 % 7919}-{seed}-{i * i % 9973}" for i in range(count))


def conversation(turns: int, first: int = 0) -> list[dict[str, Any]]:
    """Bodies of an append-only conversation, the messages before the tools."""
    tools = [
        {"type": "function", "function": {"name": f"t{i}", "description": words(i, 40)}} for i in range(4)
    ]
    messages: list[dict[str, Any]] = [{"role": "system", "content": words(900 + first, 300)}]
    bodies = []
    for turn in range(turns):
        messages.append({"role": "user", "content": words(first + 10 * turn + 1, 30)})
        bodies.append({"model": "m", "messages": list(messages), "tools": tools, "stream": False})
        messages.append({"role": "assistant", "content": words(first + 10 * turn + 2, 30)})
    return bodies
