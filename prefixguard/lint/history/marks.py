"""Breakpoints that are put on messages: where they stand, and whether they stay on stored ones.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint.history import noting
from prefixguard.lint.values import (
    Fields,
    Items,
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def breakpoint_set(frame: Frame, place: tuple[str, ...], at: f.At) -> None:
    """`message["cache_control"] = ...` on every message of a loop."""
    if "[]" not in place or noting.placed(frame) or not any(loop.over for loop in frame.loops):
        return
    if any(part in {"[-1]", "[<]"} for part in place[: place.index("[]")]):
        return
    frame.flow.marks.append((frame.file.index, at, True))


def remember_breakpoint(frame: Frame, value: Value) -> None:
    for at in breakpoints(value):
        frame.flow.marks.append((frame.file.index, at, frame.talking or not frame.loops))


def breakpoints(value: Value, depth: int = 0) -> list[f.At]:
    """The places of all blocks with a breakpoint in a value."""
    shape = value.shape
    found: list[f.At] = []
    if depth > 6:
        return found
    if isinstance(shape, Fields):
        if ("cache_control" in shape.entries or "cachePoint" in shape.entries) and shape.at is not None:
            found.append(shape.at)
        for child in shape.entries.values():
            found.extend(breakpoints(child, depth + 1))
    elif isinstance(shape, Items):
        for _, part in shape.parts:
            found.extend(breakpoints(part, depth + 1))
    return found
