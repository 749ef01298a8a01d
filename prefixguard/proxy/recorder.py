"""The recorder process: stores captures, analyses them, and says what it found.

Started by `link` as `python -m prefixguard.proxy.recorder`; reads frames from
standard input, writes events to standard output, ends when its input does. To
store comes first: captures that wait in the pipe are stored before the next
one is analysed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from prefixguard.engines.upstreams import Upstreams
from prefixguard.errors import PrefixGuardError
from prefixguard.exchange import Capture, Exchange, Rendered, SessionKey
from prefixguard.proxy.frames import Event, Frame, Lost, Ready, Refused, Stored, Trouble, TurnSeen, pack_event
from prefixguard.proxy.frames import read_frames as frames_of
from prefixguard.proxy.understand import exchange_of, timing_of
from prefixguard.sessions import body_fields, session_key
from prefixguard.store.encodings import decode
from prefixguard.store.errors import StoreBusyError, StoreError
from prefixguard.store.writing import session_name

if TYPE_CHECKING:
    from prefixguard.proxy.analyst import Analyst

_BACKLOG_BYTES: Final = 64 * 2**20
"""How much may wait for analysis before the pipe is left alone, so that the proxy's queue fills instead."""
_INBOX_FRAMES: Final = 16
_BREATH: Final = 0.1
_RETRY_SECONDS: Final = (0.1, 0.5, 2.0)
"""Waits between attempts to store, while the store is only busy."""


class Recording(Protocol):
    """What the recorder needs of a store."""

    def append(self, capture: Capture, session: SessionKey | None) -> object: ...
    def assign(self, exchange_id: str, session: str) -> object: ...
    def save_turn(self, exchange_id: str, turn_json: bytes) -> object: ...
    def save_rendered(self, exchange_id: str, rendered: Rendered) -> object: ...
    def capture(self, exchange_id: str) -> Capture: ...


class Recorder:
    """Stores and analyses frames. send: takes events. analyst: None where there is no analysis.

    render: sets the token ids that the server evaluated, where it can be asked for them.
    """

    def __init__(
        self,
        store: Recording,
        analyst: Analyst | None,
        send: Callable[[Event], None],
        render: Callable[[Exchange], Exchange] = lambda exchange: exchange,
    ) -> None:
        self._store = store
        self._analyst = analyst
        self._send = send
        self._render = render
        self._backlog: deque[tuple[Frame, str]] = deque()
        self._backlog_bytes = 0
        self._degraded = False

    @property
    def has_room(self) -> bool:
        """Whether more captures may be stored before the waiting ones are analysed."""
        return self._backlog_bytes < _BACKLOG_BYTES

    @property
    def is_behind(self) -> bool:
        """Whether captures wait for analysis."""
        return bool(self._backlog)

    def store(self, frame: Frame) -> None:
        """Put one exchange into the store, and say so."""
        capture = frame.capture
        try:
            key = _session_of(capture)
            capture = _timed(frame)
            self._append(capture, key, again=frame.again)
        except Exception as error:  # noqa: BLE001  one bad exchange must not end the recording
            self._degraded = True
            self._send(Lost(frame.capture.id, _reason(error)))
            return
        self._degraded = False
        session = session_name(key) if key else ""
        self._send(Stored(capture.id, session))
        self._backlog.append((frame, session))
        self._backlog_bytes += len(capture.body) + len(capture.response_body)

    def _append(self, capture: Capture, key: SessionKey | None, *, again: bool) -> None:
        if again and self._is_stored(capture.id):
            return
        # Once storing has failed for good, waiting for each exchange would only fill the queue.
        for wait in () if self._degraded else _RETRY_SECONDS:
            try:
                self._store.append(capture, key)
            except StoreBusyError:
                time.sleep(wait)
            else:
                return
        self._store.append(capture, key)

    def _is_stored(self, exchange_id: str) -> bool:
        """The recorder before us may have died between storing an exchange and saying so."""
        try:
            self._store.capture(exchange_id)
        except StoreError:
            return False
        return True

    def analyse_one(self) -> None:
        """Analyse the exchange that has waited longest, and say what was found."""
        frame, session = self._backlog.popleft()
        capture = frame.capture
        self._backlog_bytes -= len(capture.body) + len(capture.response_body)
        try:
            exchange = exchange_of(capture, frame.marks)
        except Exception as error:  # noqa: BLE001  it is stored; the next one may be better
            self._send(Trouble("reading an exchange", _reason(error)))
            return
        exchange = self._rendered(capture.id, exchange)
        if self._analyst is None:
            self._send(plain_event(capture.id, session, exchange, "not analysed"))
            return
        try:
            waiting = [other.capture.id for other, _ in self._backlog]
            event, saved = self._analyst.step(capture.id, session, exchange, waiting)
        except Exception as error:  # noqa: BLE001  the next exchange may be better
            self._send(Trouble("analysis", _reason(error)))
            self._send(plain_event(capture.id, session, exchange, "the analysis failed"))
            return
        try:
            if not session and event.session:
                self._store.assign(capture.id, event.session)
            self._store.save_turn(capture.id, saved)
        except Exception as error:  # noqa: BLE001  both can be computed again
            self._send(Trouble("saving the analysis", _reason(error)))
        self._send(event)

    def _rendered(self, exchange_id: str, exchange: Exchange) -> Exchange:
        """With its token ids, where they can be had; they are kept, so that reports are as exact later."""
        try:
            found = self._render(exchange)
            if found.rendered is not None:
                self._store.save_rendered(exchange_id, found.rendered)
        except Exception as error:  # noqa: BLE001  the analysis can do without
            self._send(Trouble("asking the server for its token ids", _reason(error)))
            return exchange
        return found


def plain_event(exchange_id: str, session: str, exchange: Exchange, note: str) -> TurnSeen:
    """What can be said of an exchange without an analysis."""
    return TurnSeen(
        exchange_id,
        session,
        -1,
        status=exchange.status,
        aborted=exchange.aborted,
        first_token_ms=exchange.timing.first_token_ms,
        total_ms=exchange.timing.total_ms,
        note=note,
        upstream=exchange.upstream,
    )


def _session_of(capture: Capture) -> SessionKey | None:
    body = decode(capture.body, capture.headers.get("content-encoding", ""))
    return session_key(capture.headers, body_fields(body) if body else {})


def _timed(frame: Frame) -> Capture:
    from dataclasses import replace

    return replace(frame.capture, timing=timing_of(frame.capture, frame.marks))


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, PrefixGuardError) else f"{type(error).__name__}: {text}"


class Sender:
    """Writes events; those that come fast after one another share a write, as each wakes the proxy."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._waiting = bytearray()
        self._lock = threading.Lock()
        self._last = 0.0
        self._timer: threading.Timer | None = None

    def __call__(self, event: Event) -> None:
        """Send an event, at the latest in `_BREATH` seconds."""
        with self._lock:
            self._waiting += pack_event(event)
            if self._timer is None:
                wait = max(0.0, self._last + _BREATH - time.monotonic())
                self._timer = threading.Timer(wait, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Send what waits. A proxy that is gone hears nothing; its frames end too."""
        with self._lock:
            self._timer = None
            data, self._waiting = self._waiting, bytearray()
            self._last = time.monotonic()
            view = memoryview(data)
            with contextlib.suppress(BrokenPipeError):
                while view:
                    view = view[self._stream.write(view) :]


def serve(recorder: Recorder, stream: BinaryIO) -> None:
    """Store and analyse until the stream ends."""
    inbox: queue.Queue[Frame | None] = queue.Queue(_INBOX_FRAMES)

    def read() -> None:
        try:
            for frame in frames_of(stream):
                inbox.put(frame)
        finally:
            inbox.put(None)

    threading.Thread(target=read, name="prefixguard-frames", daemon=True).start()
    ended = False
    while not ended or recorder.is_behind:
        if not ended and recorder.has_room:
            try:
                frame = inbox.get(block=not recorder.is_behind)
            except queue.Empty:
                recorder.analyse_one()
                continue
            if frame is None:
                ended = True
            else:
                recorder.store(frame)
        else:
            recorder.analyse_one()


def main() -> None:
    """Entry point of the process. The store is named in the environment, where `ps` shows no password."""
    # It ends when its pipe does, so that nothing is left behind in it.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    # A stray print must not tear the stream of events.
    events = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    send = Sender(events)
    try:
        from prefixguard.store import Store

        store = Store.open(None)
    except Exception as error:  # noqa: BLE001  whatever it is, the proxy must hear of it
        send(Refused(_reason(error)))
        send.flush()
        sys.exit(2)
    send(Ready(os.getpid(), store.name, store.salt))
    try:
        from prefixguard.proxy.analyst import make_analyst

        analyst: Analyst | None = make_analyst(store.exchanges, store.sessions)
    except Exception as error:  # noqa: BLE001  recording is worth having without analysis
        analyst = None
        send(Trouble("starting the analysis", _reason(error)))
    try:
        serve(Recorder(store, analyst, send, Upstreams().render), sys.stdin.buffer)
    finally:
        send.flush()
        store.close()


if __name__ == "__main__":
    main()
