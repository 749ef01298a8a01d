"""From a capture to an exchange: content encoding off, streams put together, first token found.

Runs in the recorder. What cannot be understood leaves an exchange without a
response; the bytes are in the store all the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from prefixguard.exchange import Capture, Exchange, Timing
from prefixguard.store.encodings import decode
from prefixguard.wire.streams import assemble

# Events that a server sends before the model has produced anything.
_OPENERS: Final = re.compile(
    rb'"type"\s*:\s*"(response\.(created|in_progress|queued)|message_start|ping)"|^\s*$|^:|^event:|^id:|^retry:'
)


def exchange_of(capture: Capture, marks: Sequence[tuple[int, float]] = ()) -> Exchange:
    """The exchange that a capture holds. marks: see `frames.Frame`."""
    request = decode(capture.body, capture.headers.get("content-encoding", ""))
    plain = decode(
        capture.response_body, capture.response_headers.get("content-encoding", ""), capture.aborted
    )
    content_type = capture.response_headers.get("content-type", "")
    if capture.transport == "websocket":
        content_type = "application/jsonl"
    response = assemble(plain, content_type) if plain else None
    # The same extras as an exchange has that is read from the store.
    extra = {"id": capture.id, "agent": capture.agent, "account": capture.account}
    return Exchange(
        t=capture.t,
        path=capture.path,
        request=capture.body if request is None else request,
        headers=capture.headers,
        response=response,
        status=capture.status,
        upstream=capture.upstream,
        method=capture.method,
        timing=timing_of(capture, marks),
        aborted=capture.aborted,
        transport=capture.transport,
        extra={name: msgspec.json.encode(value) for name, value in extra.items() if value is not None},
    )


def timing_of(capture: Capture, marks: Sequence[tuple[int, float]]) -> Timing:
    """The capture's timing with the first token where it really came.

    Some servers answer at once with an event that says no more than that they
    work on it. The first chunk that holds anything else is taken; a compressed
    stream keeps the time of its first chunk.
    """
    encoded = capture.response_headers.get("content-encoding", "identity") not in ("identity", "")
    body = capture.response_body
    if encoded or not marks or not body:
        return capture.timing
    at = _first_content(body[: marks[-1][0]])
    if at is None:
        return capture.timing if len(body) <= marks[-1][0] else Timing(None, capture.timing.total_ms)
    first = next(ms for received, ms in marks if received > at)
    return Timing(first, capture.timing.total_ms)


def _first_content(head: bytes) -> int | None:
    """Offset of the first line that is more than an opener, or None."""
    at = 0
    for line in head.splitlines(keepends=True):
        if not _OPENERS.search(line.rstrip(b"\r\n")):
            return at
        at += len(line)
    return None
