"""Upstreams behind the proxy that a machine must use."""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from prefixguard.proxy.upstreams import parse_target
from prefixguard.proxy.via import Via, via_of

from .certificates import make_authority
from .running import RunningProxy, of
from .upstream import Answer, Upstream


@contextlib.contextmanager
def tunnelling_proxy(port: int, asked: list[bytes]) -> Iterator[str]:
    """A proxy that leads every tunnel to one port of this machine."""

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(65536)
                asked.append(head)
                client.sendall(b"HTTP/1.1 200 Fine\r\n\r\n")
                server = socket.create_connection(("127.0.0.1", port))
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_requests_take_the_way_that_the_environment_names(tmp_path: Path, client: httpx.Client) -> None:
    """The upstream's name means nothing here: only the machine's proxy can have led there."""
    asked: list[bytes] = []
    with (
        Upstream(lambda _: Answer([b'{"here": 1}'])) as upstream,
        tunnelling_proxy(upstream.port, asked) as way,
        RunningProxy(
            tmp_path,
            *("--upstream", "http://model.invalid:8000"),
            environ={"HTTP_PROXY": f"http://user:p%40ss@{way}", "http_proxy": f"http://user:p%40ss@{way}"},
        ) as proxy,
    ):
        answer = client.post(f"{proxy.url}/v1/messages", json={"model": "m"}, headers={"x-session-id": "via"})
        assert answer.json() == {"here": 1}
        (capture,) = proxy.captures("via", 1)
    assert asked[0].startswith(b"CONNECT model.invalid:8000 HTTP/1.1\r\n")
    assert base64.b64encode(b"user:p@ss") in asked[0]
    assert upstream.requests[0].header("host") == "model.invalid:8000"
    assert upstream.requests[0].header("proxy-authorization") is None
    assert capture.upstream == "http://model.invalid:8000"


def test_tunnels_take_the_way_that_the_environment_names(tmp_path: Path) -> None:
    """Both what is opened and what is not: the hosts' names lead nowhere without the machine's proxy."""
    asked: list[bytes] = []
    authority, tls = make_authority(tmp_path)
    with Upstream(lambda _: Answer([b'{"here": 1}']), tls=tls) as upstream:
        way = tunnelling_proxy(upstream.port, asked)
        with (
            way as address,
            RunningProxy(
                tmp_path,
                *("--mode", "forward", "--open-host", "model.invalid"),
                environ={
                    "HTTPS_PROXY": f"http://user:p%40ss@{address}",
                    "https_proxy": f"http://user:p%40ss@{address}",
                    "SSL_CERT_FILE": str(authority),
                },
            ) as proxy,
        ):
            ours = of(proxy.events, "listening")[0]["environment"]["SSL_CERT_FILE"]
            for host, roots in (("model.invalid", ours), ("other.invalid", str(authority))):
                context = ssl.create_default_context(cafile=roots)
                with httpx.Client(proxy=proxy.url, verify=context, trust_env=False, timeout=60) as client:
                    for _ in range(2):
                        answer = client.post(
                            f"https://{host}/v1/messages", json={"model": "m"}, headers={"x-session-id": host}
                        )
                        assert answer.text == '{"here": 1}'
            assert len(proxy.captures("model.invalid", 2)) == 2
    heads = [head.split(b" ")[1] for head in asked]
    assert heads == [b"model.invalid:443", b"other.invalid:443"]
    assert all(base64.b64encode(b"user:p@ss") in head for head in asked)


@pytest.mark.parametrize(
    ("url", "environ", "via"),
    [
        ("https://api.openai.com", {"HTTPS_PROXY": "http://p:3128"}, Via("http", "p", 3128)),
        ("https://api.openai.com", {"https_proxy": "p:3128", "HTTPS_PROXY": "q:1"}, Via("http", "p", 3128)),
        ("https://api.openai.com", {"HTTPS_PROXY": "https://p"}, Via("https", "p", 443)),
        ("https://api.openai.com", {"HTTP_PROXY": "http://p:3128"}, None),
        ("https://api.openai.com", {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": ".openai.com"}, None),
        ("https://api.openai.com", {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "*"}, None),
        ("https://api.openai.com", {"HTTPS_PROXY": "socks5://p:1080"}, None),
        ("http://127.0.0.1:8080", {"http_proxy": "http://p:3128"}, None),
        ("http://localhost:8080", {"http_proxy": "http://p:3128"}, None),
        ("https://api.openai.com", {}, None),
    ],
)
def test_via(url: str, environ: dict[str, str], via: Via | None) -> None:
    assert via_of(parse_target(url), environ) == via
