"""Tells open pages what is new: server-sent events with ids, so that a page that lost its line goes on.

An event says what changed and carries no prompt; pages ask for the rest. One
that was away for longer than is remembered is told to load everything anew.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

REMEMBERED: Final = 512
"""Events that are kept for pages that come back."""
_WAITING: Final = 256
"""Events that may wait for a page that does not read."""
HEARTBEAT: Final = 10.0
"""Seconds of silence after which a line is sent all the same, so that a dead connection can be told."""
MOST_PAGES: Final = 32


@dataclass(frozen=True, slots=True)
class Event:
    """number: counts from 1. kind: the event's name. data: one line of JSON."""

    number: int
    kind: str
    data: bytes


class Hub:
    """Passes events on to the pages that listen. `publish` may be called from any thread."""

    def __init__(self) -> None:
        self.run = secrets.token_hex(4)
        """Tells this run's event ids from those of another, which mean nothing here."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._past: deque[Event] = deque(maxlen=REMEMBERED)
        self._number = 0
        self._pages: set[asyncio.Queue[Event | None]] = set()
        self._closed = False

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Names the loop that the pages are served from."""
        self._loop = loop

    def publish(self, kind: str, data: bytes) -> None:
        """Tells every page. Nothing is told before there is a loop: no page was there to hear it."""
        if self._loop is None or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._pass_on, kind, data)

    def _pass_on(self, kind: str, data: bytes) -> None:
        self._number += 1
        event = Event(self._number, kind, data)
        self._past.append(event)
        for page in tuple(self._pages):
            if page.full():
                # It reads too slowly: its line ends, it comes back and loads anew.
                self._pages.discard(page)
                while not page.empty():
                    page.get_nowait()
                page.put_nowait(None)
            else:
                page.put_nowait(event)

    @property
    def is_full(self) -> bool:
        """Whether no further page may listen."""
        return len(self._pages) >= MOST_PAGES

    def close(self) -> None:
        """Ends every page's line, so that the server can end."""
        self._closed = True
        for page in tuple(self._pages):
            if page.full():
                page.get_nowait()
            page.put_nowait(None)

    def id_of(self, number: int) -> str:
        """An event's id, as pages give it back."""
        return f"{self.run}.{number}"

    def missed(self, last: str) -> list[Event] | None:
        """The events behind the id `last`; None where they are not known, so that all must be loaded."""
        run, _, text = last.partition(".")
        if run != self.run or not text.isdecimal():
            return None
        number = int(text)
        oldest = self._past[0].number if self._past else self._number + 1
        if number > self._number or number + 1 < oldest:
            return None
        return [event for event in self._past if event.number > number]

    async def follow(self, last: str | None) -> AsyncIterator[bytes]:
        """The lines of one page's stream, from what it missed on.

        last: the id of the event that it saw last; None for a page that is new.
        The first event is `hello`; its data is `true` where the page has to load
        everything, because it is new or was away too long.
        """
        page: asyncio.Queue[Event | None] = asyncio.Queue(_WAITING + 1)
        missed = self.missed(last) if last else None
        at = self._number
        self._pages.add(page)
        try:
            yield b"retry: 1000\n\n" + _lines(
                self.id_of(missed[0].number - 1 if missed else at),
                "hello",
                b"true" if missed is None else b"false",
            )
            for event in missed or ():
                yield _lines(self.id_of(event.number), event.kind, event.data)
            while not self._closed:
                try:
                    event_ = await asyncio.wait_for(page.get(), HEARTBEAT)
                except TimeoutError:
                    yield b":\n\n"
                    continue
                if event_ is None:
                    return
                yield _lines(self.id_of(event_.number), event_.kind, event_.data)
        finally:
            self._pages.discard(page)


def _lines(identity: str, kind: str, data: bytes) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (identity.encode(), kind.encode(), data)
