"""Which upstreams are engines that can show how they read a prompt: asked once, and remembered.

The recorder hands every exchange through here before it is analysed, so that
the analysis of traffic to a local server is exact. Only servers on this machine
or in a private network are asked; nobody else's server gets a request of ours.
"""

from __future__ import annotations

import ipaddress
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import replace

from prefixguard.engines import Engine
from prefixguard.errors import ServerError
from prefixguard.exchange import Exchange

_PATIENCE = 5.0
"""Seconds for one question; a server that is slower is left alone for a while."""
_ASK_AGAIN = 60.0


def _llamacpp(url: str, *, timeout: float) -> Engine:
    """Only llama.cpp: vLLM does not show the ids of its replies, and prompts alone say too little."""
    from prefixguard.engines.llamacpp import LlamaCpp

    return LlamaCpp(url, timeout=timeout)


class Upstreams:
    """Renders exchanges through the engines that answered them. Not for use by several threads at once."""

    def __init__(
        self,
        attach: Callable[..., Engine] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._attach = attach or _llamacpp
        self._clock = clock
        self._engines: dict[str, Engine] = {}
        self._silent: dict[str, float] = {}

    def render(self, exchange: Exchange) -> Exchange:
        """The exchange, with `rendered` set where its upstream can say it. Never raises ServerError."""
        if exchange.rendered is not None or exchange.upstream is None or not _succeeded(exchange):
            return exchange
        engine = self._engine(exchange.upstream)
        rendered = engine.render(exchange) if engine is not None else None
        return exchange if rendered is None else replace(exchange, rendered=rendered)

    def _engine(self, url: str) -> Engine | None:
        found = self._engines.get(url)
        if found is not None or not is_near(url):
            return found
        asked = self._silent.get(url)
        if asked is not None and self._clock() - asked < _ASK_AGAIN:
            return None
        try:
            found = self._engines[url] = self._attach(url, timeout=_PATIENCE)
        except ServerError:
            self._silent[url] = self._clock()
        return found


def is_near(url: str) -> bool:
    """Whether a URL names this machine or a private network: by its address, or by a name without a dot."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host != "" and ("." not in host or host.endswith((".local", ".internal", ".lan")))


def _succeeded(exchange: Exchange) -> bool:
    return exchange.status is not None and exchange.status < 400
