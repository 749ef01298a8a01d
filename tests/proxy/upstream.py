"""A server on loopback that answers as a test tells it, and remembers every byte it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

type Script = Callable[["Request"], "Answer"]


@dataclass(frozen=True)
class Request:
    """What arrived. headers: as they stood on the wire, in order. body: without chunked framing."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass
class Answer:
    """What to send. pieces: the body, one write each; a `threading.Event` waits until it is set; None cuts
    the connection. chunked: with chunked framing, else with a length unless a header says otherwise.
    """

    pieces: list[bytes | threading.Event | None] = field(default_factory=lambda: [b"{}"])
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    chunked: bool = False


class Upstream:
    """Runs in a thread of its own. `with Upstream(script) as upstream: ... upstream.url`."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.sent = 0
        """Body pieces written so far, over all answers."""
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._port = 0
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        async def start() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls, backlog=200)
            self._port = server.sockets[0].getsockname()[1]
            self._listening.set()

        self._loop.run_until_complete(start())
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            async for request in _requests(reader):
                if _is_question(request):
                    await self._answer(Answer(status=404), writer)
                    continue
                self.requests.append(request)
                await self._answer(self.script(request), writer)
        writer.close()

    async def _answer(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        headers = list(answer.headers)
        if answer.chunked:
            headers.append(("Transfer-Encoding", "chunked"))
        elif not any(name.lower() == "content-length" for name, _ in headers):
            length = sum(len(piece) for piece in answer.pieces if isinstance(piece, bytes))
            headers.append(("Content-Length", str(length)))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers)
        writer.write(f"HTTP/1.1 {answer.status} Fine\r\n{head}\r\n".encode("latin-1"))
        for piece in answer.pieces:
            if piece is None:
                await writer.drain()
                writer.transport.abort()
                raise ConnectionResetError
            if isinstance(piece, threading.Event):
                while not piece.is_set():  # noqa: ASYNC110  set by another thread
                    await asyncio.sleep(0.005)
                continue
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if answer.chunked else piece)
            await writer.drain()
            self.sent += 1
        if answer.chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


def _is_question(request: Request) -> bool:
    """The recorder asks local servers what engine they are; that this one is none is not part of a test."""
    return request.line.startswith("GET") and (request.header("user-agent") or "").startswith("Python-urllib")


async def _requests(reader: asyncio.StreamReader) -> AsyncIterator[Request]:
    while head := await reader.readuntil(b"\r\n\r\n"):
        line, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        headers = tuple((name, value.strip()) for name, _, value in (h.partition(":") for h in rest))
        fields = {name.lower(): value for name, value in headers}
        if fields.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
        else:
            body = await reader.readexactly(int(fields.get("content-length", 0)))
        yield Request(line, headers, body)
