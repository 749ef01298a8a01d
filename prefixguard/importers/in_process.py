"""Records captures from inside somebody else's program: a bounded queue, a thread that stores, no exception.

Behind callback classes such as `litellm_callback`. Whatever goes wrong here is
counted and said once in the log; the program goes on.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from prefixguard.exchange import Capture
from prefixguard.importers.captures import SESSION
from prefixguard.sessions import body_fields, session_key
from prefixguard.store import Mode, Store
from prefixguard.store.errors import StoreBusyError

_WAITING: Final = 1000
_REMEMBERED: Final = 4096
_RETRY_SECONDS: Final = (0.1, 0.5, 2.0)
_LOG: Final = logging.getLogger("prefixguard")


class InProcess:
    """Stores captures from a thread of its own.

    target: the record, see `Store.open`. session: the run that requests belong
    to which name none; by default one for this process. mode: what is kept.
    lost: requests that were not recorded, by reason.
    """

    def __init__(
        self, target: str | Path | None = None, *, session: str | None = None, mode: Mode = "full"
    ) -> None:
        self._target, self._mode = target, mode
        self.session = session or f"run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self.lost: Counter[str] = Counter()
        self.recorded = 0
        self._queue: queue.Queue[Capture | threading.Event | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._known: dict[str, None] = {}
        self._said = False

    def take(self, make: Callable[[], Capture | None]) -> None:
        """Records what `make` makes. Never raises, never waits."""
        try:
            capture = make()
            if capture is None:
                return
            with self._lock:
                if capture.id in self._known:
                    return
                self._known[capture.id] = None
                if len(self._known) > _REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._start()
            self._queue.put_nowait(capture)
        except queue.Full:
            self._lose("the store is too slow")
        except Exception as error:  # noqa: BLE001  the program that calls must go on
            self._lose(f"{type(error).__name__}: {error}")

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until what was taken so far is stored, at most `timeout` seconds; whether it is."""
        if self._thread is None:
            return True
        done = threading.Event()
        try:
            self._queue.put(done, timeout=timeout)
        except queue.Full:
            return False
        return done.wait(timeout)

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="prefixguard-record", daemon=True)
            self._thread.start()
            # A daemon thread ends with the program; what waits must be stored before.
            atexit.register(self.flush)

    def _run(self) -> None:
        try:
            store = Store.open(self._target, mode=self._mode)
        except Exception as error:  # noqa: BLE001  said, not raised
            self._drain(str(error))
            return
        with store:
            while (waiting := self._queue.get()) is not None:
                if isinstance(waiting, threading.Event):
                    waiting.set()
                    continue
                try:
                    self._append(store, waiting)
                    self.recorded += 1
                except Exception as error:  # noqa: BLE001  the next one may go
                    self._lose(str(error))

    def _append(self, store: Store, capture: Capture) -> None:
        key = session_key(capture.headers, body_fields(capture.body))
        if key is None:
            capture = replace(capture, headers={**capture.headers, SESSION: self.session})
            key = session_key(capture.headers, {})
        for wait in _RETRY_SECONDS:
            try:
                store.append(capture, key)
            except StoreBusyError:
                time.sleep(wait)
            else:
                return
        store.append(capture, key)

    def _drain(self, reason: str) -> None:
        """Without a store nothing is recorded, and nobody waits for it."""
        while (waiting := self._queue.get()) is not None:
            if isinstance(waiting, threading.Event):
                waiting.set()
            else:
                self._lose(reason)

    def _lose(self, reason: str) -> None:
        self.lost[reason] += 1
        if not self._said:
            self._said = True
            with contextlib.suppress(Exception):
                _LOG.warning("prefixguard: a request was not recorded: %s", " ".join(reason.split()))
