"""HTTP archives (HAR 1.2): what browsers, Playwright, mitmproxy and other proxies save of their traffic.

Bodies are as they were on the wire but for the content encoding, so that
nothing of a prompt is lost. Streams stand there as whole text.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prefixguard.exchange import Capture, Timing
from prefixguard.importers.captures import is_prompt, make_capture, origin_of, seconds
from prefixguard.importers.formats import FormatRule
from prefixguard.importers.records import elements, opened, value_of
from prefixguard.importers.told import Told
from prefixguard.importers.websockets import Message, pairs
from prefixguard.store.encodings import decode

_PSEUDO = ":"
"""HTTP/2 writes method and path as headers that begin so."""


def read(path: Path, rule: FormatRule, told: Told) -> Iterator[Capture]:
    """The requests to models of an archive, in the order in which it has them."""
    with opened(path) as stream:
        whole = stream.read()
    told.producer = _producer(whole[:65536])
    for number, raw in enumerate(elements(whole, ("log", "entries"), told), 1):
        where = f"entry {number}"
        try:
            entry = value_of(raw)
            found = list(_entry(entry, number, rule, told, where))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            told.problem(where, f"not an entry of an archive: {error!r}")
            continue
        yield from found


def _producer(head: bytes) -> str:
    """Who wrote the archive, read from its start."""
    text = head.decode("utf-8", "replace")
    names = []
    for member in ("creator", "browser"):
        at = text.find(f'"{member}"')
        start = text.find("{", at) if at >= 0 else -1
        if start < 0:
            continue
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            continue
        names.append(f"{value.get('name', '')} {value.get('version', '')}".strip())
    return " with ".join(names)


def _entry(
    entry: Mapping[str, Any], number: int, rule: FormatRule, told: Told, where: str
) -> Iterator[Capture]:
    request, response = entry["request"], entry.get("response") or {}
    upstream, target = origin_of(request["url"])
    t = seconds(entry.get("startedDateTime"))
    messages = entry.get("_webSocketMessages")
    if isinstance(messages, list) and messages:
        yield from _socket(entry, messages, upstream, target, number, rule, told)
        return
    body = _text(request.get("postData"))
    if not is_prompt(request.get("method", ""), target, _names(body)):
        told.aside["other entries"] += 1
        return
    if t is None:
        told.problem(where, f"startedDateTime is no moment: {entry.get('startedDateTime')!r}")
        return
    headers = _headers(request.get("headers"))
    lost: tuple[str, ...] = ()
    if body is None:
        told.problem(where, f"{request['url']}: the archive holds no body of this request")
        body, lost = b"{}", ("prompt",)
    body, headers = _plain(body, headers)
    answer = _text(response.get("content"))
    answered = _headers(response.get("headers"))
    content = response.get("content") or {}
    if answer is not None:
        answer, answered = _plain(answer, answered)
        if isinstance(content, dict) and content.get("mimeType"):
            answered["content-type"] = str(content["mimeType"])
    else:
        lost = (*lost, "response")
    status = response.get("status")
    told.took(lost)
    yield make_capture(
        rule.name,
        name=str(number),
        t=t,
        path=target,
        upstream=upstream,
        request=body,
        response=answer,
        status=status if isinstance(status, int) and status >= 100 else None,
        headers=headers,
        response_headers=answered,
        lost=lost if "prompt" in lost else (),
        timing=_timing(entry),
        aborted=bool(response.get("_error")),
        agent=None,
        method=str(request.get("method") or "POST"),
    )


def _socket(
    entry: Mapping[str, Any],
    messages: list[Any],
    upstream: str,
    target: str,
    number: int,
    rule: FormatRule,
    told: Told,
) -> Iterator[Capture]:
    """The requests inside a WebSocket, which Chromium keeps beside its entry."""
    passed = [
        Message(
            str(message.get("data", "")).encode(),
            message.get("type") == "send",
            seconds(message.get("time")) or 0.0,
        )
        for message in messages
        if isinstance(message, dict) and message.get("opcode", 1) == 1
    ]
    origin = upstream.replace("wss://", "https://").replace("ws://", "http://")
    headers = _headers(entry["request"].get("headers"))
    found = 0
    for pair in pairs(passed):
        found += 1
        told.took()
        yield make_capture(
            rule.name, name=f"{number}:{found}", t=pair.t, path=target, upstream=origin, request=pair.request,
            response=pair.response, headers=headers, timing=pair.timing, aborted=pair.aborted,
            transport="websocket",
        )  # fmt: skip
    if not found:
        told.aside["other entries"] += 1


def _text(holder: object) -> bytes | None:
    """The body in a `postData` or `content` object, or None when there is none."""
    if not isinstance(holder, Mapping) or not isinstance(holder.get("text"), str):
        return None
    text: str = holder["text"]
    if holder.get("encoding") == "base64":
        try:
            return base64.b64decode(text, validate=False)
        except binascii.Error:
            return None
    return text.encode("utf-8", "surrogatepass")


def _plain(body: bytes, headers: dict[str, str]) -> tuple[bytes, dict[str, str]]:
    """The body without a content encoding that it may still have, and headers that fit it."""
    encoding = headers.pop("content-encoding", "")
    if not encoding or body.lstrip()[:1] in (b"{", b"[") or body.lstrip()[:5] in (b"data:", b"event"):
        return body, headers
    found = decode(body, encoding)
    if found is None:
        # Some writers put bytes into text one character a byte.
        try:
            found = decode(body.decode("utf-8").encode("latin-1"), encoding)
        except UnicodeError:
            found = None
    return (body if found is None else found), headers


def _names(body: bytes | None) -> tuple[str, ...]:
    if body is None or body.lstrip()[:1] != b"{":
        return ()
    try:
        value = value_of(body)
    except ValueError:
        return ()
    return tuple(value)


def _headers(fields: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict) and isinstance(field.get("name"), str):
            name = field["name"].lower()
            if not name.startswith(_PSEUDO):
                found[name] = str(field.get("value", ""))
    return found


def _timing(entry: Mapping[str, Any]) -> Timing:
    """`wait` runs from the request's last byte to the first of the response, `receive` from there."""
    parts = entry.get("timings") or {}
    wait, receive = _milliseconds(parts.get("wait")), _milliseconds(parts.get("receive"))
    total = _milliseconds(entry.get("time"))
    if wait is not None and receive is not None:
        total = wait + receive
    return Timing(wait, total)


def _milliseconds(value: object) -> float | None:
    """A duration; HAR writes -1 for one that does not apply."""
    return float(value) if isinstance(value, int | float) and value >= 0 else None
