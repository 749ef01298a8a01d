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
    """The capture's timing with the first token where it really came, None where none came.

    Some servers answer at once with an event that says no more than that they
    work on it, or with comments that keep the connection alive. The first chunk
    behind which anything else has arrived is taken.
    """
    if not marks or not capture.response_body:
        return capture.timing
    encoding = capture.response_headers.get("content-encoding", "identity")
    if encoding in ("identity", ""):
        at = _first_content(capture.response_body)
        later = [ms for received, ms in marks if at is not None and received > at]
        return Timing(later[0] if later else None, capture.timing.total_ms)
    # Of a compressed stream each chunk's own text is unknown, but not what had arrived with it.
    for received, ms in marks:
        start = decode(capture.response_body[:received], encoding, aborted=True)
        if start is None:
            return capture.timing
        if _first_content(start) is not None:
            return Timing(ms, capture.timing.total_ms)
    return Timing(None, capture.timing.total_ms)


def _first_content(head: bytes) -> int | None:
    """Offset of the first line that is more than an opener, or None."""
    at = 0
    for line in head.splitlines(keepends=True):
        if not _OPENERS.search(line.rstrip(b"\r\n")):
            return at
        at += len(line)
    return None
