"""Without a fixed upstream: chosen by name, refused when nobody configured it, never an open relay."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from .running import RunningProxy, of
from .upstream import Answer, Upstream


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Upstream, RunningProxy]]:
    folder = tmp_path_factory.mktemp("routing")
    with (
        Upstream(lambda _: Answer([b'{"here": 1}'])) as upstream,
        RunningProxy(folder, "--to", f"here={upstream.url}/api") as proxy,
    ):
        yield upstream, proxy


def raw(proxy: RunningProxy, request: bytes) -> bytes:
    """The answer to bytes as they stand."""
    address = urlsplit(proxy.url)
    with socket.create_connection((address.hostname, address.port or 0), 20) as connection:
        connection.sendall(request)
        connection.settimeout(20)
        answer = b""
        while b"\r\n\r\n" not in answer and (data := connection.recv(65536)):
            answer += data
        return answer


def test_named_upstream(named: tuple[Upstream, RunningProxy], client: httpx.Client) -> None:
    upstream, proxy = named
    answer = client.post(f"{proxy.url}/to/here/v1/chat/completions?x=1", json={"model": "m"})
    assert answer.json() == {"here": 1}
    assert upstream.requests[-1].path == "/api/v1/chat/completions?x=1"
    assert upstream.requests[-1].header("host") == f"127.0.0.1:{upstream.port}"


def test_unknown_names_and_paths_are_refused(
    named: tuple[Upstream, RunningProxy], client: httpx.Client
) -> None:
    upstream, proxy = named
    before = len(upstream.requests)
    for path in ("/", "/nowhere", "/to/127.0.0.1/v1/messages"):
        answer = client.post(f"{proxy.url}{path}", json={})
        assert answer.status_code == 404
        assert "prefixguard" in answer.json()["error"]["message"]
    assert len(upstream.requests) == before


def test_no_tunnel_and_no_relay(named: tuple[Upstream, RunningProxy]) -> None:
    upstream, proxy = named
    before = len(upstream.requests)
    target = f"127.0.0.1:{upstream.port}"
    assert raw(proxy, f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()).startswith(
        b"HTTP/1.1 403"
    )
    absolute = f"GET http://{target}/secret HTTP/1.1\r\nHost: {target}\r\n\r\n"
    assert raw(proxy, absolute.encode()).startswith(b"HTTP/1.1 404")
    assert len(upstream.requests) == before


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost", 200),
        ("[::1]", 200),
        ("agent.localhost", 200),
        ("host.docker.internal", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
    ],
)
def test_foreign_host_names_are_refused(
    named: tuple[Upstream, RunningProxy], client: httpx.Client, host: str, status: int
) -> None:
    """A web page can make a browser call us under its own name; it must not get through."""
    _, proxy = named
    port = urlsplit(proxy.url).port
    answer = client.post(f"{proxy.url}/to/here/v1/messages", json={}, headers={"Host": f"{host}:{port}"})
    assert answer.status_code == status


def test_session_header_names_the_session_and_stays_here(
    named: tuple[Upstream, RunningProxy], client: httpx.Client
) -> None:
    upstream, proxy = named
    client.post(
        f"{proxy.url}/to/here/v1/messages",
        json={"model": "m"},
        headers={"x-prefixguard-session": "mine", "x-session-id": "theirs"},
    )
    assert upstream.requests[-1].header("x-prefixguard-session") is None
    assert upstream.requests[-1].header("x-session-id") == "theirs"
    (capture,) = proxy.captures("mine", 1)
    assert capture.headers["x-prefixguard-session"] == "mine"
    assert capture.path == "/api/v1/messages"


def test_side_traffic_passes_and_is_not_recorded(
    named: tuple[Upstream, RunningProxy], client: httpx.Client
) -> None:
    _, proxy = named
    before = proxy.health()
    answer = client.post(f"{proxy.url}/to/here/v1/messages/count_tokens", json={"model": "m"})
    assert answer.json() == {"here": 1}
    after = proxy.health()
    assert after["side_traffic"] == before["side_traffic"] + 1
    assert after["exchanges"] == before["exchanges"]


def test_health_page(named: tuple[Upstream, RunningProxy], client: httpx.Client) -> None:
    _, proxy = named
    page = proxy.health()
    assert page["recorder"]["alive"] is True
    assert page["lost"] == {}
    assert client.get(f"{proxy.url}/prefixguard/other").status_code == 404


def test_events_are_json_lines(named: tuple[Upstream, RunningProxy], client: httpx.Client) -> None:
    _, proxy = named
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    client.post(f"{proxy.url}/to/here/v1/chat/completions", json=body, headers={"x-session-id": "lines"})

    def turn(events: list[dict[str, object]]) -> dict[str, object] | None:
        return next((event for event in of(events, "turn") if event["session"] == "lines"), None)

    found = proxy.wait_for(turn, "turn")
    assert found["index"] == 0
    assert found["status"] == 200
    assert json.dumps(found)
