"""A server that hangs up on a connection which it had kept open: the agent must not notice."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from .running import RunningProxy

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@dataclass
class Dropping:
    """Answers the first request of each connection; cuts it, unanswered, when the next one has come.

    That is how a request looks from outside that crosses the server's closing
    of the connection. never: answers no request at all.
    """

    never: bool = False
    answered: list[bytes] = field(default_factory=list)
    dropped: list[bytes] = field(default_factory=list)
    port: int = 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[str]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
            yield f"http://127.0.0.1:{self.port}"

    def _serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, ValueError):
            stream = client.makefile("rb")
            first = _request(stream)
            if first.startswith(b"GET"):
                client.sendall(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n")
                return
            if self.never:
                self.dropped.append(first)
                return
            self.answered.append(first)
            client.sendall(b"HTTP/1.1 200 Fine\r\ncontent-length: 11\r\n\r\n" + b'{"here": 1}')
            self.dropped.append(_request(stream))


def _request(stream) -> bytes:  # type: ignore[no-untyped-def]
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            raise ValueError
        head += line
    lengths = [line for line in head.lower().splitlines() if line.startswith(b"content-length:")]
    return head + stream.read(int(lengths[0].split(b":")[1]) if lengths else 0)


@pytest.fixture
def server() -> Dropping:
    return Dropping()


def test_a_request_that_crosses_the_closing_goes_again(
    server: Dropping, tmp_path: Path, client: httpx.Client
) -> None:
    with server.listening() as url, RunningProxy(tmp_path, "--upstream", url) as proxy:
        headers = {"x-session-id": "crossing"}
        for _ in range(3):
            answer = client.post(f"{proxy.url}/v1/chat/completions", json=BODY, headers=headers)
            assert (answer.status_code, answer.json()) == (200, {"here": 1})
        captures = proxy.captures("crossing", 3)
        again = proxy.health()["sent_again"]
    assert [capture.status for capture in captures] == [200] * 3
    assert len(server.dropped) == again == 2
    # What went out a second time is what went out first, and it is recorded once.
    assert set(server.dropped) <= set(server.answered)
    assert json.loads(server.answered[-1].partition(b"\r\n\r\n")[2]) == BODY


def test_a_server_that_dies_of_a_request_is_not_asked_again(
    server: Dropping, tmp_path: Path, client: httpx.Client
) -> None:
    server.never = True
    with server.listening() as url, RunningProxy(tmp_path, "--upstream", url) as proxy:
        assert client.post(f"{proxy.url}/v1/chat/completions", json=BODY).status_code == 502
        assert proxy.health()["sent_again"] == 0
    assert len(server.dropped) == 1
