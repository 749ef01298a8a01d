"""Both sides' headers of an exchange as one document, compressed against those of an earlier exchange."""

from __future__ import annotations

from typing import Any

import msgspec
import zstandard

from prefixguard.exchange import Capture


def document(capture: Capture) -> bytes:
    """Request and response headers as JSON."""
    return msgspec.json.encode([dict(capture.headers), dict(capture.response_headers)])


def parse(document: bytes) -> tuple[dict[str, str], dict[str, str]]:
    """(request headers, response headers) of a document."""
    request, response = msgspec.json.decode(document, type=tuple[dict[str, str], dict[str, str]])
    return request, response


def pack(document: bytes, base: bytes | None = None) -> bytes:
    """Compressed; with `base`, only what is not in it costs anything."""
    return zstandard.ZstdCompressor(level=3, **_dictionary(base)).compress(document)


def unpack(packed: bytes, base: bytes | None = None) -> bytes:
    """What `pack` packed with the same base. Raises zstandard.ZstdError."""
    return zstandard.ZstdDecompressor(**_dictionary(base)).decompress(packed)


def _dictionary(base: bytes | None) -> dict[str, Any]:
    if base is None:
        return {}
    return {"dict_data": zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)}
