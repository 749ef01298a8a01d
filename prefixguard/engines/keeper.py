"""Keeps one server process, and ends it when the process that asked for it is gone.

Runs by itself (`python -I -S keeper.py LOG COMMAND ...`), between
`process.ServerProcess` and the server. Its standard input is a pipe that nobody writes to: when the
asking process ends, however it ends, the pipe closes, and so does the server.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

_PATIENCE = 5.0
"""Seconds that a server gets to end by itself."""


def _with_keeper() -> Callable[[], None] | None:
    """On Linux: what makes the kernel end the server when this process is killed outright."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(1, signal.SIGKILL) and None


def main(log: str, command: list[str]) -> int:
    """Runs `command`; its exit status, with 128 + N for signal N as shells count.

    log: the file that takes the server's output; removed with the process that asked.
    """
    # This process has one thread when it forks, so a function in between is safe.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_with_keeper())  # noqa: S603, PLW1509

    def stop(*_: object) -> None:
        with contextlib.suppress(OSError):
            child.terminate()
        try:
            child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()

    def watch() -> None:
        while os.read(0, 1024):
            pass
        with contextlib.suppress(OSError):
            os.unlink(log)
        stop()

    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=stop).start())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
    status = child.wait()
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    # Not `sys.exit`: a thread may still be reading the pipe.
    os._exit(main(sys.argv[1], sys.argv[2:]))
