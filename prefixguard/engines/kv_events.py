"""Listens to the events of vLLM's block cache over ZMQ: what is stored, thrown out, cleared.

Where a server publishes them is asked of the server itself. Needs the extra
`engines`; without it, or where nothing is published, there is nothing to hear.
"""

from __future__ import annotations

import importlib.util
import time
import urllib.parse
from typing import Any

from prefixguard.engines.client import JsonClient, is_loopback
from prefixguard.errors import ServerError
from prefixguard.trial.ledger import Event, read_batch

_FIRST_MS, _QUIET_MS = 100, 20
"""How long an event may be behind the answer that it belongs to, and behind another event."""
_JOIN_MS = 2000
_SUBSCRIBED_MS = 50


class KvEvents:
    """A subscription to one publisher. Raises ServerError when it cannot be had.

    endpoint: as vLLM's `--kv-events-config` has it. A server that publishes at
    a wildcard (`tcp://*:5557`) waits for subscribers; one with a host in its
    endpoint connects to a subscriber that listens there: then we listen.
    """

    def __init__(self, endpoint: str, host: str = "127.0.0.1", topic: str = "") -> None:
        if importlib.util.find_spec("zmq") is None:
            raise ServerError(
                "the server publishes its cache's events; install prefixguard[engines] to hear them"
            )
        import zmq

        self._zmq: Any = zmq
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._next: int | None = None
        self.lost = 0
        try:
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.setsockopt(zmq.RCVHWM, 0)
            self._socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
            self._join(endpoint, host)
        except ServerError:
            self.close()
            raise
        except zmq.ZMQError as error:
            self.close()
            raise ServerError(f"the events of the cache at {endpoint} cannot be heard: {error}") from error

    def _join(self, endpoint: str, host: str) -> None:
        """Connects or listens, and waits for the other side, so that no event is missed."""
        zmq = self._zmq
        monitor = self._socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        try:
            if "*" in endpoint or "::" in endpoint:
                self._socket.connect(endpoint.replace("*", host).replace("[::]", host))
            elif endpoint.startswith("ipc://"):
                self._socket.connect(endpoint)
            elif "://" not in endpoint or is_loopback(urllib.parse.urlsplit(endpoint).hostname or ""):
                self._socket.bind(endpoint)
            else:
                raise ServerError(
                    f"the server sends its cache's events to {endpoint}; we listen on this machine alone"
                )
            if not monitor.poll(_JOIN_MS):
                raise ServerError(f"nobody publishes the events of a cache at {endpoint}")
        finally:
            self._socket.disable_monitor()
        # The subscription travels behind the handshake; one that comes in is only served while we look.
        self._socket.poll(_SUBSCRIBED_MS)
        time.sleep(_SUBSCRIBED_MS / 1000)

    def heard(self, *, wait: bool = True) -> tuple[Event, ...]:
        """What came since the last call. wait: for the events of an answer that has just come."""
        found: list[Event] = []
        patience = _FIRST_MS if wait else 0
        while self._socket.poll(patience):
            frames = self._socket.recv_multipart()
            patience = _QUIET_MS if wait else 0
            if len(frames) != 3:
                continue
            number = int.from_bytes(frames[1], "big")
            if self._next is not None and number > self._next:
                self.lost += number - self._next
            self._next = number + 1
            try:
                found += read_batch(frames[2])
            except ValueError:
                self.lost += 1
        return tuple(found)

    def close(self) -> None:
        """Ends the subscription. Safe to call twice."""
        self._context.destroy(linger=0)

    def __del__(self) -> None:
        if getattr(self, "_socket", None) is not None and not self._socket.closed:
            self.close()


def subscribe(client: JsonClient, endpoint: str | None = None) -> KvEvents | None:
    """A subscription to the server's events; None when it says that it publishes none, or does not say.

    endpoint: where it publishes, for versions that do not say. Raises
    ServerError when it publishes and cannot be heard.
    """
    host = urllib.parse.urlsplit(client.url).hostname or "127.0.0.1"
    topic = ""
    if endpoint is None:
        try:
            sources = client.get("/kv_event_sources")
        except ServerError:
            return None
        source = next(iter(sources.values()), None) if isinstance(sources, dict) else None
        if not isinstance(source, dict) or source.get("publisher") != "zmq":
            return None
        if not source.get("enable_kv_cache_events", True) or not isinstance(source.get("endpoint"), str):
            return None
        endpoint, topic = source["endpoint"], str(source.get("topic") or "")
    return KvEvents(endpoint, host, topic)
