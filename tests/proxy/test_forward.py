"""Forward mode: known hosts are opened and recorded, all others pass as tunnels that nobody looks into."""

from __future__ import annotations

import ssl
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from .certificates import make_authority
from .running import RunningProxy, of
from .upstream import Answer, Upstream


@dataclass
class Forward:
    upstream: Upstream
    proxy: RunningProxy
    authority: Path
    environment: dict[str, str]

    def client(self, roots: str) -> httpx.Client:
        """A client that goes through the proxy and trusts one file of roots."""
        context = ssl.create_default_context(cafile=roots)
        return httpx.Client(
            proxy=self.environment["HTTPS_PROXY"], verify=context, trust_env=False, timeout=60
        )


@pytest.fixture(scope="module")
def forward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forward]:
    folder = tmp_path_factory.mktemp("forward")
    authority, context = make_authority(folder)
    environ = {"SSL_CERT_FILE": str(authority)}
    options = ("--mode", "forward", "--open-host", "localhost")
    with (
        Upstream(lambda _: Answer([b'{"through": 1}']), tls=context) as upstream,
        RunningProxy(folder, *options, environ=environ) as proxy,
    ):
        environment = of(proxy.events, "listening")[0]["environment"]
        yield Forward(upstream, proxy, authority, environment)


def test_a_known_host_is_opened_and_recorded(forward: Forward) -> None:
    url = f"https://localhost:{forward.upstream.port}/v1/messages"
    headers = {"x-session-id": "opened", "authorization": "Bearer sk-forward-123456"}
    with forward.client(forward.environment["SSL_CERT_FILE"]) as client:
        answer = client.post(url, json={"model": "m"}, headers=headers)
    assert answer.json() == {"through": 1}
    assert forward.upstream.requests[-1].header("host") == f"localhost:{forward.upstream.port}"
    assert forward.upstream.requests[-1].header("authorization") == "Bearer sk-forward-123456"
    (capture,) = forward.proxy.captures("opened", 1)
    assert capture.upstream == f"https://localhost:{forward.upstream.port}"
    assert capture.path == "/v1/messages"
    assert "sk-forward" not in repr(capture)


def test_its_certificate_is_ours(forward: Forward) -> None:
    """Without our authority among its roots, a client refuses: the connection was opened by the proxy."""
    url = f"https://localhost:{forward.upstream.port}/v1/messages"
    with (
        forward.client(str(forward.authority)) as client,
        pytest.raises(httpx.ConnectError, match="certificate"),
    ):
        client.post(url, json={})


def test_another_host_passes_untouched(forward: Forward) -> None:
    """Its own certificate arrives, so that nobody can have looked inside."""
    before = forward.proxy.health()
    url = f"https://127.0.0.1:{forward.upstream.port}/v1/messages"
    with forward.client(str(forward.authority)) as client:
        answer = client.post(url, json={"model": "m"})
    assert answer.json() == {"through": 1}
    after = forward.proxy.health()
    assert after["exchanges"] == before["exchanges"]


def test_other_traffic_of_a_known_host_is_not_recorded(forward: Forward) -> None:
    before = forward.proxy.health()
    with forward.client(forward.environment["SSL_CERT_FILE"]) as client:
        answer = client.post(f"https://localhost:{forward.upstream.port}/telemetry/batch", content=b"x" * 10)
    assert answer.status_code == 200
    after = forward.proxy.health()
    assert (after["exchanges"], after["unknown_api"]) == (before["exchanges"], before["unknown_api"])


def test_streams_are_not_held_back(forward: Forward) -> None:
    gate = threading.Event()
    headers = (("Content-Type", "text/event-stream"),)
    forward.upstream.script = lambda _: Answer(
        [b"data: 1\n\n", gate, b"data: 2\n\n"], headers=headers, chunked=True
    )
    url = f"https://localhost:{forward.upstream.port}/v1/responses"
    with (
        forward.client(forward.environment["SSL_CERT_FILE"]) as client,
        client.stream("POST", url, json={"model": "m"}) as answer,
    ):
        chunks = answer.iter_raw()
        assert next(chunks) == b"data: 1\n\n"
        gate.set()
        assert b"".join(chunks) == b"data: 2\n\n"


def test_bundle_holds_the_roots_and_ours(forward: Forward) -> None:
    bundle = Path(forward.environment["SSL_CERT_FILE"])
    own = Path(forward.environment["NODE_EXTRA_CA_CERTS"])
    content = bundle.read_text()
    assert forward.authority.read_text().strip() in content
    assert own.read_text().strip() in content
    assert "127.0.0.1" in forward.environment["NO_PROXY"].split(",")
    key = own.with_name("mitmproxy-ca.pem")
    assert stat.S_IMODE(key.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(key.parent.stat().st_mode) & 0o077 == 0


def test_base_urls_work_beside_it(forward: Forward, client: httpx.Client) -> None:
    assert client.get(f"{forward.proxy.url}/prefixguard/health").status_code == 200
