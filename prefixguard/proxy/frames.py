"""What the proxy and its recorder say to each other, over two pipes.

Down (proxy to recorder): one `Frame` per exchange: four lengths, the msgpack
of the frame without its bodies and of how to join the request's, and the two
bodies as they are, less what the recorder has already. Large bodies are never copied in the proxy. Up: the
events, each a length and its msgpack.
"""

from __future__ import annotations

import struct
from collections.abc import Buffer, Iterator
from dataclasses import replace
from typing import BinaryIO

import msgspec

from prefixguard.exchange import Capture
from prefixguard.proxy.repeats import Received, Repeat, Sent

_LENGTH = struct.Struct(">Q")
_LENGTHS = struct.Struct(">QQQQ")
MAX_FRAME = 2**31
"""A longer frame means that the two sides have lost step."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One exchange on its way to the store.

    marks: (bytes of the response body received so far, milliseconds since the
        request's last byte), for the first chunks of a stream, so that the
        recorder can tell when the first token came.
    again: this frame was sent to an earlier recorder that died.
    unknown_api: nobody told us of this path.
    body, came: on the proxy's side, the request's body and the response's in the
        pieces in which it passed; the recorder finds both in the capture.
    """

    capture: Capture
    marks: tuple[tuple[int, float], ...] = ()
    again: bool = False
    unknown_api: bool = False
    body: bytes = b""
    came: tuple[bytes, ...] = ()

    def size(self) -> int:
        """Bytes of both bodies."""
        return len(self.body) + sum(map(len, self.came))


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
    upstream: str | None = None
    uncached_tokens: int | None = None
    written_tokens: int | None = None
    output_tokens: int | None = None
    avoidable_usd: float | None = None


class Trouble(msgspec.Struct, frozen=True, tag="trouble"):
    """Something went wrong that lost no exchange (the analysis raised, say). One line."""

    what: str
    message: str


type Event = Ready | Refused | Stored | Lost | TurnSeen | Trouble

_encoder = msgspec.msgpack.Encoder()
_frames = msgspec.msgpack.Decoder(Frame)
_repeats = msgspec.msgpack.Decoder(Repeat | None)
_events = msgspec.msgpack.Decoder(Ready | Refused | Stored | Lost | TurnSeen | Trouble)


def pack_event(event: Event) -> bytearray:
    """An event with its length in front."""
    buffer = bytearray(_LENGTH.size)
    _encoder.encode_into(event, buffer, _LENGTH.size)
    _LENGTH.pack_into(buffer, 0, len(buffer) - _LENGTH.size)
    return buffer


def pack_frame(frame: Frame, sent: Sent) -> list[Buffer]:
    """A frame as the pieces to write one after the other. Raises what the encoder raises.

    sent: what the recorder at the other end was sent before.
    """
    head = _encoder.encode(msgspec.structs.replace(frame, body=b"", came=()))
    # Only a frame that can be encoded may change what both sides remember.
    repeat, rest = sent.cut(frame.body)
    how = _encoder.encode(repeat)
    lengths = _LENGTHS.pack(len(head), len(how), len(memoryview(rest)), sum(map(len, frame.came)))
    return [lengths + head + how, rest, *frame.came]


def read_frames(stream: BinaryIO) -> Iterator[Frame]:
    """Frames until the other side closes. A torn last frame is dropped. Raises ValueError out of step."""
    received = Received()
    while len(lengths := stream.read(_LENGTHS.size)) == _LENGTHS.size:
        sizes = _LENGTHS.unpack(lengths)
        _check(*sizes)
        pieces = [stream.read(size) for size in sizes]
        if any(len(piece) < size for piece, size in zip(pieces, sizes, strict=True)):
            return
        head, how, rest, answer = pieces
        frame = _frames.decode(head)
        body = received.whole(_repeats.decode(how), rest)
        yield msgspec.structs.replace(frame, capture=replace(frame.capture, body=body, response_body=answer))


def read_events(stream: BinaryIO) -> Iterator[Event]:
    """Events until the other side closes. A torn last event is dropped. Raises ValueError out of step."""
    while len(length := stream.read(_LENGTH.size)) == _LENGTH.size:
        (size,) = _LENGTH.unpack(length)
        _check(size)
        payload = stream.read(size)
        if len(payload) < size:
            return
        yield _events.decode(payload)


def _check(*sizes: int) -> None:
    if max(sizes) > MAX_FRAME:
        raise ValueError(f"a frame of {max(sizes)} bytes: the pipe is out of step")
