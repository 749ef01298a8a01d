"""Starts a server process that cannot outlive us, and says from its log why it did not start."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from prefixguard.errors import ServerError

_KEEPER = Path(__file__).with_name("keeper.py")
_ILLEGAL_INSTRUCTION = 128 + 4
_LAST_WORDS = 400
_LOG_PREFIX = re.compile(r"^[\d.]+ [A-Z] (\w+ +)?")


class ServerProcess:
    """A running command under `keeper.py`, in a process group of its own, its output in a log file."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        with tempfile.NamedTemporaryFile(prefix="prefixguard-server-", suffix=".log", delete=False) as log:
            self.log = Path(log.name)
            try:
                self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                    [sys.executable, "-I", "-S", str(_KEEPER), log.name, *command],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=dict(os.environ if environment is None else environment),
                    start_new_session=True,
                )
            except OSError as error:
                self.log.unlink(missing_ok=True)
                raise ServerError(f"{command[0]} cannot be started: {error}") from error

    @property
    def ended(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._process.poll()

    def last_words(self) -> str:
        """The line of the log that says best why the process ended."""
        status = self.ended
        if status == _ILLEGAL_INSTRUCTION:
            return "it was built for another processor (illegal instruction)"
        lines = self.log.read_text("utf-8", "replace").splitlines()
        told = [line.strip() for line in lines if line.strip()]
        blamed = [
            line for line in told if "error" in line.lower() or " E " in line or "failed" in line.lower()
        ]
        # The first complaint names the cause; those behind it only pass it on.
        words = blamed[0] if blamed else told[-1] if told else "it said nothing"
        words = _LOG_PREFIX.sub("", words)
        return words[:_LAST_WORDS] + (f" (exit status {status})" if status else "")

    def close(self) -> None:
        """Ends the process and all that it started, and removes its log. Safe to call twice."""
        process = self._process
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(8)
        except subprocess.TimeoutExpired:
            _kill_group(process.pid)
            process.wait()
        self.log.unlink(missing_ok=True)


def _kill_group(pid: int) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def wait_until(ready: Callable[[], bool], process: ServerProcess, seconds: float) -> None:
    """Waits for `ready()` to be true. Raises ServerError when the process ends first or takes too long."""
    deadline = time.monotonic() + seconds
    pause = 0.01
    while not ready():
        if process.ended is not None:
            raise ServerError(process.last_words())
        if time.monotonic() > deadline:
            raise ServerError(f"it was not ready after {seconds:.0f} s: {process.last_words()}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)
