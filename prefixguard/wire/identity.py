"""Builds segments: the two identities of each kind of block, in one place.

`exact` is what a byte-exact server compares, `alike` is the same content
however it is written: keys sorted, JSON in strings parsed, white space
collapsed, Unicode NFC, minted ids left out, URLs without their query. Clocks
and numbers stay in `alike`: two turns that differ in a clock are not alike.
"""

from __future__ import annotations

import unicodedata
from typing import Any
from urllib.parse import urlsplit

import msgspec
from xxhash import xxh3_128_digest

from prefixguard.prompt import Kind, Mark, Role, Segment, Shape

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode

_SEPARATOR = "\x1f"


def digest(*parts: str) -> bytes:
    """16-byte digest of a sequence of texts."""
    return xxh3_128_digest(_SEPARATOR.join(parts).encode("utf-8", "surrogatepass"))


def compact(value: Any) -> str:
    """JSON without white space, keys in the order they came in."""
    return _encode(value).decode()


def plain_text(text: str) -> str:
    """A text with white space collapsed and Unicode in NFC."""
    text = " ".join(text.split())
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def canonical(value: Any) -> str:
    """JSON with keys sorted, JSON inside strings parsed, texts plain: equal for alike values."""
    return _encode_sorted(_canonical(value, 0)).decode()


def _canonical(value: Any, depth: int) -> Any:
    if depth > 64:
        return compact(value)
    if isinstance(value, str):
        parsed = _json_in(value)
        return plain_text(value) if parsed is None else _canonical(parsed, depth + 1)
    if isinstance(value, dict):
        return {key: _canonical(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item, depth + 1) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def canonical_schema(value: Any) -> Any:
    """A JSON Schema with its sets (`required`, `enum`) in one order, however it was written."""
    if isinstance(value, dict):
        return {
            key: sorted(item, key=str)
            if key in ("required", "enum") and isinstance(item, list)
            else canonical_schema(item)
            for key, item in value.items()
        }
    return [canonical_schema(item) for item in value] if isinstance(value, list) else value


def _json_in(text: str) -> Any | None:
    """The object or array that a string holds as JSON, or None."""
    head = text.lstrip()[:1]
    if head not in ("{", "["):
        return None
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _alike_text(text: str) -> str:
    parsed = _json_in(text)
    return plain_text(text) if parsed is None else canonical(parsed)


def text_segment(
    text: str,
    role: Role,
    pointer: str,
    *,
    label: str | None = None,
    shape: Shape = "blocks",
    mark: Mark | None = None,
    kind: Kind = Kind.TEXT,
) -> Segment:
    """A block of text. `label` is the role as written, where an API knows more roles than four."""
    return Segment(
        kind, role, pointer, text,
        exact=digest(kind.value, label or role, text),
        alike=digest(kind.value, role, _alike_text(text)),
        shape=shape, mark=mark,
    )  # fmt: skip


def tool_segment(definition: Any, pointer: str, *, name: str | None, mark: Mark | None = None) -> Segment:
    """A tool definition, as the compact JSON that the client sent, markers removed."""
    written = compact(definition)
    return Segment(
        Kind.TOOL, "system", pointer, written,
        exact=digest("tool", written), alike=digest("tool", canonical(canonical_schema(definition))),
        shape="object", name=name, json=written, mark=mark,
    )  # fmt: skip


def call_segment(
    name: str,
    arguments: Any,
    pointer: str,
    *,
    call_id: str | None,
    mark: Mark | None = None,
    kind_label: str = "call",
) -> Segment:
    """A tool call. `arguments` is the string that the client sent, or the parsed input object."""
    written = arguments if isinstance(arguments, str) else compact(arguments)
    parsed = _json_in(written)
    same = plain_text(written) if parsed is None else canonical(parsed)
    return Segment(
        Kind.TOOL_CALL, "assistant", pointer, f"{name}({written})",
        exact=digest(kind_label, name, written, call_id or ""),
        alike=digest(kind_label, name, same),
        loose=digest(kind_label, name, written),
        shape="object", name=name, call_id=call_id, json=written, mark=mark,
    )  # fmt: skip


def result_segment(
    text: str,
    pointer: str,
    *,
    call_id: str | None,
    error: bool = False,
    shape: Shape = "blocks",
    mark: Mark | None = None,
    structured: Any = None,
) -> Segment:
    """A tool result. `structured` is the value that `text` writes down, where the API takes JSON."""
    flag = "error" if error else ""
    same = _alike_text(text) if structured is None else canonical(structured)
    return Segment(
        Kind.TOOL_RESULT, "tool", pointer, text,
        exact=digest("result", flag, text, call_id or ""),
        alike=digest("result", flag, same),
        loose=digest("result", flag, text),
        shape=shape, call_id=call_id, mark=mark, json=None if structured is None else compact(structured),
    )  # fmt: skip


def reasoning_segment(text: str, pointer: str, *, sealed: str = "", mark: Mark | None = None) -> Segment:
    """Reasoning that is sent back. `sealed` is its signature or encrypted form."""
    return Segment(
        Kind.REASONING, "assistant", pointer, text or "[encrypted reasoning]",
        exact=digest("reasoning", text, sealed),
        alike=digest("reasoning", plain_text(text) if text else sealed),
        mark=mark,
    )  # fmt: skip


def media_segment(
    source: str,
    role: Role,
    pointer: str,
    *,
    media_type: str = "image",
    detail: str = "",
    mark: Mark | None = None,
) -> Segment:
    """An image, a sound or a file: by the digest of its bytes, or by its URL.

    `source` is base64 data, a `data:` URL, another URL, or a file id. Base64 is
    never kept and never tokenized.
    """
    if source.startswith(("http://", "https://")):
        url = urlsplit(source)
        written, same, text = source, f"{url.netloc}{url.path}", f"[{media_type} {source}]"
        loose: bytes | None = digest("media", media_type, same, detail)
    else:
        written = same = xxh3_128_digest(source.encode("utf-8", "surrogatepass")).hex()
        text, loose = f"[{media_type} {written[:12]}, {len(source) * 3 // 4:,} bytes]", None
    return Segment(
        Kind.MEDIA, role, pointer, text,
        exact=digest("media", media_type, written, detail),
        alike=digest("media", media_type, same, detail),
        loose=loose, name=media_type, media=written, mark=mark,
    )  # fmt: skip


def other_segment(block: Any, role: Role, pointer: str, *, mark: Mark | None = None) -> Segment:
    """A block of an unknown type: compared as JSON, never interpreted."""
    written = compact(block)
    return Segment(
        Kind.OTHER, role, pointer, written,
        exact=digest("other", role, written), alike=digest("other", role, canonical(block)),
        shape="object", json=written, mark=mark,
    )  # fmt: skip
