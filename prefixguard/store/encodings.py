"""Takes the content encoding off a body, where that is possible without losing a byte of what it holds."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import zstandard

MAX_DECODED = 256 * 1024 * 1024
"""Bodies that unpack to more are kept as they came: they are no prompts, and memory is finite."""

_STEP = 4096


def decode(body: bytes, content_encoding: str, aborted: bool = False) -> bytes | None:
    """The body without its content encoding, or None when it cannot be taken off.

    content_encoding: the header's value; several encodings are taken off from
    the last to the first. aborted: a stream that was cut off is decoded as far
    as it came.
    """
    names = [name.strip().lower() for name in content_encoding.split(",")]
    for name in reversed([name for name in names if name not in ("", "identity")]):
        decoder = _DECODERS.get(name)
        if decoder is None:
            return None
        try:
            decoded = decoder(body, aborted)
        except (zlib.error, zstandard.ZstdError, _BrotliError, EOFError, ValueError):
            return None
        if decoded is None or len(decoded) > MAX_DECODED:
            return None
        body = decoded
    return body


def _zlib(body: bytes, aborted: bool, window: int) -> bytes | None:
    parts: list[bytes] = []
    room = MAX_DECODED + 1
    rest = body
    while rest:
        # A gzip body may have several members, one after the other.
        decoder = zlib.decompressobj(window)
        parts.append(decoder.decompress(rest, room))
        room -= len(parts[-1])
        if room <= 0 or not (decoder.eof or aborted):
            return None
        rest = decoder.unused_data
    return b"".join(parts)


def _gzip(body: bytes, aborted: bool) -> bytes | None:
    return _zlib(body, aborted, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes, aborted: bool) -> bytes | None:
    try:
        return _zlib(body, aborted, zlib.MAX_WBITS)
    except zlib.error:
        # Some senders leave the zlib frame out.
        return _zlib(body, aborted, -zlib.MAX_WBITS)


def _zstd(body: bytes, aborted: bool) -> bytes | None:
    parts: list[bytes] = []
    size = position = 0
    decoder = None
    while position < len(body):
        if decoder is None or decoder.eof:
            decoder = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        # In small steps, because a few bytes may unpack to very many.
        part = decoder.decompress(body[position : position + _STEP])
        position = min(position + _STEP, len(body)) - len(decoder.unused_data)
        parts.append(part)
        size += len(part)
        if size > MAX_DECODED:
            return None
    return b"".join(parts) if decoder is None or decoder.eof or aborted else None


def _brotli(body: bytes, aborted: bool) -> bytes | None:
    if _Brotli is None:
        return None
    decoder = _Brotli()
    parts: list[bytes] = []
    size = 0
    for position in range(0, len(body), _STEP):
        parts.append(decoder.process(body[position : position + _STEP]))
        size += len(parts[-1])
        if size > MAX_DECODED:
            return None
    return b"".join(parts) if not body or decoder.is_finished() or aborted else None


class _NoBrotliError(Exception):
    """Stands for brotli's error where brotli is not installed."""


try:
    # Not a dependency of the base package: whoever receives such a body through
    # the proxy has it, because mitmproxy needs it.
    import brotli  # type: ignore[import-untyped, import-not-found, unused-ignore]

    _Brotli = brotli.Decompressor
    _BrotliError: type[Exception] = brotli.error
except ImportError:
    _Brotli = None
    _BrotliError = _NoBrotliError

_DECODERS: dict[str, Callable[[bytes, bool], bytes | None]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
    "br": _brotli,
}
