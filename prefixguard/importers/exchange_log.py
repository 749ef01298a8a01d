"""Reads and writes exchange logs: `prefixguard-exchange/1`, one exchange a line.

The door between the record and other tools: `prefixguard export` writes such
logs, and every reading command takes one in place of a recorded session. The
request stands in its line as the very bytes that were sent.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import sys
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import zstandard

from prefixguard.errors import InputError
from prefixguard.exchange import Exchange, Rendered, Timing
from prefixguard.secrets import mask_headers, mask_path

STDIN = "-"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_NO_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")
_NULL = b"null"

type _Line = dict[str, msgspec.Raw]

_read_line = msgspec.json.Decoder(dict[str, msgspec.Raw])
_read_raw = msgspec.json.Decoder(msgspec.Raw)
_read_any = msgspec.json.Decoder()


class _TimingFields(msgspec.Struct):
    first_token_ms: float | None = None
    total_ms: float | None = None


class _RenderedFields(msgspec.Struct):
    engine: str
    prompt: list[int]
    reply: list[int] | None = None


class _Fields(msgspec.Struct, kw_only=True):
    """The fields of a line that are read as values; bodies stay raw."""

    t: float
    path: str
    headers: dict[str, Any] | None = None
    status: int | None = 200
    upstream: str | None = None
    method: str | None = "POST"
    timing: _TimingFields | None = None
    aborted: bool | None = False
    transport: str | None = "http"
    rendered: _RenderedFields | None = None
    request_base64: str | None = None
    """The request where it is no JSON, which no line could hold as it is."""


_VALUES = frozenset(_Fields.__struct_fields__)
_BODIES = frozenset(("request", "response", "usage"))


def read_log(path: str | Path) -> Iterator[Exchange]:
    """The exchanges of a log, one after the other, as the file has them.

    path: a file, also a gzip or zstd one, or "-" for standard input. Raises
    InputError "file:line: what" at the first line that is no exchange, and
    when the file cannot be read or holds none.
    """
    name = "standard input" if str(path) == STDIN else str(path)
    number = 0
    empty = True
    try:
        with _opened(path) as stream:
            for number, line in enumerate(stream, 1):
                if line.strip(b" \t\r\n\x00\xef\xbb\xbf"):
                    empty = False
                    yield parse_line(line.removeprefix(b"\xef\xbb\xbf"), name, number)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from error
    except (EOFError, zstandard.ZstdError) as error:
        raise InputError(
            f"{name}:{number + 1}: the compressed file is damaged or cut off: {error}"
        ) from error
    if empty:
        raise InputError(
            f"{name}: holds no exchange; expected one JSON object a line with t, path and request"
        )


def parse_line(line: bytes, name: str, number: int) -> Exchange:
    """One line as an exchange. name, number: for the message of InputError, "name:number: what"."""
    where = f"{name}:{number}"
    raw = _members(line, where)
    for needed in ("t", "path", "request"):
        if needed not in raw and not (needed == "request" and "request_base64" in raw):
            raise InputError(
                f"{where}: an exchange needs {needed!r} and this line has none; fields: {_some(raw)}"
            )
    known = b",".join([b'"%s":%s' % (key.encode(), bytes(raw[key])) for key in raw if key in _VALUES])
    try:
        fields = msgspec.json.decode(b"{%s}" % known, type=_Fields)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: {error}") from error
    if fields.transport not in ("http", "websocket", None):
        raise InputError(f'{where}: transport is "http" or "websocket", not {fields.transport!r}')
    headers = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in (fields.headers or {}).items()
    }
    return Exchange(
        t=fields.t,
        path=mask_path(fields.path),
        request=_request(raw, fields, where),
        headers=mask_headers(headers),
        response=_body(raw, "response"),
        usage=_body(raw, "usage"),
        status=fields.status,
        upstream=None if fields.upstream is None else mask_path(fields.upstream),
        method=fields.method or "POST",
        timing=Timing(fields.timing.first_token_ms, fields.timing.total_ms) if fields.timing else Timing(),
        aborted=bool(fields.aborted),
        transport="websocket" if fields.transport == "websocket" else "http",
        rendered=_rendered(fields.rendered, where),
        extra={key: bytes(value) for key, value in raw.items() if key not in _VALUES and key not in _BODIES},
    )


def write_log(exchanges: Iterable[Exchange], stream: IO[bytes]) -> int:
    """Writes the exchanges, a line each; how many that were. The stream is not closed.

    A request's JSON is copied byte for byte; only line ends between its parts
    become spaces, because a line is all there is.
    """
    count = 0
    for exchange in exchanges:
        stream.write(format_line(exchange))
        count += 1
    return count


def format_line(exchange: Exchange) -> bytes:
    """One exchange as a line of a log, with its line end."""
    line: dict[str, Any] = {"t": exchange.t, "path": exchange.path, "method": exchange.method}
    line["headers"] = dict(exchange.headers)
    request = _as_json(exchange.request)
    if request is None:
        line["request"] = None
        line["request_base64"] = base64.b64encode(exchange.request).decode("ascii")
    else:
        line["request"] = request
    # A response that is no JSON cannot be a response object; the reader of a log would not miss it.
    line["response"] = None if exchange.response is None else _as_json(exchange.response)
    if exchange.usage is not None:
        line["usage"] = _as_json(exchange.usage)
    line["status"] = exchange.status
    line["upstream"] = exchange.upstream
    line["timing"] = {"first_token_ms": exchange.timing.first_token_ms, "total_ms": exchange.timing.total_ms}
    line["aborted"] = exchange.aborted
    line["transport"] = exchange.transport
    if exchange.rendered is not None:
        reply = exchange.rendered.reply
        line["rendered"] = {
            "engine": exchange.rendered.engine,
            "prompt": exchange.rendered.prompt.tolist(),
            "reply": None if reply is None else reply.tolist(),
        }
    for key, value in exchange.extra.items():
        line.setdefault(key, _as_json(value))
    return msgspec.json.encode(line) + b"\n"


def _members(line: bytes, where: str) -> _Line:
    try:
        return _read_line.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        first = error
    # Some writers leave half of a surrogate pair behind when they cut text. Python's own reader takes it.
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"{where}: not one JSON object: {first}") from first
    if not isinstance(value, dict):
        raise InputError(f"{where}: not one JSON object: {first}")
    return {key: msgspec.Raw(json.dumps(member).encode("ascii")) for key, member in value.items()}


def _some(raw: _Line) -> str:
    names = list(raw)
    return (", ".join(names[:8]) + (", ..." if len(names) > 8 else "")) or "none"


def _request(raw: _Line, fields: _Fields, where: str) -> bytes:
    if fields.request_base64 is not None:
        try:
            return base64.b64decode(fields.request_base64, validate=True)
        except binascii.Error as error:
            raise InputError(f"{where}: request_base64: {error}") from error
    request = bytes(raw["request"])
    if request == _NULL:
        raise InputError(f"{where}: request is null; an exchange needs the body that was sent")
    return request


def _body(raw: _Line, name: str) -> bytes | None:
    value = raw.get(name)
    if value is None:
        return None
    body = bytes(value)
    return None if body == _NULL else body


def _rendered(fields: _RenderedFields | None, where: str) -> Rendered | None:
    if fields is None:
        return None
    try:
        reply = None if fields.reply is None else array("i", fields.reply)
        return Rendered(fields.engine, array("i", fields.prompt), reply)
    except OverflowError as error:
        raise InputError(f"{where}: rendered: a token id is out of range") from error


def _as_json(body: bytes) -> msgspec.Raw | None:
    """The body as it can stand in a line; None when it is no JSON, or null, which would say there is none."""
    try:
        _read_raw.decode(body)
        body.decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    # Inside a JSON string no line end can stand, so that this changes none.
    line = body.strip(b" \t\r\n").translate(_NO_LINE_ENDS)
    return None if line == _NULL else msgspec.Raw(line)


@contextmanager
def _opened(path: str | Path) -> Iterator[Iterable[bytes]]:
    """The lines of a file, decompressed where its first bytes say so."""
    if str(path) == STDIN:
        stdin = sys.stdin.buffer
        # What stands in for standard input in a test cannot look ahead.
        yield _decompressed(stdin if isinstance(stdin, io.BufferedReader) else io.BytesIO(stdin.read()))
        return
    with Path(path).open("rb") as stream:
        yield _decompressed(stream)


def _decompressed(stream: io.BufferedReader | io.BytesIO) -> Iterable[bytes]:
    start = (stream.peek(4) if isinstance(stream, io.BufferedReader) else stream.getvalue())[:4]
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=stream)
    return _zstd_lines(stream) if start == _ZSTD else stream


def _zstd_lines(stream: IO[bytes]) -> Iterator[bytes]:
    # The library's own stream reader takes a file that was cut off for a short one.
    decoder = zstandard.ZstdDecompressor().decompressobj()
    begun: list[bytes] = []
    while chunk := stream.read(1 << 16):
        while chunk:
            if decoder.eof:
                decoder = zstandard.ZstdDecompressor().decompressobj()
            first, *others = decoder.decompress(chunk).split(b"\n")
            chunk = decoder.unused_data
            begun.append(first)
            for other in others:
                yield b"".join(begun)
                begun = [other]
    if not decoder.eof:
        raise EOFError("it ends too early")
    yield b"".join(begun)
