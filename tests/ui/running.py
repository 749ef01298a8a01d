"""A real server in this process, and what it takes to talk to it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from prefixguard.analysis import Fold, Options
from prefixguard.reports.html import overview
from prefixguard.rulebook import Rulebook
from prefixguard.ui.app import make_app
from prefixguard.ui.desk import BUDGET, Desk
from prefixguard.ui.feed import Feed
from prefixguard.ui.guard import Gate
from prefixguard.ui.serve import Server, bind
from prefixguard.ui.stream import Hub

KEY = "a-key-for-tests"
TICKET = "a-ticket-for-tests"
RULEBOOK = Rulebook()
OPTIONS = Options.standard(RULEBOOK)


@dataclass(frozen=True)
class Running:
    """A server. url: without a path."""

    url: str
    desk: Desk
    hub: Hub
    client: httpx.Client
    stop: Callable[[], None]
    """Ends it before the block does."""

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def overview(self, since: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/overview?since={since}").raise_for_status().json()
        return found

    def session(self, key: str, since: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/sessions/{key}?since={since}").raise_for_status().json()
        return found


@contextmanager
def running(feed: Feed, budget: int = BUDGET, port: int = 0) -> Iterator[Running]:
    """Serves a feed until the block ends; on a free port where none is said."""
    hub = Hub()
    desk = Desk(feed, lambda: Fold(RULEBOOK, OPTIONS), RULEBOOK.findings, hub, budget)
    started = threading.Event()
    app = make_app(
        desk, hub, Gate.of(KEY, "127.0.0.1", ticket=TICKET), overview([], RULEBOOK.findings, None, "test")
    )
    server = Server(app, hub, started.set)
    listener = bind("127.0.0.1", port)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve([listener])), daemon=True)
    thread.start()
    assert started.wait(20)

    def stop() -> None:
        if thread.is_alive():
            loop.call_soon_threadsafe(server.stop)
            thread.join(20)
        assert not thread.is_alive()

    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {KEY}"}, timeout=30) as client:
        try:
            yield Running(url, desk, hub, client, stop)
        finally:
            stop()
            loop.close()


def wait_until[T](find: Callable[[], T], patience: float = 20.0) -> T:
    """What `find` gives once it gives something."""
    end = time.monotonic() + patience
    while not (found := find()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
    return found
