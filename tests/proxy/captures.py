"""Captures for tests that need no proxy."""

from __future__ import annotations

import json
from dataclasses import replace

from prefixguard.exchange import Capture
from prefixguard.proxy.frames import Frame


def capture(identity: str = "1", **changes: object) -> Capture:
    """A small chat exchange."""
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hello"}]}
    answer = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}],
    }
    made = Capture(
        id=identity,
        t=1_800_000_000.0,
        method="POST",
        path="/v1/chat/completions",
        upstream="http://127.0.0.1:8080",
        headers={"content-type": "application/json"},
        body=json.dumps(body).encode(),
        status=200,
        response_headers={"content-type": "application/json"},
        response_body=json.dumps(answer).encode(),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def framed(made: Capture, **changes: object) -> Frame:
    """A capture as the proxy sends it, its bodies in pieces beside it."""
    bare = replace(made, body=b"", response_body=b"")
    return Frame(bare, body=made.body, came=(made.response_body[:7], made.response_body[7:]), **changes)  # type: ignore[arg-type]
