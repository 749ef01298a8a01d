"""Flow files of mitmproxy (`mitmdump -w`): the wire as it was, every byte of it.

Read with mitmproxy's own reader, so that old versions' files are taken too;
that needs the extra `proxy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from prefixguard.errors import MissingExtraError
from prefixguard.exchange import Capture, Timing
from prefixguard.importers.captures import is_prompt, make_capture
from prefixguard.importers.formats import FormatRule
from prefixguard.importers.records import opened, value_of
from prefixguard.importers.told import Told
from prefixguard.importers.websockets import Message, pairs
from prefixguard.store.encodings import decode

if TYPE_CHECKING:
    from mitmproxy.http import Headers, HTTPFlow


def read(path: Path, rule: FormatRule, told: Told) -> Iterator[Capture]:
    """The requests to models of a flow file, in its order. Raises MissingExtraError without mitmproxy."""
    try:
        from mitmproxy.exceptions import FlowReadException
        from mitmproxy.http import HTTPFlow
        from mitmproxy.io import FlowReader
    except ImportError as error:
        raise MissingExtraError("import", "proxy") from error
    with opened(path) as stream:
        number = 0
        try:
            for number, flow in enumerate(FlowReader(cast("Any", stream)).stream(), 1):
                if isinstance(flow, HTTPFlow):
                    yield from _flow(flow, number, rule, told)
                else:
                    told.aside["other flows"] += 1
        except (FlowReadException, ValueError, TypeError) as error:
            told.problem(f"flow {number + 1}", f"the file is cut off or damaged here: {error}")


def _flow(flow: HTTPFlow, number: int, rule: FormatRule, told: Told) -> Iterator[Capture]:
    request, response = flow.request, flow.response
    default = {"http": 80, "https": 443}.get(request.scheme)
    upstream = f"{request.scheme}://{request.host}" + ("" if request.port == default else f":{request.port}")
    headers = _plain(request.headers)
    if flow.websocket is not None:
        yield from _socket(flow, upstream, headers, rule, told)
        return
    body = request.raw_content
    if not is_prompt(request.method, request.path, _names(body, headers)):
        told.aside["other flows"] += 1
        return
    lost: tuple[str, ...] = ()
    if body is None:
        told.problem(f"flow {number}", f"{request.path}: its body was streamed and is not in the file")
        body, lost = b"{}", ("prompt",)
    came = response.raw_content if response is not None else None
    told.took(lost)
    yield make_capture(
        rule.name, name=flow.id, t=request.timestamp_start, path=request.path, upstream=upstream,
        request=body, response=came, status=response.status_code if response is not None else None,
        headers=headers, response_headers=_plain(response.headers) if response is not None else {},
        lost=lost, timing=_timing(flow), aborted=flow.error is not None, method=request.method,
    )  # fmt: skip


def _socket(
    flow: HTTPFlow, upstream: str, headers: dict[str, str], rule: FormatRule, told: Told
) -> Iterator[Capture]:
    assert flow.websocket is not None
    passed = (
        Message(message.content, message.from_client, message.timestamp)
        for message in flow.websocket.messages
    )
    found = 0
    for pair in pairs(passed):
        found += 1
        told.took()
        yield make_capture(
            rule.name, name=f"{flow.id}:{found}", t=pair.t, path=flow.request.path, upstream=upstream,
            request=pair.request, response=pair.response, headers=headers, timing=pair.timing,
            aborted=pair.aborted, transport="websocket",
        )  # fmt: skip
    if not found:
        told.aside["other flows"] += 1


def _timing(flow: HTTPFlow) -> Timing:
    sent, response = flow.request.timestamp_end, flow.response
    if sent is None or response is None:
        return Timing()
    end = response.timestamp_end
    # mitmproxy notes when the response's head came; a body follows it at once, but for slow streams.
    return Timing((response.timestamp_start - sent) * 1000, None if end is None else (end - sent) * 1000)


def _names(body: bytes | None, headers: dict[str, str]) -> tuple[str, ...]:
    plain = decode(body, headers.get("content-encoding", "")) if body else None
    if plain is None or plain.lstrip()[:1] != b"{":
        return ()
    try:
        return tuple(value_of(plain))
    except ValueError:
        return ()


def _plain(headers: Headers) -> dict[str, str]:
    """Names in lower case; fields that occur more than once joined as RFC 9110 allows."""
    found: dict[str, str] = {}
    for name, value in headers.fields:
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
