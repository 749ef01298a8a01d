"""Copies of what passes: chunk by chunk for bodies, request by request inside a WebSocket.

A copy is called in the path of the traffic. It returns every object it was
given, whatever happens, and switches itself off when it fails.
"""

from __future__ import annotations

import re
import time
from typing import Final

HOOK_FAILED: Final = "an error in the recording hooks"
TOO_LARGE: Final = "the response is too large to record"
MAX_BYTES: Final = 128 * 2**20
_MARKS: Final = 64


class Copy:
    """Keeps the chunks of one response, and when the first of them came.

    started: `time.perf_counter()` from which on the times count.
    """

    __slots__ = ("chunks", "failed", "marks", "size", "started")

    def __init__(self, started: float) -> None:
        self.started = started
        self.chunks: list[bytes] = []
        self.marks: list[tuple[int, float]] = []
        """(bytes so far, milliseconds since `started`), for the first chunks."""
        self.size = 0
        self.failed: str | None = None
        """Why the copy was given up."""

    def __call__(self, data: bytes) -> bytes:
        if data and self.failed is None:
            try:
                self._keep(data)
            except Exception:  # noqa: BLE001  the traffic must go on
                self._give_up(HOOK_FAILED)
        return data

    def _keep(self, data: bytes) -> None:
        if self.size + len(data) > MAX_BYTES:
            self._give_up(TOO_LARGE)
            return
        self.chunks.append(data)
        self.size += len(data)
        # A server may keep a connection alive with comments for minutes: they must not use up the marks.
        if len(self.marks) < _MARKS and (data[:1] != b":" or b"\ndata" in data):
            self.marks.append((self.size, (time.perf_counter() - self.started) * 1000))

    def _give_up(self, reason: str) -> None:
        self.failed = reason
        self.chunks.clear()


_OPENS: Final = re.compile(rb'"type"\s*:\s*"response\.(create|append)"')
_CLOSES: Final = re.compile(rb'"type"\s*:\s*"(response\.(completed|failed|incomplete|done)|error)"')
_HEAD: Final = 4096
"""How far into a WebSocket message its type is looked for."""


class Pairs:
    """The requests inside one WebSocket, each with the messages that answer it.

    At most one is under way. Messages that open none and answer none are not kept.
    """

    __slots__ = ("count", "request", "response", "started", "t")

    def __init__(self) -> None:
        self.count = 0
        self.request: bytes | None = None
        self.response: Copy | None = None
        self.started = self.t = 0.0

    def opens(self, message: bytes) -> bool:
        """Whether a message of the client is a request."""
        return _OPENS.search(message, 0, _HEAD) is not None

    def begin(self, message: bytes) -> None:
        """A request begins."""
        self.count += 1
        self.request, self.t, self.started = message, time.time(), time.perf_counter()
        self.response = Copy(self.started)

    def answer(self, message: bytes) -> bool:
        """Keep a message of the server; whether it is the last one of the answer."""
        if self.response is None:
            return False
        self.response(message + b"\n")
        return _CLOSES.search(message, 0, _HEAD) is not None
