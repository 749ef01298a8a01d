"""A list of messages: what of it stands before messages of earlier turns.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint.sinks import judging
from prefixguard.lint.summary import Hit, Pending, Sink
from prefixguard.lint.values import (
    NOTHING,
    Either,
    Fields,
    Instance,
    Items,
    Step,
    Value,
    Words,
    mixed,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_SPOKEN = (
    "content",
    "text",
    "parts",
    "blocks",
    "tool_calls",
    "toolCalls",
    "data",
    "source",
    "image_url",
    "0",
    "1",
    "input",
    "output",
    "name",
    "function_call",
    "arguments",
    "id",
    "tool_call_id",
)


def spoken(value: Value, depth: int = 0) -> Value:
    """What the model reads of a message: its content, not the time it was made at."""
    shape = value.shape
    if isinstance(shape, Either) and depth < 4:
        return mixed([spoken(option, depth + 1) for option in shape.options])
    names = (
        shape.entries if isinstance(shape, Fields) else shape.fields if isinstance(shape, Instance) else None
    )
    if names is None:
        return value
    message = "role" in names or "content" in names or (isinstance(shape, Fields) and "Message" in shape.name)
    if not message:
        return value
    parts = [part for name, part in names.items() if name in _SPOKEN]
    if isinstance(shape, Fields):
        parts.extend(shape.spread)
    return mixed(parts) if len(parts) != 1 else parts[0]


def role_of(value: Value) -> str:
    """The role of a message, or ""."""
    shape = value.shape
    if isinstance(shape, Fields):
        role = shape.entries.get("role")
        if role is not None and isinstance(role.const, str):
            return role.const
        last = shape.name.rsplit(".", 1)[-1]
        if last.startswith("System"):
            return "system"
        first = shape.entries.get("0")
        if "Message" in last and first is not None and isinstance(first.const, str):
            return first.const
        return "user" if last.startswith("Human") else ""
    if isinstance(shape, Instance):
        role = shape.fields.get("role")
        return role.const if role is not None and isinstance(role.const, str) else ""
    return ""


def _opaque(spread: bool, value: Value) -> bool:
    """Whether a part of the list stands for messages of earlier turns."""
    shape = value.shape
    if isinstance(shape, Items) and shape.kind == "many":
        return True
    if isinstance(shape, (Fields, Instance, Words)):
        return False
    if isinstance(shape, Items):
        return any(_opaque(s, part) for s, part in shape.parts)
    return spread


def flattened(value: Value) -> list[tuple[bool, Value]]:
    """The parts of a list, spread lists of known parts opened."""
    out: list[tuple[bool, Value]] = []
    shape = value.shape
    if not isinstance(shape, Items):
        return [(True, value)]
    for spread, part in shape.parts:
        if spread and isinstance(part.shape, Items) and part.shape.kind not in {"many", "set"}:
            inner = flattened(part)
            if part.changes:
                inner = [
                    (s, v.but(changes=unique((*v.changes, *part.changes)), _flat=None)) for s, v in inner
                ]
            out.extend(inner)
        else:
            out.append((spread, part))
    return out


def messages(
    frame: Frame, sink: Sink, value: Value, known: frozenset[Any] = frozenset(), depth: int = 0
) -> bool:
    """Judge a list of messages. True when it holds messages of earlier turns."""
    shape = value.shape
    if isinstance(shape, Either):
        return any(messages(frame, sink, option, known, depth) for option in shape.options)
    if isinstance(shape, Words) or isinstance(value.const, str):
        return False
    for change in value.flat():
        if change.edit and change.key not in known:
            trace = (*change.trace, Step(sink.file, sink.at, sink.label))
            frame.flow.hits.append(
                Hit(change, sink, "history", trace, min(sink.confidence, change.confidence))
            )
    if value.all_refs() and depth < 6 and len(frame.summary.pending) < 80:
        frame.summary.pending.append(Pending(sink, value, depth))
    if not isinstance(shape, Items):
        persistent = value.place is not None or bool(value.refs) or value.elements is not None
        return persistent or shape is None
    parts = flattened(value)
    opaque = [_opaque(spread, part) for spread, part in parts]
    last = max((i for i, flag in enumerate(opaque) if flag), default=-1)
    for index, (_spread, part) in enumerate(parts):
        if index < last or (last < 0 and role_of(part) in {"system", "developer"}):
            content = spoken(part)
            position = "system" if role_of(part) in {"system", "developer"} else "history"
            if isinstance(part.shape, Items) and part.shape.kind == "many":
                content = mixed([spoken(p) for _, p in part.shape.parts])
            _judge_part(frame, sink, content, position, known)
        elif index == last and opaque[index]:
            if isinstance(part.shape, Items) and part.shape.kind == "many":
                content = mixed([spoken(p) for _, p in part.shape.parts])
                _judge_part(frame, sink, content, "history", known)
        elif index > last >= 0:
            _safe(frame, part)
    return last >= 0


def _safe(frame: Frame, part: Value) -> None:
    if isinstance(part.shape, Fields) and part.shape.at is not None:
        frame.flow.safe.add((part.shape.file, part.shape.at))


def _judge_part(frame: Frame, sink: Sink, content: Value, position: str, known: frozenset[Any]) -> None:
    stated = content
    if position == "history":
        # A name alone says nothing of a message that may have been stored.
        kept = tuple(change for change in content.flat() if change.confidence > 0)
        if not kept:
            return
        stated = Value(kept)
    judging.judge(frame, sink, stated, known, 9, position)


def has_history(frame: Frame, listed: Value) -> bool:
    """Whether a list of messages holds those of earlier turns."""
    shape = listed.shape
    if listed is NOTHING or isinstance(shape, Words) or isinstance(listed.const, str):
        return False
    if isinstance(shape, Either):
        return any(has_history(frame, option) for option in shape.options)
    if isinstance(shape, Items):
        if listed.place is not None and not listed.place[0].startswith("local:"):
            return True
        return any(_opaque(spread, part) for spread, part in flattened(listed))
    return True
