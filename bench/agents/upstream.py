"""The scripted upstream: a model server on loopback for real agents, and the only way out that they have.

It answers HTTP on its port, and `CONNECT` for the hosts of known model APIs,
whose certificates it signs itself. Every other tunnel is refused, so that an
agent sees a machine without a network. What it received is kept byte for byte.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import re
import socket
import socketserver
import ssl
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from bench.agents import websocket
from bench.agents.authority import make_authority
from bench.agents.cache import Cache
from bench.agents.replies import reply, response_events
from bench.agents.script import Api, Json, next_action

HOSTS = (
    "api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "api.mistral.ai",
    "openrouter.ai", "dashscope.aliyuncs.com", "chatgpt.com",
)  # fmt: skip
_PATHS: tuple[tuple[str, Api], ...] = (
    (r"/chat/completions$", "chat"),
    (r"/responses(/compact)?$", "responses"),
    (r"/messages$", "messages"),
    (r":(stream)?[gG]enerateContent$", "gemini"),
)
MODELS = ("gpt-4.1", "gpt-4o-mini", "gpt-5.2-codex", "claude-sonnet-4-5", "gemini-2.5-pro")


@dataclass(frozen=True)
class Received:
    """One request as it arrived. body: with its content encoding. host: "" for the plain port."""

    t: float
    method: str
    host: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    api: Api | None
    answer: bytes = b""
    status: int = 200
    prompt: Json = field(default_factory=dict)
    """The whole request as JSON, {} where it is none; links to earlier responses are resolved."""

    @property
    def digest(self) -> str:
        """Of the body, as the proxy should have left it."""
        return hashlib.sha256(self.body).hexdigest()

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass
class Upstream:
    """`with Upstream(folder, project) as upstream: ...`; it runs in threads of its own.

    folder: for its certificates. project: the folder that the agents work in.
    port: 0 for any free one.
    """

    folder: Path
    project: Path
    port: int = 0
    received: list[Received] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Hosts to which somebody wanted a tunnel that is not given."""
    cache: Cache = field(default_factory=Cache)
    replies: int = 0
    linked: websocket.Linked = field(default_factory=websocket.Linked)

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.authority, self.tls = make_authority(self.folder, HOSTS)
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def forget(self) -> None:
        """Begin anew: nothing received, nothing cached."""
        with self.lock:
            self.received.clear()
            self.refused.clear()
            self.cache = Cache()
            self.replies = 0

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", self.port), _Handler)
        self._server.upstream = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def identity(self) -> str:
        """Ids are counted, so that two runs can be compared."""
        with self.lock:
            self.replies += 1
            return f"bench{self.replies:015d}"

    def answer(
        self, method: str, host: str, path: str, body: Json, api: Api | None
    ) -> tuple[int, str, list[bytes]]:
        """Status, content type and pieces."""
        bare = path.partition("?")[0].rstrip("/")
        if api is not None and method == "POST":
            model = str(body.get("model") or _model_in(bare))
            with self.lock:
                usage = self.cache.take(api, model, body, host)
            stream = bool(body.get("stream")) or "stream" in bare.rpartition(":")[2].lower()
            action = next_action(api, body, str(self.project))
            kind, pieces = reply(api, model, action, usage, self.identity(), stream=stream)
            return 200, kind, pieces
        if method == "POST" and re.search(r"/count_tokens$|:countTokens$", bare):
            total = len(json.dumps(body)) // 4
            return (
                200,
                "application/json",
                [json.dumps({"input_tokens": total, "totalTokens": total}).encode()],
            )
        if method == "GET" and bare.endswith("/models"):
            models = [{"id": name, "object": "model", "created": 1, "owned_by": "bench"} for name in MODELS]
            return 200, "application/json", [json.dumps({"object": "list", "data": models}).encode()]
        return (
            404,
            "application/json",
            [b'{"error": {"type": "not_found", "message": "the script has no such page"}}'],
        )


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64
    upstream: Upstream


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._talk(self.rfile, self.wfile, "")

    def _talk(self, source: Any, sink: Any, host: str) -> None:
        upstream = cast(_Server, self.server).upstream
        while line := source.readline(65536).decode("latin-1").strip():
            method, path, _ = line.split(" ")
            headers = tuple(_headers(source))
            if method == "CONNECT":
                to, _, port = path.rpartition(":")
                self._tunnel(to, int(port), sink)
                return
            named = {name.lower(): value for name, value in headers}
            if named.get("expect", "").lower() == "100-continue":
                sink.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = _body(source, named)
            if path.startswith("http://"):
                host, _, path = path.removeprefix("http://").partition("/")
                path = "/" + path
                if not host.startswith(("127.0.0.1", "localhost")):
                    upstream.refused.append(host)
                    sink.write(b"HTTP/1.1 502 No network\r\ncontent-length: 0\r\n\r\n")
                    continue
            api = _api(path)
            if named.get("upgrade", "").lower() == "websocket" and api == "responses":
                self._websocket(source, sink, host, path, headers)
                return
            parsed = _json(body, named.get("content-encoding", ""))
            status, kind, pieces = (
                upstream.answer(method, host, path, parsed, api)
                if "upgrade" not in named
                else (426, "text/plain", [b""])
            )
            got = Received(
                time.time(), method, host, path, headers, body, api, b"".join(pieces), status, parsed
            )
            with upstream.lock:
                upstream.received.append(got)
            head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {kind}\r\n"
            if method == "HEAD":
                sink.write(f"{head}content-length: 0\r\n\r\n".encode())
                continue
            sink.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
            for piece in (*pieces, b""):
                if piece or piece is pieces[-1]:
                    sink.write(b"%x\r\n%s\r\n" % (len(piece), piece) if piece else b"")
            sink.write(b"0\r\n\r\n")

    def _websocket(
        self, source: Any, sink: Any, host: str, path: str, headers: tuple[tuple[str, str], ...]
    ) -> None:
        upstream = cast(_Server, self.server).upstream
        named = {name.lower(): value for name, value in headers}
        sink.write(websocket.accept(named["sec-websocket-key"]))
        for message in websocket.messages(source, sink):
            body = _json(message, "")
            whole = upstream.linked.whole(body)
            model = str(body.get("model"))
            with upstream.lock:
                usage = upstream.cache.take("responses", model, whole)
            action = next_action("responses", whole, str(upstream.project))
            events = response_events(model, action, usage, upstream.identity())
            if websocket.nothing(body):
                events = [events[0], events[-1]]
                events[-1]["response"]["output"] = []
            upstream.linked.remember(whole, events[-1]["response"])
            answer = [websocket.encoded(event) for event in events]
            said = b"\n".join(answer)
            got = Received(
                time.time(), "WEBSOCKET", host, path, headers, message, "responses", said, 200, whole
            )
            with upstream.lock:
                upstream.received.append(got)
            for event in answer:
                sink.write(websocket.frame(event))

    def _tunnel(self, host: str, port: int, sink: Any) -> None:
        upstream = cast(_Server, self.server).upstream
        if host in ("127.0.0.1", "localhost"):
            self._lead(port, sink)
            return
        if host not in HOSTS:
            upstream.refused.append(host)
            sink.write(b"HTTP/1.1 502 No network\r\ncontent-length: 0\r\n\r\n")
            return
        sink.write(b"HTTP/1.1 200 Fine\r\n\r\n")
        with upstream.tls.wrap_socket(self.connection, server_side=True) as inside:
            inside.settimeout(None)
            with (
                inside.makefile("rb") as source,
                inside.makefile("wb", buffering=0) as answers,
                contextlib.suppress(ssl.SSLError),
            ):
                self._talk(source, answers, host)

    def _lead(self, port: int, sink: Any) -> None:
        """Some clients go through a proxy even to their own machine."""
        with socket.create_connection(("127.0.0.1", port)) as other:
            sink.write(b"HTTP/1.1 200 Fine\r\n\r\n")
            threading.Thread(target=_pump, args=(other, self.connection), daemon=True).start()
            _pump(self.connection, other)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _headers(source: BinaryIO) -> list[tuple[str, str]]:
    found = []
    while line := source.readline(1 << 20).decode("latin-1").strip():
        name, _, value = line.partition(":")
        found.append((name, value.strip()))
    return found


def _body(source: BinaryIO, named: dict[str, str]) -> bytes:
    if named.get("transfer-encoding", "").lower() != "chunked":
        return source.read(int(named.get("content-length") or 0))
    body = b""
    while size := int(source.readline().split(b";")[0], 16):
        body += source.read(size)
        source.readline()
    source.readline()
    return body


def _api(path: str) -> Api | None:
    bare = path.partition("?")[0].rstrip("/")
    return next((api for pattern, api in _PATHS if re.search(pattern, bare)), None)


def _model_in(path: str) -> str:
    found = re.search(r"/models/([^/:]+)", path)
    return found[1] if found else "model"


def _json(body: bytes, encoding: str) -> Json:
    try:
        if encoding == "gzip":
            body = gzip.decompress(body)
        elif encoding == "zstd":
            import zstandard

            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        elif encoding == "br":
            import brotli  # type: ignore[import-untyped]

            body = brotli.decompress(body)
        found = json.loads(body)
    except (ValueError, OSError):
        return {}
    return found if isinstance(found, dict) else {}
