"""What passes the proxy passes unchanged, in both directions."""

from __future__ import annotations

import gzip
import hashlib
import json
import random

import httpx
import pytest

from .running import RunningProxy
from .upstream import Answer, Upstream

NOISE = random.Random(7)
SMALL = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "é ✓ \\u00e9"}], "x": 1.50}
).encode()
LARGE = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": NOISE.randbytes(10**6).hex()}]}
).encode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("kind", ["small", "large", "gzip", "chunked", "chunked-gzip", "empty", "not-json"])
def test_request_body_arrives_as_sent(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client, kind: str
) -> None:
    body = {"large": LARGE, "empty": b"", "not-json": NOISE.randbytes(5000)}.get(kind, SMALL)
    if "gzip" in kind:
        body = gzip.compress(LARGE)
    headers = {"content-encoding": "gzip"} if "gzip" in kind else {}
    content = iter([body[:100], body[100:]]) if "chunked" in kind else body
    answer = client.post(f"{proxy.url}/v1/chat/completions", content=content, headers=headers)
    assert answer.status_code == 200
    arrived = upstream.requests[-1]
    assert digest(arrived.body) == digest(body)
    assert arrived.header("content-encoding") == headers.get("content-encoding")
    assert (arrived.header("transfer-encoding") == "chunked") == ("chunked" in kind)


@pytest.mark.parametrize(
    "kind", ["whole", "large", "gzip", "chunked", "chunked-gzip", "stream", "error", "empty"]
)
def test_response_arrives_as_sent(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client, kind: str
) -> None:
    body = {"large": LARGE, "empty": b"", "stream": b"data: {}\n\ndata: [DONE]\n\n"}.get(kind, SMALL)
    if "gzip" in kind:
        body = gzip.compress(LARGE)
    headers = (
        ("Content-Type", "text/event-stream; charset=utf-8" if kind == "stream" else "application/json"),
        *((("Content-Encoding", "gzip"),) if "gzip" in kind else ()),
        ("X-Odd-Case", "a  b"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("x-request-id", "req_1"),
    )
    upstream.script = lambda _: Answer(
        [body[:1000], body[1000:]] if len(body) > 1000 else [body],
        status=429 if kind == "error" else 200,
        headers=headers,
        chunked="chunked" in kind or kind == "stream",
    )
    with client.stream("POST", f"{proxy.url}/v1/messages", content=SMALL) as answer:
        arrived = b"".join(answer.iter_raw())
    assert answer.status_code == (429 if kind == "error" else 200)
    assert digest(arrived) == digest(body)
    raw = [(name.decode(), value.decode()) for name, value in answer.headers.raw]
    assert raw[: len(headers)] == list(headers)
    assert [name.lower() for name, _ in raw[len(headers) :]] in (["content-length"], ["transfer-encoding"])


def test_request_headers_arrive_in_order_and_case(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client
) -> None:
    sent = [
        ("X-Stainless-Lang", "python"),
        ("authorization", "Bearer sk-test-0123456789abcdef"),
        ("Accept-Encoding", "gzip, br, zstd"),
        ("x-api-key", "key"),
        ("X-Twice", "one"),
        ("X-Twice", "two"),
        ("User-Agent", "Test/1 (é)"),
        ("Accept", "*/*"),
    ]
    request = httpx.Request("POST", f"{proxy.url}/v1/chat/completions?a=%2F&b", content=SMALL)
    request.headers = httpx.Headers(
        [("Host", proxy.url.removeprefix("http://")), *sent, ("Content-Length", str(len(SMALL)))],
        encoding="utf-8",
    )
    client.send(request)
    arrived = upstream.requests[-1]
    assert arrived.line == "POST /v1/chat/completions?a=%2F&b HTTP/1.1"
    expected = [("Host", upstream.url.removeprefix("http://")), *sent, ("Content-Length", str(len(SMALL)))]
    assert [(name, value.encode("latin-1").decode()) for name, value in arrived.headers] == expected


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
def test_other_methods_pass(
    upstream: Upstream, proxy: RunningProxy, client: httpx.Client, method: str
) -> None:
    upstream.script = lambda _: Answer([] if method == "HEAD" else [b"{}"], headers=(("X-A", "b"),))
    answer = client.request(method, f"{proxy.url}/v1/models")
    assert (answer.status_code, answer.headers["x-a"]) == (200, "b")
    assert upstream.requests[-1].line.startswith(method)


def test_connections_are_kept(upstream: Upstream, proxy: RunningProxy, client: httpx.Client) -> None:
    """Twenty requests on one connection, each answered with what it asked."""
    upstream.script = lambda request: Answer([request.body])
    for n in range(20):
        body = json.dumps({"n": n}).encode()
        assert client.post(f"{proxy.url}/v1/chat/completions", content=body).content == body


def test_store_holds_the_same_bytes(upstream: Upstream, proxy: RunningProxy, client: httpx.Client) -> None:
    upstream.script = lambda _: Answer([LARGE], chunked=True)
    for body, headers in ((SMALL, {}), (LARGE, {}), (gzip.compress(LARGE), {"content-encoding": "gzip"})):
        client.post(
            f"{proxy.url}/v1/chat/completions", content=body, headers={"x-session-id": "bytes", **headers}
        )
    captures = proxy.captures("bytes", 3)
    assert [digest(capture.body) for capture in captures] == [digest(SMALL), digest(LARGE), digest(LARGE)]
    assert {digest(capture.response_body) for capture in captures} == {digest(LARGE)}
    assert {capture.status for capture in captures} == {200}
    assert {capture.upstream for capture in captures} == {upstream.url}
