"""Usage figures of tracing conventions, told as the provider's API would have told them.

The conventions count cached tokens inside the input; some writers do not, and
then the parts are larger than the whole. What was not told stays out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BESIDE = ("anthropic",)
"""Providers whose own API counts cached tokens beside the input."""


def usage_of(told: Mapping[str, Any], provider: str) -> dict[str, Any] | None:
    """A usage object from `input`, `output`, `read`, `written`, `written_5m`, `written_1h`.

    None where `input` was not told.
    """
    total, output = _count(told, "input"), _count(told, "output")
    read, written = _count(told, "read"), _count(told, "written")
    if total is None:
        return None
    cached = (read or 0) + (written or 0)
    uncached = total - cached if cached <= total else total
    found: dict[str, Any] = {}
    if any(name in provider for name in _BESIDE):
        found["input_tokens"] = uncached
        if read is not None:
            found["cache_read_input_tokens"] = read
        if written is not None:
            found["cache_creation_input_tokens"] = written
            by_lifetime = {
                f"ephemeral_{ttl}_input_tokens": count
                for ttl in ("5m", "1h")
                if (count := _count(told, f"written_{ttl}")) is not None
            }
            if by_lifetime:
                found["cache_creation"] = by_lifetime
        if output is not None:
            found["output_tokens"] = output
        return found
    found["prompt_tokens"] = uncached + cached
    if output is not None:
        found["completion_tokens"] = output
    details = {}
    if read is not None:
        details["cached_tokens"] = read
    if written is not None:
        details["cache_write_tokens"] = written
    if details:
        found["prompt_tokens_details"] = details
    return found


def _count(told: Mapping[str, Any], name: str) -> int | None:
    value = told.get(name)
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
