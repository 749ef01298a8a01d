"""Where text reports are printed: a terminal with its own width and colours, or a pipe with neither."""

from __future__ import annotations

import os
import re
import sys
from typing import IO, TextIO, cast

from rich.console import Console

_PIPE_WIDTH = 120
_TRAILING = re.compile(r" +(?=\n)")


def console(stream: TextIO | None = None) -> Console:
    """A console on `stream` (standard output when None) that prints text as it is.

    In a pipe there are no escape codes and lines are 120 columns wide, or
    COLUMNS where that is set: the 80 that programs assume cut tables for no
    reader's good. A character that the stream cannot encode becomes `?`.
    """
    stream = stream or sys.stdout
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    width = None
    target: IO[str] = stream
    if not stream.isatty():
        wanted = os.environ.get("COLUMNS", "")
        width = int(wanted) if wanted.isdecimal() and int(wanted) > 0 else _PIPE_WIDTH
        target = cast(IO[str], _TrimmedStream(stream))
    return Console(file=target, width=width, highlight=False, markup=False, emoji=False)


class _TrimmedStream:
    """A stream that drops the blanks with which tables fill their lines: nobody sees them, and diffs do."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_TRAILING.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
