"""Lists of messages put together, bound to names and added to.

Part of the third step of the linter. What is stored is what will be sent again;
what is appended to a stored list is safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.history import marks, noting
from prefixguard.lint.values import (
    Fields,
    Items,
    Value,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def assembled(frame: Frame, node: Any, made: Value) -> Value:
    """A list built from parts: a window beside a summary is a compaction."""
    shape = made.shape
    if not isinstance(shape, Items):
        return made
    windows = [c for _, part in shape.parts for c in part.changes if c.edit and c.code == "PG301"]
    if windows and any(not spread for spread, _ in shape.parts) and noting.speaks_of_summary(frame, node):
        guard = windows[0].guard or noting.rarely(frame)
        change = noting.note(frame, "PG303", "history is replaced by a summary", node.at, guard, weak=True)
        for window in windows:
            frame.flow.edits.pop(window.key, None)
        parts = tuple(
            (
                spread,
                part.but(changes=tuple(c for c in part.changes if c not in windows), _flat=None)
                if part.changes
                else part,
            )
            for spread, part in shape.parts
        )
        return made.but(shape=Items(shape.kind, parts), changes=unique((*made.changes, change)), _flat=None)
    return made


def rebound(frame: Frame, name: str, place: tuple[str, ...], value: Value, at: f.At) -> Value:
    """A value bound to a name: what is stored is what will be sent, so "not stored" falls away."""
    if not frame.is_list_name(name):
        return value
    stored = (
        place[0] in {"self"}
        or place[0].startswith(("param:", "global:"))
        or (len(place) == 1 and name in frame.parameters)
    )
    if value.flat():
        for change in value.changes:
            if change.edit and change.code == "PG301" and (stored or frame.loops):
                frame.flow.edits.setdefault(change.key, (change, frame.file.index, name))
    if stored and any(change.code == "PG309" for change in value.changes):
        dropped = tuple(change for change in value.changes if change.code != "PG309")
        for change in value.changes:
            if change.code == "PG309":
                frame.flow.edits.pop(change.key, None)
        value = value.but(changes=dropped, _flat=None)
    return value


def iterates(frame: Frame, node: f.Expr, value: Value) -> bool:
    """Whether a loop runs over messages, also by `enumerate` and its kin."""
    inner = node
    while isinstance(inner, f.Call) and walk.last_name(inner.func) in {
        "enumerate",
        "reversed",
        "list",
        "zip",
        "entries",
    }:
        if inner.args:
            inner = inner.args[0].value
        elif isinstance(inner.func, f.Attr):
            inner = inner.func.base
        else:
            break
    return frame.is_list_name(walk.last_name(inner)) or (
        value.elements is not None and frame.is_list_name(noting.place_name(frame, value.elements))
    )


def appended(
    frame: Frame, target: f.Expr, before: Value, value: Value, at: f.At, *, spread: bool = False
) -> bool:
    """A message added to a list. True when the list is stored: the message is sent again unchanged."""
    key = walk.dotted(target)
    listed = noting.is_list(frame, target, before) or noting.has_messages(value)
    if (
        before.place is not None
        and before.place[0].startswith("param:")
        and (value.flat() or value.all_refs())
    ):
        frame.summary.mutations.append(
            (int(before.place[0][6:]), before.place[1:], "extend" if spread else "append", value)
        )
    if frame.is_fresh(key):
        return False
    if not listed:
        return False
    _mark_safe(frame, value)
    marks.remember_breakpoint(frame, value)
    return True


def _mark_safe(frame: Frame, value: Value, depth: int = 0) -> None:
    shape = value.shape
    if isinstance(shape, Fields):
        if shape.at is not None:
            frame.flow.safe.add((shape.file, shape.at))
    elif isinstance(shape, Items) and depth < 3:
        for _, part in shape.parts:
            _mark_safe(frame, part, depth + 1)
