"""Puts imported captures into the record, analysed as they come, as the proxy's recorder does.

A request that is there already is left as it is, so that a file may be
imported again after it has grown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prefixguard.importers.told import Told
from prefixguard.proxy.analyst import make_analyst
from prefixguard.proxy.understand import exchange_of
from prefixguard.sessions import body_fields, session_key
from prefixguard.store.encodings import decode
from prefixguard.store.errors import StoreError
from prefixguard.store.writing import session_name

if TYPE_CHECKING:
    from prefixguard.exchange import Capture
    from prefixguard.store import Store


class Storing:
    """Stores captures and remembers which sessions they went to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._analyst = make_analyst(store.exchanges)
        self.sessions: dict[str, int] = {}
        """How many requests were added to each, in the order in which they came."""

    def add(self, captures: Iterable[Capture], told: Told) -> None:
        """Stores each capture that is not there yet. Raises StoreError when the record fails."""
        for capture in captures:
            if self._has(capture.id):
                told.known += 1
                continue
            body = decode(capture.body, capture.headers.get("content-encoding", ""))
            key = session_key(capture.headers, body_fields(body) if body else {})
            session = session_name(key) if key else ""
            # Nobody waits for a file to be stored, so that its session can be known before it is.
            event, saved = self._analyst.step(capture.id, session, exchange_of(capture))
            session = session or event.session
            self._store.append(capture, key or session)
            self._store.save_turn(capture.id, saved)
            self.sessions[session] = self.sessions.get(session, 0) + 1

    def _has(self, identity: str) -> bool:
        try:
            self._store.capture(identity)
        except StoreError:
            return False
        return True
