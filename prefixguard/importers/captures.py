"""From a record to a capture: what every importer ends with, whatever it read.

A capture is what the store keeps and the analysis reads, so that an imported
file is judged alike whether it is stored first or read directly. What the
format did not keep goes along in headers of our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from prefixguard.exchange import Capture, Exchange, Timing, Transport
from prefixguard.importers.records import encode
from prefixguard.partial import EVENT, LOST, SOURCE, THREAD
from prefixguard.proxy.upstreams import read_upstreams
from prefixguard.secrets import mask_headers, mask_path

SESSION = "x-prefixguard-session"
_JSON = "application/json"
_UNTIMED = Timing()
_BODY_NAMES = ("messages", "contents", "input", "prompt")


def make_capture(
    source: str,
    *,
    name: str,
    t: float,
    path: str,
    upstream: str,
    request: bytes | Mapping[str, Any],
    response: bytes | Mapping[str, Any] | None,
    status: int | None = 200,
    headers: Mapping[str, str] | None = None,
    response_headers: Mapping[str, str] | None = None,
    session: str | None = None,
    thread: str | None = None,
    event: str | None = None,
    lost: Sequence[str] = (),
    timing: Timing = _UNTIMED,
    aborted: bool = False,
    transport: Transport = "http",
    agent: str | None = None,
    method: str = "POST",
) -> Capture:
    """A capture of one request.

    source: the format's name. name: what the format calls the request; equal
    names are the same request. t: seconds since the epoch. lost: see `Told`.
    """
    said = dict(headers or {})
    said[SOURCE] = source
    for header, value in ((SESSION, session), (THREAD, thread), (EVENT, event), (LOST, ", ".join(lost))):
        if value:
            said[header] = _printable(value)
    body = request if isinstance(request, bytes) else encode(request)
    answer = b"" if response is None else response if isinstance(response, bytes) else encode(response)
    digest = blake2b(f"{source}\0{name}\0{t}".encode("utf-8", "replace"), digest_size=12)
    digest.update(body)
    return Capture(
        id=f"{source}-{digest.hexdigest()}",
        t=t,
        method=method,
        path=mask_path(path),
        upstream=mask_path(upstream),
        headers=mask_headers(said),
        body=body,
        status=status,
        response_headers=mask_headers(dict(response_headers or {"content-type": _JSON})),
        response_body=answer,
        timing=timing,
        aborted=aborted,
        transport=transport,
        agent=agent,
    )


def capture_of(exchange: Exchange, number: int) -> Capture:
    """An exchange of a log as a capture; its unknown fields have no place in one."""
    response = exchange.response
    if response is None and exchange.usage is not None:
        response = b'{"usage":%s}' % exchange.usage
    digest = blake2b(f"{number}\0{exchange.t}\0{exchange.path}".encode("utf-8", "replace"), digest_size=12)
    digest.update(exchange.request)
    return Capture(
        id=f"log-{digest.hexdigest()}",
        t=exchange.t,
        method=exchange.method,
        path=exchange.path,
        upstream=exchange.upstream or "",
        headers=exchange.headers,
        body=exchange.request,
        status=exchange.status,
        response_headers={"content-type": _JSON},
        response_body=response or b"",
        timing=exchange.timing,
        aborted=exchange.aborted,
        transport=exchange.transport,
    )


def origin_of(url: str) -> tuple[str, str]:
    """(scheme://host[:port], path with query) of a URL; ("", url) where it names no host."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "", url
    if not parts.scheme or not host:
        return "", url
    host = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}.get(parts.scheme)
    origin = f"{parts.scheme}://{host}" + ("" if port in (None, default) else f":{port}")
    return origin, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def upstream_of(provider: str | None) -> str:
    """The address of a provider that is only named, or ""."""
    return _addresses().get((provider or "").lower(), "")


@cache
def _addresses() -> dict[str, str]:
    return {upstream.name: upstream.url for upstream in read_upstreams().upstream if upstream.url}


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    rules = read_upstreams().record
    return re.compile("|".join(rules.paths)), re.compile("|".join(rules.skip))


def is_prompt(method: str, path: str, members: Iterable[str] = ()) -> bool:
    """Whether a request asks a model to go on with a prompt. members: the names in its body."""
    if method.upper() != "POST":
        return False
    bare = path.partition("?")[0].rstrip("/")
    known, skip = _patterns()
    if known.search(bare):
        return True
    names = set(members)
    return not skip.search(bare) and "model" in names and any(name in names for name in _BODY_NAMES)


def seconds(moment: object) -> float | None:
    """A moment in seconds since the epoch, from ISO 8601 text or a number of seconds to nanoseconds."""
    if isinstance(moment, bool) or moment is None:
        return None
    if isinstance(moment, str):
        text = moment.strip()
        if re.fullmatch(r"\d+(\.\d+)?", text):
            return seconds(float(text) if "." in text else int(text))
        try:
            told = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
        except ValueError:
            return None
        return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
    if isinstance(moment, int | float):
        for scale in (1e9, 1e6, 1e3, 1.0):
            # Moments since 2001 have nine digits of seconds or more.
            if moment >= 1e9 * scale:
                return float(moment / scale)
        return float(moment)
    return None


def _printable(value: str) -> str:
    return " ".join(value.split()).encode("utf-8", "replace").decode()[:512]
