"""A WebSocket passes message by message, and its requests are recorded with their answers."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Message, Request, TextMessage
from wsproto.utilities import RemoteProtocolError

from .running import RunningProxy


class Socket:
    """One end of a WebSocket over a plain socket."""

    def __init__(self, connection: socket.socket, kind: ConnectionType) -> None:
        self._socket = connection
        self._protocol = WSConnection(kind)
        connection.settimeout(30)

    def send(self, event: object) -> None:
        self._socket.sendall(self._protocol.send(event))  # type: ignore[arg-type]

    def events(self) -> Iterator[object]:
        while True:
            yield from self._protocol.events()
            data = self._socket.recv(65536)
            if not data:
                return
            self._protocol.receive_data(data)

    def messages(self) -> Iterator[str | bytes]:
        whole: str | bytes | None = None
        for event in self.events():
            if isinstance(event, CloseConnection):
                return
            if isinstance(event, Message):
                whole = event.data if whole is None else whole + event.data  # type: ignore[operator]
                if event.message_finished:
                    yield whole
                    whole = None


def serve(listener: socket.socket, received: list[str | bytes]) -> None:
    """Answers each request with three messages, as the Responses API does; echoes what is no request."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            end = Socket(connection, ConnectionType.SERVER)
            try:
                next(event for event in end.events() if isinstance(event, Request))
            except (RemoteProtocolError, StopIteration):
                # The recorder asks local servers what engine they are; this one is none.
                connection.close()
                continue
            end.send(AcceptConnection())
            for message in end.messages():
                received.append(message)
                if isinstance(message, bytes):
                    end.send(BytesMessage(data=message))
                    continue
                asked = json.loads(message)
                if asked.get("type") != "response.create":
                    end.send(TextMessage(data=message))
                    continue
                response = {"id": f"r{len(received)}", "object": "response", "output": []}
                for kind in ("response.created", "response.in_progress", "response.completed"):
                    end.send(TextMessage(data=json.dumps({"type": kind, "response": response})))
            connection.close()


@pytest.fixture(scope="module")
def socket_proxy(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunningProxy, list[str | bytes]]]:
    received: list[str | bytes] = []
    folder: Path = tmp_path_factory.mktemp("websocket")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, received), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with RunningProxy(folder, "--upstream", url) as proxy:
            yield proxy, received


def connect(proxy: RunningProxy, path: str, session: str) -> tuple[Socket, socket.socket]:
    address = urlsplit(proxy.url)
    connection = socket.create_connection((address.hostname, address.port or 0), 30)
    end = Socket(connection, ConnectionType.CLIENT)
    end.send(Request(host=address.netloc, target=path, extra_headers=[(b"x-session-id", session.encode())]))
    for event in end.events():
        if isinstance(event, AcceptConnection):
            return end, connection
    raise AssertionError("not accepted")


def test_messages_pass_unchanged(socket_proxy: tuple[RunningProxy, list[str | bytes]]) -> None:
    proxy, received = socket_proxy
    end, connection = connect(proxy, "/v1/realtime", "echo")
    messages = end.messages()
    large = base64.b64encode(hashlib.shake_256(b"x").digest(300_000)).decode()
    for message in ("short", json.dumps({"type": "other", "audio": large}), b"\x00\xff" * 1000):
        text = message if isinstance(message, bytes) else json.dumps({"m": message})
        end.send(BytesMessage(data=text) if isinstance(text, bytes) else TextMessage(data=text))
        assert next(messages) == text
        assert received[-1] == text
    end.send(CloseConnection(code=1000))
    connection.close()
    assert proxy.health()["exchanges"] == 0


def test_requests_inside_are_recorded(socket_proxy: tuple[RunningProxy, list[str | bytes]]) -> None:
    proxy, _ = socket_proxy
    end, connection = connect(proxy, "/v1/responses", "pairs")
    messages = end.messages()
    for n in range(2):
        request = {
            "type": "response.create",
            "model": "gpt-5.2",
            "input": [{"role": "user", "content": f"q{n}"}],
        }
        end.send(TextMessage(data=json.dumps(request)))
        kinds = [json.loads(next(messages))["type"] for _ in range(3)]
        assert kinds == ["response.created", "response.in_progress", "response.completed"]
    # Left without an answer: the connection is closed first.
    end.send(TextMessage(data=json.dumps({"type": "response.append", "input": []})))
    next(messages)
    end.send(CloseConnection(code=1000))
    connection.close()
    first, second, cut = proxy.captures("pairs", 3)
    assert [c.transport for c in (first, second, cut)] == ["websocket"] * 3
    assert json.loads(first.body)["input"][0]["content"] == "q0"
    assert json.loads(second.body)["input"][0]["content"] == "q1"
    assert [json.loads(line)["type"] for line in second.response_body.splitlines()][
        -1
    ] == "response.completed"
    assert (first.aborted, second.aborted, cut.aborted) == (False, False, True)
    assert first.status == 200
