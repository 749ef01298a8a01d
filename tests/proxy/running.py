"""The real `prefixguard proxy` in a process of its own, as users run it, with its events read as JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from prefixguard.exchange import Capture
from prefixguard.store import Store

type Event = dict[str, Any]

MAIN = "from prefixguard.cli import main; main()"
_PATIENCE = 60.0


class RunningProxy:
    """A proxy for the time of a `with` statement.

    prepare: Python code to run in its process first, to break or limit something.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        prepare: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.store_path = folder / "record.sqlite"
        self.events: list[Event] = []
        self._seen = threading.Condition()
        command = [sys.executable, "-c", f"{prepare}\n{MAIN}", "proxy", "--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(
            [*command, "--format", "json", "--store", str(self.store_path), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_DATA_HOME": str(folder / "data"), **(environ or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._seen:
                self.events.append(json.loads(line))
                self._seen.notify_all()
        with self._seen:
            self.events.append({"type": "ended"})
            self._seen.notify_all()

    def wait_for(self, matches: Callable[[Sequence[Event]], Any], what: str = "event") -> Any:
        """The first true answer of `matches(events)`."""
        until = time.monotonic() + _PATIENCE
        with self._seen:
            while not (found := matches(self.events)):
                left = until - time.monotonic()
                if left <= 0 or self.events[-1:] == [{"type": "ended"}]:
                    raise AssertionError(f"no {what}; events {self.events}; {self._errors()}")
                self._seen.wait(left)
        return found

    def _errors(self) -> str:
        if self._process.poll() is None or self._process.stderr is None:
            return "still running"
        return self._process.stderr.read()

    def stored(self, count: int) -> list[Event]:
        """Wait until `count` exchanges are stored."""
        return self.wait_for(
            lambda events: found if len(found := of(events, "stored")) >= count else None, f"{count} stored"
        )

    def __enter__(self) -> Self:
        listening = self.wait_for(lambda events: of(events, "listening"), "listening proxy")
        self.url: str = listening[0]["url"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill() if kind else self.stop()
        self._process.wait(_PATIENCE)

    def send(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> Event:
        """End it as a user does; its last event."""
        self._process.send_signal(number)
        assert self._process.wait(_PATIENCE) == 0, self._errors()
        self._reader.join(_PATIENCE)
        stopped = of(self.events, "stopped")
        assert len(stopped) == 1
        return stopped[0]

    def health(self) -> Event:
        """The health page."""
        answer = httpx.get(f"{self.url}/prefixguard/health", trust_env=False)
        assert answer.status_code == 200
        page: Event = answer.json()
        return page

    def captures(self, session: str, count: int) -> list[Capture]:
        """The exchanges of a session in order of time, once `count` of them are stored."""

        def enough(events: Sequence[Event]) -> bool:
            return sum(event["session"] == session for event in of(events, "stored")) >= count

        if of(self.events, "ended") == []:
            self.wait_for(enough, f"{count} stored exchanges of {session}")
        with Store.open(self.store_path) as store:
            ids = [json.loads(exchange.extra["id"]) for exchange in store.exchanges(session)]
            captures = [store.capture(identity) for identity in ids]
        assert len(captures) == count
        return captures


def of(events: Sequence[Event], kind: str) -> list[Event]:
    """The events of one kind."""
    return [event for event in events if event["type"] == kind]
