"""What the proxy and its recorder say to each other: length-prefixed msgpack over two pipes.

Down (proxy to recorder): `Frame`, one per exchange. Up: the events.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from prefixguard.exchange import Capture

_LENGTH = struct.Struct(">Q")
MAX_FRAME = 2**31
"""A longer frame means that the two sides have lost step."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One exchange on its way to the store.

    marks: (bytes of the response body received so far, milliseconds since the
        request's last byte), for the first chunks of a stream, so that the
        recorder can tell when the first token came.
    again: this frame was sent to an earlier recorder that died.
    unknown_api: nobody told us of this path.
    """

    capture: Capture
    marks: tuple[tuple[int, float], ...] = ()
    again: bool = False
    unknown_api: bool = False


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The store is open. salt: the store's, for account digests. store: its name, without a password."""

    pid: int
    store: str = ""
    salt: bytes = b""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The store could not be opened; the recorder ends."""

    message: str


class Stored(msgspec.Struct, frozen=True, tag="stored"):
    """The exchange is in the store."""

    id: str
    session: str


class Lost(msgspec.Struct, frozen=True, tag="lost"):
    """The exchange could not be stored."""

    id: str
    reason: str


class Cause(msgspec.Struct, frozen=True):
    """A finding, as much of it as a live line shows."""

    code: str
    name: str
    message: str
    pointer: str = ""
    severity: str = "warning"
    primary: bool = False
    deliberate: bool = False


class TurnSeen(msgspec.Struct, frozen=True, tag="turn"):
    """What the analysis says of an exchange; None where it is unknown.

    note: why the exchange could not be understood, or "".
    """

    id: str
    session: str
    index: int
    model: str | None = None
    api: str = ""
    status: int | None = None
    aborted: bool = False
    shape: str = ""
    is_break: bool = False
    prompt_tokens: int | None = None
    tokens_exact: bool = False
    rebilled_tokens: int = 0
    reported_read: int | None = None
    read_low: int | None = None
    read_high: int | None = None
    verdict: str = ""
    first_token_ms: float | None = None
    total_ms: float | None = None
    causes: tuple[Cause, ...] = ()
    note: str = ""


class Trouble(msgspec.Struct, frozen=True, tag="trouble"):
    """Something went wrong that lost no exchange (the analysis raised, say). One line."""

    what: str
    message: str


type Event = Ready | Refused | Stored | Lost | TurnSeen | Trouble

_encoder = msgspec.msgpack.Encoder()
_frames = msgspec.msgpack.Decoder(Frame)
_events = msgspec.msgpack.Decoder(Ready | Refused | Stored | Lost | TurnSeen | Trouble)


def pack(message: Frame | Event) -> bytearray:
    """A message with its length in front."""
    buffer = bytearray(_LENGTH.size)
    _encoder.encode_into(message, buffer, _LENGTH.size)
    _LENGTH.pack_into(buffer, 0, len(buffer) - _LENGTH.size)
    return buffer


def read_frames(stream: BinaryIO) -> Iterator[Frame]:
    """Frames until the other side closes. A torn last frame is dropped. Raises ValueError out of step."""
    for payload in _payloads(stream):
        yield _frames.decode(payload)


def read_events(stream: BinaryIO) -> Iterator[Event]:
    """Events until the other side closes. A torn last event is dropped. Raises ValueError out of step."""
    for payload in _payloads(stream):
        yield _events.decode(payload)


def _payloads(stream: BinaryIO) -> Iterator[bytes]:
    while True:
        head = stream.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return
        (length,) = _LENGTH.unpack(head)
        if length > MAX_FRAME:
            raise ValueError(f"a frame of {length} bytes: the pipe is out of step")
        payload = stream.read(length)
        if len(payload) < length:
            return
        yield payload
