"""Small readers shared by the formats: tolerant access to JSON that a client may have got wrong."""

from __future__ import annotations

from typing import Any

import msgspec

from prefixguard.prompt import Mark, Parameter
from prefixguard.surrogates import lenient

_fields = lenient(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode)
_array = lenient(msgspec.json.Decoder(list[msgspec.Raw]).decode)
_any = lenient(msgspec.json.Decoder().decode)
_encode = msgspec.json.encode


class Body:
    """The top-level fields of a request or reply, each still as raw bytes."""

    __slots__ = ("fields",)

    def __init__(self, raw: bytes) -> None:
        """Raises msgspec.DecodeError when `raw` is not a JSON object."""
        self.fields: dict[str, msgspec.Raw] = _fields(raw)

    @classmethod
    def of(cls, fields: dict[str, msgspec.Raw]) -> Body:
        """A body that was split already."""
        body = cls.__new__(cls)
        body.fields = fields
        return body

    def get(self, name: str) -> Any:
        """The field's value, or None when it is absent or malformed."""
        raw = self.fields.get(name)
        return None if raw is None else _any(raw)

    def text(self, name: str) -> str | None:
        """The field's value when it is a string."""
        value = self.get(name)
        return value if isinstance(value, str) else None

    def elements(self, name: str) -> list[msgspec.Raw] | None:
        """The raw elements when the field is an array, else None."""
        raw = self.fields.get(name)
        if raw is None or bytes(memoryview(raw)[:1]) != b"[":
            return None
        return _array(raw)

    def parameters(self, names: tuple[str, ...]) -> tuple[Parameter, ...]:
        """The named parameters that are present and not null, as they were sent.

        A dotted name reads one level down: `text.format`.
        """
        found = []
        for name in names:
            top, _, inner = name.partition(".")
            if top not in self.fields:
                continue
            value = self.get(top)
            if inner:
                value = value.get(inner) if isinstance(value, dict) else None
            if value is not None:
                found.append(Parameter(name, "/" + name.replace(".", "/"), _encode(value).decode()))
        return tuple(found)


def decode(raw: msgspec.Raw | bytes) -> Any:
    """A JSON value as plain Python objects."""
    return _any(raw)


def mark_of(block: Any) -> Mark | None:
    """The breakpoint that a block carries: `cache_control`, or OpenAI's `prompt_cache_breakpoint`."""
    if not isinstance(block, dict):
        return None
    control = block.get("cache_control") or block.get("prompt_cache_breakpoint")
    if not isinstance(control, dict):
        return None
    ttl = control.get("ttl")
    return Mark(ttl if isinstance(ttl, str) else None)


def without_mark(block: dict[str, Any]) -> dict[str, Any]:
    """The block without its breakpoint marker: markers are no part of what the model reads."""
    if "cache_control" not in block and "prompt_cache_breakpoint" not in block:
        return block
    return {k: v for k, v in block.items() if k not in ("cache_control", "prompt_cache_breakpoint")}


def string(value: Any) -> str:
    """A string as it is, nothing for None, JSON for anything else."""
    if isinstance(value, str):
        return value
    return "" if value is None else _encode(value).decode()


def joined_text(content: Any) -> str:
    """The texts of a content value, one line each: for tool results made of blocks."""
    if isinstance(content, list):
        texts = [
            string(part.get("text")) if isinstance(part, dict) else string(part)
            for part in content
            if not isinstance(part, dict) or "text" in part
        ]
        return "\n".join(texts)
    return string(content)
