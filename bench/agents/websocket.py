"""The Responses API inside a WebSocket, as codex speaks it: one request a message, its events as messages.

A request may hold only what is new and name the response that it continues;
the server puts the whole prompt together again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterator
from typing import Any

from bench.agents.script import Json

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


def accept(key: str) -> bytes:
    """The answer to a handshake. key: the client's `Sec-WebSocket-Key`."""
    token = base64.b64encode(hashlib.sha1((key + _MAGIC).encode()).digest()).decode()
    return (
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        f"sec-websocket-accept: {token}\r\n\r\n"
    ).encode()


def messages(source: Any, sink: Any) -> Iterator[bytes]:
    """The client's messages until it closes; pings are answered."""
    parts = b""
    while head := source.read(2):
        kind, size = head[0] & 0x0F, head[1] & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", source.read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", source.read(8))
        mask = source.read(4) if head[1] & 0x80 else b"\0\0\0\0"
        data = source.read(size)
        plain = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        if kind == _CLOSE:
            sink.write(frame(plain[:2], _CLOSE))
            return
        if kind == _PING:
            sink.write(frame(plain, _PONG))
        elif kind != _PONG:
            parts += plain
            if head[0] & 0x80:
                yield parts
                parts = b""


def frame(data: bytes, kind: int = _TEXT) -> bytes:
    """A message of the server."""
    size = len(data)
    length = (
        bytes([size])
        if size < 126
        else struct.pack(">BH", 126, size)
        if size < 1 << 16
        else struct.pack(">BQ", 127, size)
    )
    return bytes([0x80 | kind]) + length + data


class Linked:
    """What earlier responses stood for, so that a request that names one can be read whole."""

    def __init__(self) -> None:
        self._items: dict[str, list[Any]] = {}

    def whole(self, body: Json) -> Json:
        """The request with its whole input."""
        earlier = self._items.get(body.get("previous_response_id") or "", [])
        new = body.get("input") or []
        return {**body, "input": [*earlier, *(new if isinstance(new, list) else [new])]}

    def remember(self, whole: Json, response: Json) -> None:
        """Keep what a response answered, and what it said."""
        self._items[response["id"]] = [*whole["input"], *response["output"]]


def nothing(body: Json) -> bool:
    """Whether a request only warms the server up."""
    return body.get("generate") is False


def encoded(event: Json) -> bytes:
    return json.dumps(event).encode()
