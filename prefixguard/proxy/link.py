"""Hands captures to the recorder process without ever making a request wait.

`offer` puts a frame on a bounded queue and returns. A thread writes the queue
to the recorder's pipe, another reads its answers. A recorder that dies is
started again and is sent what it had not acknowledged, once more; a recorder
that stalls fills the queue. What does not fit, or cannot be stored, is counted
by reason, never waited for.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import subprocess
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Buffer, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, BinaryIO, Final

import msgspec

from prefixguard.proxy.frames import Event, Frame, Lost, Ready, Refused, Stored, pack_frame, read_events
from prefixguard.proxy.repeats import Sent

MAX_BYTES: Final = 256 * 2**20
MAX_FRAMES: Final = 10_000
_FRAME_OVERHEAD: Final = 4096
_PIPE_SIZE: Final = 2**20
_BATCH_BYTES: Final = 2**20
_MOST_PIECES: Final = 512
_BREATH: Final = 0.1
_LAST_BREATH: Final = 2.0
_FIRST_DELAY: Final = 0.2
_LONGEST_DELAY: Final = 30.0

QUEUE_FULL: Final = "the queue to the recorder is full"
DIED: Final = "the recorder died"
NOT_RUNNING: Final = "the recorder is not running"
UNWRITABLE: Final = "the exchange could not be encoded"
STALLED: Final = "the recorder did not answer"


class _Close:
    """Tells the writing thread that no frame follows."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """Tells the writing thread that a recorder has said its last word."""

    process: subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class LinkState:
    """Counts at one moment. queued: offered, and neither stored nor lost yet."""

    alive: bool
    pid: int | None
    restarts: int
    stored: int
    lost: Mapping[str, int]
    queued: int
    queued_bytes: int
    last_words: str


class Link:
    """The queue, the recorder process, and the two threads between them.

    command: what to run as the recorder. on_event: called from the reading
    thread with every event; an exception in it is swallowed.
    """

    def __init__(
        self,
        command: Sequence[str],
        on_event: Callable[[Event], None] = lambda _: None,
        *,
        max_bytes: int = MAX_BYTES,
        max_frames: int = MAX_FRAMES,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command = list(command)
        self._listeners = [on_event]
        self._max_bytes = max_bytes
        self._max_frames = max_frames
        self._env = env
        self._queue: queue.SimpleQueue[Frame | _Close | _Ended] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._unacknowledged: OrderedDict[str, Frame] = OrderedDict()
        self._held = self._held_bytes = 0
        self._stored = self._restarts = self._failures = 0
        self._progress = 0
        self._lost: Counter[str] = Counter()
        self._process: subprocess.Popen[bytes] | None = None
        self._last_words: deque[str] = deque(maxlen=20)
        self._first_answer: Ready | Refused | None = None
        self._answered = threading.Event()
        self._closing = threading.Event()
        self._writer = threading.Thread(target=self._write_all, name="prefixguard-link", daemon=True)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Tell one more listener of every event from now on, under the rules of `on_event`."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Start the recorder and the threads. Raises OSError when it cannot be started at all."""
        self._spawn()
        self._writer.start()

    def wait_ready(self, timeout: float) -> Ready | Refused | None:
        """The recorder's first answer, or None when it took longer than `timeout` seconds."""
        self._answered.wait(timeout)
        return self._first_answer

    def offer(self, frame: Frame) -> bool:
        """Take a frame if there is room; never blocks. False: it is lost, and counted."""
        size = _size(frame)
        with self._lock:
            full = self._held >= self._max_frames or self._held_bytes + size > self._max_bytes
            reason = NOT_RUNNING if self._closing.is_set() else QUEUE_FULL if full else None
            if reason is not None:
                self._lost[reason] += 1
                return False
            self._held += 1
            self._held_bytes += size
        self._queue.put(frame)
        return True

    def state(self) -> LinkState:
        """Counts at this moment."""
        process = self._process
        alive = process is not None and process.poll() is None
        with self._lock:
            return LinkState(
                alive=alive,
                pid=process.pid if alive and process is not None else None,
                restarts=self._restarts,
                stored=self._stored,
                lost=dict(self._lost),
                queued=self._held,
                queued_bytes=self._held_bytes,
                last_words=self._last_words[-1] if self._last_words else "",
            )

    def close(self, stall_s: float = 10.0, finish_s: float = 15.0) -> None:
        """Let the recorder store all it was given, and end it.

        Waits as long as it makes progress; after `stall_s` seconds without any
        it is killed and the rest is counted as lost. When all is stored, what
        it has yet to analyse gets `finish_s` seconds: that can be done later.
        """
        if self._closing.is_set():
            return
        self._closing.set()
        self._queue.put(_Close())
        last, since = -1, time.monotonic()
        stored_at: float | None = None
        while self._writer.is_alive() or (self._process is not None and self._process.poll() is None):
            now = time.monotonic()
            if self._progress != last:
                last, since = self._progress, now
            elif now - since > stall_s:
                break
            if not self._held and not self._writer.is_alive():
                stored_at = stored_at or now
                if now - stored_at > finish_s:
                    break
            time.sleep(0.01)
        process, reason = self._process, DIED
        if process is not None and process.poll() is None:
            reason = STALLED
            process.kill()
        self._writer.join(5)
        if process is not None:
            process.wait()
        self._reader.join(5)
        with self._lock:
            if self._held:
                self._lost[reason] += self._held
                self._held = self._held_bytes = 0
                self._unacknowledged.clear()

    def _spawn(self) -> None:
        process = subprocess.Popen(  # noqa: S603
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(self._env) if self._env is not None else None,
            # Ctrl-C in the terminal must not reach it: it ends when its pipe does.
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        _widen(process.stdin)
        self._process = process
        self._sent = Sent()
        self._reader = threading.Thread(
            target=self._read_all, args=(process, process.stdout), name="prefixguard-events", daemon=True
        )
        self._reader.start()
        threading.Thread(
            target=self._hear_errors, args=(process.stderr,), name="prefixguard-errors", daemon=True
        ).start()

    def _write_all(self) -> None:
        pending: deque[Frame] = deque()
        closing = False
        while True:
            if not closing:
                closing = self._collect(pending)
            process = self._process
            if process is None or process.poll() is not None:
                pending.extendleft(reversed(self._recover()))
                if closing and not pending:
                    break
                if not self._revive():
                    self._lose(pending, NOT_RUNNING)
                    break
                continue
            if not pending:
                if closing:
                    break
                continue
            pieces = self._packed(pending)
            # When the pipe breaks the frames are unacknowledged, and come back through `_recover`.
            with contextlib.suppress(OSError, ValueError):
                _write(process.stdin, pieces)
            self._progress += 1
            # Each wake-up takes the interpreter from the event loop, so many frames share one.
            if not pending:
                self._closing.wait(_BREATH)
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()

    def _collect(self, pending: deque[Frame]) -> bool:
        """Take what the queue holds; wait when there is nothing to do. True: it is to be closed."""
        wait = not pending
        while True:
            try:
                item = self._queue.get(wait)
            except queue.Empty:
                return False
            if isinstance(item, Frame):
                pending.append(item)
            elif isinstance(item, _Close):
                return True
            else:
                _bury(item.process)
            wait = False

    def _packed(self, pending: deque[Frame]) -> list[Buffer]:
        """The next frames in pieces, a megabyte or a little more; they are unacknowledged from now on."""
        pieces: list[Buffer] = []
        size = 0
        while pending and size < _BATCH_BYTES:
            frame = pending.popleft()
            try:
                packed = pack_frame(frame, self._sent)
            except Exception:  # noqa: BLE001  whatever it holds, the next one must still be written
                self._lose([frame], UNWRITABLE)
                continue
            with self._lock:
                self._unacknowledged[frame.capture.id] = frame
            pieces += packed
            size += _size(frame)
        return pieces

    def _recover(self) -> list[Frame]:
        """What a dead recorder had not acknowledged; what was sent twice already is lost."""
        if self._process is not None:
            self._process.wait()
            self._reader.join(5)
        with self._lock:
            frames = list(self._unacknowledged.values())
            self._unacknowledged.clear()
        self._lose([frame for frame in frames if frame.again], DIED)
        return [msgspec.structs.replace(frame, again=True) for frame in frames if not frame.again]

    def _revive(self) -> bool:
        """Start another recorder, later and later after each failure. False: the link is closing."""
        if self._failures and self._closing.wait(
            min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** (self._failures - 1))
        ):
            return False
        self._failures += 1
        with contextlib.suppress(OSError):
            self._spawn()
            with self._lock:
                self._restarts += 1
        return True

    def _lose(self, frames: Sequence[Frame] | deque[Frame], reason: str) -> None:
        with self._lock:
            for frame in frames:
                self._lost[reason] += 1
                self._release(frame)

    def _release(self, frame: Frame) -> None:
        self._held -= 1
        self._held_bytes -= _size(frame)

    def _read_all(self, process: subprocess.Popen[bytes], stream: IO[bytes]) -> None:
        try:
            for event in read_events(io.BufferedReader(stream, _BATCH_BYTES)):  # type: ignore[type-var]
                self._take(event)
                self._progress += 1
                for listener in self._listeners:
                    with contextlib.suppress(Exception):
                        listener(event)
        except (OSError, ValueError, msgspec.DecodeError) as error:
            self._last_words.append(f"unreadable answer: {error}")
            process.kill()
        self._queue.put(_Ended(process))

    def _take(self, event: Event) -> None:
        match event:
            case Ready() | Refused():
                if isinstance(event, Ready):
                    self._failures = 0
                if self._first_answer is None:
                    self._first_answer = event
                    self._answered.set()
            case Stored() | Lost():
                with self._lock:
                    frame = self._unacknowledged.pop(event.id, None)
                    if frame is None:
                        return
                    self._release(frame)
                    if isinstance(event, Stored):
                        self._stored += 1
                    else:
                        self._lost[event.reason] += 1
            case _:
                pass

    def _hear_errors(self, stream: BinaryIO) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in stream:
                text = line.decode("utf-8", "replace").rstrip()
                if text:
                    self._last_words.append(text)


def _bury(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that has closed its output; it has nothing left to do but end."""
    try:
        process.wait(_LAST_BREATH)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _size(frame: Frame) -> int:
    return frame.size() + _FRAME_OVERHEAD


def _write(stream: IO[bytes] | None, pieces: Sequence[Buffer]) -> None:
    """Write without joining: the bodies are large, and the event loop wants the interpreter."""
    assert stream is not None
    fd = stream.fileno()
    waiting = deque(view for piece in pieces if len(view := memoryview(piece)))
    while waiting:
        written = os.writev(fd, list(islice(waiting, _MOST_PIECES)))
        while waiting and written >= len(waiting[0]):
            written -= len(waiting.popleft())
        if written:
            waiting[0] = waiting[0][written:]


def _widen(stream: IO[bytes]) -> None:
    """A wider pipe means fewer switches between the processes; not every system has it."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
