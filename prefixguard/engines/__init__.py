"""Real model servers: attach to one by its URL, or launch one; render prompts as it does.

engine = attach("http://127.0.0.1:8080")
rendered = engine.render(exchange)      # token ids, or None

with launch("model.gguf") as server:
    ...                                 # server.url, server.engine
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from prefixguard.errors import ServerError
from prefixguard.exchange import Exchange, Rendered

if TYPE_CHECKING:
    from prefixguard.engines.local import LaunchedServer as LaunchedServer
    from prefixguard.engines.local import launch as launch


class Engine(Protocol):
    """A running server that can show how it reads a prompt.

    name: kind and build, for reports. problem: why the last `render` gave None.
    """

    kind: str
    name: str
    url: str
    problem: str | None

    def render(self, exchange: Exchange) -> Rendered | None:
        """The ids that the server evaluated for an exchange, or None. Never raises ServerError."""
        ...


def attach(url: str, *, key: str | None = None, timeout: float = 10.0) -> Engine:
    """The engine that answers at `url`. Raises ServerError when no known kind of server does.

    key: the server's API key, where it has one. timeout: seconds for each question to it.
    """
    from prefixguard.engines.client import JsonClient
    from prefixguard.engines.llamacpp import LlamaCpp
    from prefixguard.engines.sglang import Sglang, server_info
    from prefixguard.engines.vllm import Vllm, is_vllm

    try:
        return LlamaCpp(url, key=key, timeout=timeout)
    except ServerError:
        client = JsonClient(url, key=key, timeout=timeout)
        if is_vllm(client):
            return Vllm(url, key=key, timeout=timeout)
        if server_info(client) is not None:
            return Sglang(url, key=key, timeout=timeout)
        raise


def render_exchanges(
    exchanges: Iterable[Exchange], url: str, *, key: str | None = None
) -> Iterator[Exchange]:
    """The exchanges, each with `rendered` set where the server at `url` can say it. Raises ServerError."""
    engine = attach(url, key=key)
    for exchange in exchanges:
        yield exchange if exchange.rendered else replace(exchange, rendered=engine.render(exchange))


def __getattr__(name: str) -> object:
    """Loads what launches servers only when it is asked for: a recorder only attaches."""
    if name in ("launch", "LaunchedServer"):
        from prefixguard.engines import local

        return getattr(local, name)
    raise AttributeError(name)
