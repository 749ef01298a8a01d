"""An exchange: one request and its response, as recorded.

Bodies are bytes: what went over the wire, with the content encoding taken off.
Everything that has to understand them lives in `wire`.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

type Transport = Literal["http", "websocket"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds from the request's last byte; None where nobody measured."""

    first_token_ms: float | None = None
    total_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt as token ids, rendered by the server that answered it.

    `prompt` is an int32 array of the ids that the server evaluates; `reply`
    holds the ids of the generated text as far as they are known. `engine`
    names the server and build that rendered them.
    """

    engine: str
    prompt: array[int]
    reply: array[int] | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response.

    t: seconds, since the epoch or since the first exchange of a log.
    request: the JSON body.
    response: the whole JSON response. For a stream, the response object that
        the stream adds up to; None where nothing came back or it was not kept.
    usage: stands in for the response in logs that keep only the figures.
    status: the HTTP status; None when no response arrived.
    headers: request headers, names in lower case, secrets masked.
    """

    t: float
    path: str
    request: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    response: bytes | None = None
    usage: bytes | None = None
    status: int | None = 200
    upstream: str | None = None
    method: str = "POST"
    timing: Timing = Timing()
    aborted: bool = False
    transport: Transport = "http"
    rendered: Rendered | None = None
    extra: Mapping[str, bytes] = field(default_factory=dict)
    """Unknown fields of a log line, as raw JSON, kept so that nothing is lost."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """What says that exchanges belong to one agent run.

    kind: where it was found; "content" when only the content says so.
    name: the header or field that holds it. value: what it holds.
    """

    kind: Literal["header", "body", "content"]
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Capture:
    """One exchange as it went over the wire, before anybody understood it.

    Bodies are the exact bytes, content encoding included, of request and
    response; a stream's response is all its bytes in the order they came.
    Secrets are masked in `headers`, `response_headers` and `path` before a
    capture is made: keys never reach a queue, a pipe or a disk.
    """

    id: str
    t: float
    method: str
    path: str
    upstream: str
    headers: Mapping[str, str]
    body: bytes
    status: int | None
    response_headers: Mapping[str, str]
    response_body: bytes
    timing: Timing = Timing()
    aborted: bool = False
    transport: Transport = "http"
    account: str | None = None
    """A salted digest of the credential, so that a change of account can be seen without keeping the key."""
    agent: str | None = None
