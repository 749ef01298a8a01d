"""Names a change of form: the same content, written with other bytes (PG202 to PG208, PG210)."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import msgspec

from prefixguard.causes.evidence import Catalogue, shortened
from prefixguard.finding import Finding
from prefixguard.prompt import Kind, Segment


def same_content(catalogue: Catalogue, old: Segment, new: Segment, pointer: str) -> Finding:
    """The finding for two segments that are alike but not equal."""
    if old.kind is Kind.MEDIA:
        return catalogue.finding(
            "PG207", "the same URL with another query or signature",
            evidence=f"{_masked(old.media)} became {_masked(new.media)}", pointer=pointer,
        )  # fmt: skip
    if old.loose is not None and old.loose == new.loose:
        return catalogue.finding(
            "PG206", "an id was minted again for the same content",
            evidence=f"{old.call_id!r} became {new.call_id!r}" if old.call_id != new.call_id else "",
            pointer=pointer,
        )  # fmt: skip
    return _text_form(catalogue, old, new, pointer)


def _masked(url: str | None) -> str:
    """A URL without the values of its query: a signature is a credential."""
    base, mark, query = (url or "").partition("?")
    names = "&".join(part.partition("=")[0] + "=…" for part in query.split("&")) if mark else ""
    return base + mark + names


def _text_form(catalogue: Catalogue, old: Segment, new: Segment, pointer: str) -> Finding:
    a, b = (old.json, new.json) if old.json and new.json else (old.text, new.text)
    before, after = _parsed(a), _parsed(b)
    call = old.kind is Kind.TOOL_CALL
    if before is not None and after is not None and _key_order(before) != _key_order(after):
        return catalogue.finding(
            "PG203" if call else "PG202",
            "the arguments of a tool call were written again with keys in another order"
            if call
            else "the same JSON with its keys in another order",
            evidence=f"{_keys(before)} became {_keys(after)}", pointer=pointer,
        )  # fmt: skip
    spaced = (
        before is not None and after is not None and before != after and _squeezed(before) == _squeezed(after)
    )
    if spaced or "".join(a.split()) == "".join(b.split()):
        return catalogue.finding(
            "PG203" if call else "PG204",
            "only white space differs", evidence=_first_difference(a, b), pointer=pointer,
        )  # fmt: skip
    what = "Unicode form" if unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b) else "escapes"
    return catalogue.finding(
        "PG203" if call else "PG205",
        f"only {what} and spacing differ; the decoded text is equal",
        evidence=_first_difference(a, b), pointer=pointer,
    )  # fmt: skip


def _key_order(value: Any, depth: int = 0) -> Any:
    """The keys of a JSON value in their order, without what they hold."""
    if depth > 64:
        return None
    if isinstance(value, dict):
        return [(key, _key_order(item, depth + 1)) for key, item in value.items()]
    return [_key_order(item, depth + 1) for item in value] if isinstance(value, list) else None


def _squeezed(value: Any) -> str:
    """JSON without any white space, that inside its strings included."""
    return "".join(re.sub(r"\\[nrtf]", "", _ordered(value)).split())


def _parsed(text: str | None) -> Any:
    if not text or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _ordered(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _keys(value: Any, depth: int = 0) -> str:
    """The first object whose keys say something, as a list of its keys."""
    if isinstance(value, dict):
        if len(value) > 1 or depth > 6:
            return "{" + ", ".join(list(value)[:8]) + "}"
        return _keys(next(iter(value.values()), ""), depth + 1)
    if isinstance(value, list) and value:
        return _keys(value[0], depth + 1)
    return shortened(str(value), 40)


def _first_difference(a: str, b: str) -> str:
    n = min(len(a), len(b))
    i = next((i for i in range(n) if a[i] != b[i]), n)
    start = max(0, i - 12)
    return f"{a[start : i + 16]!r} became {b[start : i + 16]!r}"


def merged(old: list[Segment], new: list[Segment]) -> bool:
    """Whether neighbours were joined or split, with the same text."""
    if not old or not new or len(old) == len(new):
        return False
    if any(s.kind is not Kind.TEXT for s in (*old, *new)) or len({s.role for s in (*old, *new)}) > 1:
        return False
    return "".join("".join(s.text for s in old).split()) == "".join("".join(s.text for s in new).split())
