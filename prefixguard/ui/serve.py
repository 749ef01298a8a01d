"""Runs the application on one address until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn

from prefixguard.errors import InputError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from prefixguard.ui.stream import Hub

_GRACE = 2
"""Seconds that a request may still take when the server ends."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises InputError when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(f"--listen {host}:{port}: cannot listen there: {error.strerror or error}") from error
    listener.setblocking(False)
    return listener


class Server(uvicorn.Server):
    """A server of one application. on_started: called when pages can be had."""

    def __init__(self, app: Starlette, hub: Hub, on_started: Callable[[], None] = lambda: None) -> None:
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=_GRACE,
            limit_concurrency=256,
        )
        super().__init__(config)
        self._hub = hub
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    def stop(self) -> None:
        """Ends serving, when what is asked is answered; a second time, at once. Called in the loop."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._hub.close()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are caught below: to be told to end is no error here."""
        yield


def serve(server: Server, listener: socket.socket) -> None:
    """Serves until SIGINT or SIGTERM."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.stop)
        await server.serve([listener])

    asyncio.run(run())
