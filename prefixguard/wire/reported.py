"""What a reply says beside its text: usage and ids, read off an exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from prefixguard.exchange import Exchange
from prefixguard.wire.blocks import decode
from prefixguard.wire.decoder import Reading
from prefixguard.wire.usage import DecodedUsage, decode_usage


def usage_of(exchange: Exchange, reading: Reading | None) -> DecodedUsage | None:
    """The exchange's usage; a usage object in place of a response comes first."""
    if exchange.usage is not None or reading is None:
        body = _plain(exchange.usage or exchange.response)
    else:
        body = fields_of(reading.response)
    return decode_usage(body) if body else None


def fields_of(value: Any) -> dict[str, Any]:
    """A parsed JSON object, or {} for anything else."""
    return value if isinstance(value, dict) else {}


def _plain(raw: bytes | None) -> dict[str, Any]:
    try:
        return fields_of(decode(raw)) if raw is not None else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def response_ids(response: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids by which later requests may refer to this reply: its own and its conversation's."""
    conversation = response.get("conversation")
    names = [response.get("id"), conversation.get("id") if isinstance(conversation, dict) else conversation]
    return tuple(name for name in names if isinstance(name, str) and name)
