"""Which lines of the user's code sent a request: the stack without SDKs, test runner and standard library."""

from __future__ import annotations

import asyncio
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

type Line = tuple[str, int, str]
"""File, row from 1, function."""
type _Frame = tuple[str, int, str, str]
"""The same, and the module."""

DEPTH = 6
"""Lines of the user's code that are kept, the innermost first."""
ORIGIN_DEPTH = 12
"""Frames that Python keeps of where a coroutine was made, see `user_lines`."""

_LIBRARIES = frozenset(
    {"anthropic", "openai", "httpx", "httpx2", "httpcore", "httpcore2", "pytest", "_pytest"}
)
_LOOPS = frozenset({"asyncio.events", "asyncio.base_events", "asyncio.runners", "uvloop"})
"""Below a frame of these stands who started the event loop, not who made the call."""
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OURS = str(Path(__file__).parents[1]) + os.sep
_STANDARD = tuple(
    {
        form(path) + os.sep
        for form in (os.path.realpath, os.path.abspath)
        for name in ("stdlib", "platstdlib", "scripts")
        if (path := sysconfig.get_path(name)) is not None
    }
)


def user_lines(root: Path) -> tuple[Line, ...]:
    """The user's frames of the running call, the innermost first; files below `root` are relative to it.

    A coroutine of an SDK that was handed to `asyncio.gather` or `create_task`
    runs without the user's frames; then the lines are those that made it.
    """
    task: list[_Frame] = []
    below: list[_Frame] = []
    current = task
    for frame in _frames(sys._getframe(1)):
        if frame[3] in _LOOPS:
            current = below
        current.append(frame)
    lines = [*_lines(task, root)] or [*_lines(_origin(), root)]
    return tuple([*lines, *_lines(below, root)][:DEPTH])


def _frames(frame: FrameType | None) -> Iterator[_Frame]:
    while frame is not None:
        code = frame.f_code
        yield code.co_filename, frame.f_lineno, code.co_name, str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back


def _origin() -> Iterator[_Frame]:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return
    for filename, row, function in getattr(task.get_coro() if task else None, "cr_origin", None) or ():
        yield filename, row, function, ""


def _lines(frames: Iterable[_Frame], root: Path) -> Iterator[Line]:
    for filename, row, function, module in frames:
        if module.partition(".")[0] in _LIBRARIES or not _is_users(filename):
            continue
        yield _relative(filename, root), row, function


def _is_users(filename: str) -> bool:
    if filename.startswith(("<", _OURS)) or any(part in filename for part in _INSTALLED):
        return False
    return not filename.startswith(_STANDARD) and not os.path.realpath(filename).startswith(_STANDARD)


def _relative(filename: str, root: Path) -> str:
    path = os.path.relpath(filename, root)
    return filename if path.startswith("..") else path.replace(os.sep, "/")
