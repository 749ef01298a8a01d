"""A server of our own, attached: what is launched is ended, whatever happens in between."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

from prefixguard.engines import Engine
from prefixguard.engines.process import ServerProcess


class Launched[E: Engine]:
    """Use it as a context manager, or call `close`.

    engine: the server, attached. log: its output.
    """

    def __init__(self, engine: E, process: ServerProcess) -> None:
        self.engine = engine
        self.url = engine.url
        self.log = process.log
        self._process = process

    def close(self) -> None:
        """Ends the server and what it started. Safe to call twice."""
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


def free_port() -> int:
    """A loopback port that nobody listens on now; another process may still take it first."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
