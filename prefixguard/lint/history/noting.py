"""Noting an edit: what it is, what keeps it rare, and which list of messages it changes.

Under every other file of `history`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import evaluation
from prefixguard.lint.knowledge import snake
from prefixguard.lint.tables import TURN
from prefixguard.lint.values import (
    Change,
    Either,
    External,
    Fields,
    Func,
    Instance,
    Items,
    Value,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_BUILDS = re.compile(
    r"(prompt|message|history|context|conversation|description|transcript|llm_input|request_body)"
)


SPOKEN = {
    "content",
    "text",
    "parts",
    "blocks",
    "tool_calls",
    "toolCalls",
    "data",
    "source",
    "image_url",
    "output",
    "result",
    "arguments",
    "thinking",
    "reasoning",
    "images",
    "function",
    "args",
    "input",
}


_MEDIA = (
    "image",
    "screenshot",
    "picture",
    "audio",
    "video",
    "media",
    "photo",
    "base64",
    "inline_data",
    "inlineData",
)


_REASONING = ("thinking", "reasoning", "thought", "<think")


_RESULTS = ("tool", "result", "output", "observation", "function")


def note(
    frame: Frame,
    code: str,
    what: str,
    at: f.At,
    guard: str | None = None,
    *,
    weak: bool = False,
    written: f.At | None = None,
) -> Change:
    """An edit, seen here. `weak`: worth a remark even when no request is seen to take the list.

    written: where the messages are written, when the edit is shown elsewhere.
    """
    if guard is None:
        guard = rarely(frame)
    change = frame.change(code, what, at, TURN, edit=True, guard=guard)
    name = frame.function.name if frame.function is not None else ""
    named = bool(name) and (
        frame.knowledge.is_rewrite_name(name)
        or frame.knowledge.is_summary_name(name)
        or (code == "PG301" and _BUILDS.search(snake(name)) is not None)
    )
    frame.edited = True
    if named and frame.function is not None:
        change = change.step(frame.step(frame.function.at, f"inside `{name}`"))
    if written is not None:
        change = change.step(frame.step(written, "written here"))
    if weak or named:
        frame.flow.edits.setdefault(change.key, (change, frame.file.index, name))
    return change


def rarely(frame: Frame) -> str:
    """What keeps the current statement from running on every turn, if anything."""
    kinds = ""
    for guard in frame.guards:
        if guard.kind == "handler":
            return "error"
        test = guard.test
        if guard.kind not in {"if", "while"} or test is None or walk.is_place_test(test, frame.indexes):
            continue
        if walk.is_size_test(test):
            kinds = "threshold"
    return kinds


def placed(frame: Frame) -> bool:
    """Whether a guard asks where in the list the current element stands."""
    return any(
        guard.test is not None
        and guard.kind in {"if", "filter"}
        and walk.is_place_test(guard.test, frame.indexes)
        for guard in frame.guards
    )


def words_around(frame: Frame, *nodes: Any) -> str:
    """The words in the guards above and in these expressions, to tell what is edited."""
    found: set[str] = set()
    now = frame.statement if isinstance(frame.statement, (f.Assign, f.Do, f.Return, f.Delete)) else None
    for node in [*(guard.test for guard in frame.guards), now, *nodes]:
        if node is not None:
            found |= walk.strings(node) | walk.names(node)
    if frame.function is not None:
        found.add(frame.function.name)
    return " ".join(found).lower()


def kind_of(words: str, default: str = "PG311") -> str:
    """The code of an edit of earlier messages, by the words around it."""
    if any(word in words for word in _MEDIA):
        return "PG304"
    if any(word in words for word in _REASONING):
        return "PG306"
    if any(word in words for word in _RESULTS):
        return "PG302"
    return default


def place_name(frame: Frame, place: tuple[str, ...] | None) -> str:
    """The name of the list at a place."""
    if not place:
        return ""
    for part in reversed(place):
        if part.startswith("["):
            continue
        if part.startswith("param:"):
            return next((name for name, index in frame.parameters.items() if index == int(part[6:])), "")
        return part.rsplit(":", 1)[-1]
    return ""


def is_list(frame: Frame, node: f.Expr | None, value: Value) -> bool:
    """Whether a list holds messages: by its name, its place, or what stands in it."""
    if node is not None and frame.is_list_name(walk.last_name(node)):
        return True
    place = value.elements or value.place
    if place is not None and frame.is_list_name(place_name(frame, place)):
        return True
    if isinstance(value.shape, Either):
        return any(is_list(frame, None, option) for option in value.shape.options)
    return has_messages(value)


def has_messages(value: Value, depth: int = 0) -> bool:
    shape = value.shape
    if isinstance(shape, Items) and depth < 3:
        return any(has_messages(part, depth + 1) for _, part in shape.parts[:8])
    if isinstance(shape, (Fields, Instance)):
        names = shape.entries if isinstance(shape, Fields) else shape.fields
        return "role" in names or (isinstance(shape, Fields) and shape.name.endswith("Message"))
    return False


def marked(value: Value, change: Change) -> Value:
    """The list with an edit noted on it."""
    if isinstance(value.shape, (External, Func)):
        return value
    return value.but(changes=unique((*value.changes, change)), _flat=None, _refs=None)


def touch(frame: Frame, place: tuple[str, ...], change: Change) -> None:
    """Note an edit on the list that lives at a place."""
    cut = next((i for i, part in enumerate(place) if part.startswith("[")), len(place))
    root = place[:cut]
    if not root:
        return
    node: f.Expr | None = None
    head = root[0]
    if head == "self":
        node = f.Name(change.at, "this" if frame.file.family == "typescript" else "self")
    elif head.startswith("param:"):
        name = place_name(frame, (head,))
        node = f.Name(change.at, name) if name else None
        frame.summary.mutations.append((int(head[6:]), root[1:], "edit", change))
    elif head.startswith(("local:", "global:")):
        node = f.Name(change.at, head.rsplit(":", 1)[-1])
    if node is None:
        return
    for part in root[1:]:
        node = f.Attr(change.at, node, part)
    before = evaluation.evaluate(frame, node)
    frame.rebind(node, marked(before, change))


def texts(value: Value) -> str:
    found = []
    for child in [value, *value.children()]:
        if isinstance(child.const, str):
            found.append(child.const)
        for inner in child.children():
            if isinstance(inner.const, str):
                found.append(inner.const)
            found.extend(deep.const for deep in inner.children() if isinstance(deep.const, str))
    return " ".join(found).lower()[:400]


def is_last(frame: Frame, key: f.Expr, base: f.Expr) -> bool:
    """Whether an index is that of the last element."""
    if isinstance(key, f.Lit):
        return key.value == -1
    if isinstance(key, f.Name):
        if "last" in snake(key.name).split("_"):
            return True
        definition = frame.definition(key)
        return (
            definition is not None
            and definition is not key
            and not isinstance(definition, f.Name)
            and is_last(frame, definition, base)
        )
    if isinstance(key, f.Op) and key.op == "-" and len(key.operands) == 2:
        left, right = key.operands
        if isinstance(right, f.Lit) and right.value == 1:
            return (isinstance(left, f.Call) and walk.last_name(left.func) == "len") or (
                isinstance(left, f.Attr) and left.name == "length"
            )
    return False


def speaks_of_summary(frame: Frame, node: Any) -> bool:
    words = walk.names(node) | walk.strings(node)
    for name in list(walk.names(node)):
        definition = frame.definitions.get(name)
        if definition is not None:
            words |= walk.names(definition) | walk.strings(definition)
    return any(frame.knowledge.is_summary_name(word) for word in words)


def about_system(frame: Frame) -> bool:
    """Whether a guard above speaks of the system message: it is being moved, not dropped."""
    for guard in frame.guards:
        if guard.test is not None and walk.strings(guard.test) & {"system", "developer"}:
            return True
        if guard.test is not None and any("system" in name.lower() for name in walk.names(guard.test)):
            return True
    return False
