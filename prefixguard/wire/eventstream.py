"""Amazon's binary event stream, as Bedrock's `converse-stream` sends it.

Each message: total length (4 bytes), headers length (4), prelude CRC (4),
headers, payload, message CRC (4); all big-endian. Source: AWS SDK developer
guide, "Event stream encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from prefixguard.wire.blocks import decode

_STRING = 7
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


def events(body: bytes) -> Iterator[dict[str, Any]]:
    """Each whole message as {event type: payload}; a cut-off tail is left out."""
    at = 0
    while at + 16 <= len(body):
        total, header_length = struct.unpack_from(">II", body, at)
        if total < 16 or at + total > len(body) or header_length > total - 16:
            return
        headers = _headers(body[at + 12 : at + 12 + header_length])
        payload = body[at + 12 + header_length : at + total - 4]
        at += total
        name = headers.get(":event-type")
        if not name:
            continue
        try:
            value = decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            yield {name: value}


def _headers(block: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(block):
        length = block[at]
        name = block[at + 1 : at + 1 + length].decode("utf-8", "replace")
        at += 1 + length
        if at >= len(block):
            break
        kind = block[at]
        at += 1
        if kind in _FIXED:
            at += _FIXED[kind]
            continue
        if at + 2 > len(block):
            break
        (size,) = struct.unpack_from(">H", block, at)
        if kind == _STRING:
            found[name] = block[at + 2 : at + 2 + size].decode("utf-8", "replace")
        at += 2 + size
    return found
