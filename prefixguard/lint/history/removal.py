"""insert, pop, shift, splice, remove and their kin; and what a called function does, done here.

Part of the third step of the linter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import evaluation, picking
from prefixguard.lint.history import binding, noting, toolset
from prefixguard.lint.knowledge import snake
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Change,
    External,
    Fields,
    Func,
    Items,
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_CLEARS = re.compile(r"(^|_)(reset|clear|new|start|init|restart|delete|close|load|restore|switch)")


def method(frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[Any]) -> Value | None:
    """insert, pop, shift, splice, remove and their kin."""
    name = func.name
    if isinstance(base.shape, External):
        return None
    first = given[0][1] if given else NOTHING
    if name in {"pop", "remove", "clear", "splice", "shift"}:
        toolset.tool_list_changed(frame, func, base, node.at, "PG402")
    listed = noting.is_list(frame, func.base, base)
    if name in {"insert", "unshift"}:
        return _inserted(frame, node, func, base, given, listed)
    if name == "splice" and len(given) > 2 and given[1][1].const == 0:
        for _, value in given[2:]:
            _insert_parts(frame, func.base, base, value, at_front=first.const == 0)
        return NOTHING
    taken = picking.element(frame, base, node.at) if name in {"pop", "shift", "popleft"} else NOTHING
    if not listed or isinstance(base.shape, Fields):
        return taken if name in {"pop", "shift", "popleft"} else None
    if name in {"pop", "shift", "popleft"}:
        tail = name == "pop" and (
            not given
            or noting.is_last(frame, given[0][0].value, func.base)
            or first.const in {-1}
            or isinstance(first.const, str)
        )
        if tail or noting.about_system(frame):
            return taken
        if name == "pop" and not given:
            return taken
        inside = (
            any(guard.kind == "while" for guard in frame.guards)
            or bool(noting.rarely(frame))
            or bool(frame.loops)
        )
        guard = noting.rarely(frame)
        if guard == "threshold" and any(g.kind == "while" for g in frame.guards):
            guard = "window"
        code = "PG301" if name != "pop" or first.const in {0, 1} else "PG313"
        change = noting.note(
            frame,
            code,
            "the oldest messages are dropped" if code == "PG301" else "a message is taken out",
            node.at,
            guard,
            weak=inside,
        )
        noting.touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
        return taken
    if name == "splice":
        start, count = first, given[1][1] if len(given) > 1 else NOTHING
        if count.const == 0:
            return NOTHING
        if isinstance(start.const, int) and start.const < 0:
            return NOTHING
        code = (
            "PG303"
            if len(given) > 2 and noting.speaks_of_summary(frame, node)
            else "PG301"
            if len(given) < 3
            else "PG302"
        )
        change = noting.note(frame, code, "earlier messages are cut out", node.at, weak=True)
        noting.touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
        return NOTHING
    if name == "remove" and frame.loops:
        change = noting.note(
            frame,
            noting.kind_of(noting.words_around(frame, node), "PG313"),
            "a message is taken out",
            node.at,
            weak=True,
        )
        noting.touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
        return NOTHING
    if name == "clear" and frame.function is not None and not _CLEARS.search(snake(frame.function.name)):
        noting.note(
            frame, "PG313", "the messages are taken out, to be built anew", node.at, "event", weak=True
        )
    return NOTHING if name in {"clear", "reverse", "remove"} else None


def _inserted(
    frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[Any], listed: bool
) -> Value | None:
    if func.name == "insert" and len(given) < 2:
        return None
    where = given[0][1] if func.name == "insert" else Value(const=0)
    values = [value for _, value in (given[1:] if func.name == "insert" else given)]
    front = where.const == 0
    for value in values:
        _insert_parts(frame, func.base, base, value, at_front=front)
    if listed and front and noting.speaks_of_summary(frame, [arg.value for arg in node.args]):
        what = "a summary is put in front of the messages"
        change = noting.note(frame, "PG303", what, node.at, noting.rarely(frame) or "event", weak=True)
        noting.touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
        return NOTHING
    if not listed or frame.is_fresh(walk.dotted(func.base)):
        return NOTHING
    if front:
        if frame.talking and not noting.rarely(frame) and not any(g.kind == "if" for g in frame.guards):
            change = noting.note(
                frame, "PG308", "a message is put before the history on every turn", node.at, weak=True
            )
            noting.touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
        return NOTHING
    if func.name == "insert" and not (isinstance(where.const, int) and where.const > 0 and not frame.loops):
        change = noting.note(
            frame,
            "PG308",
            "a message is put into the history",
            node.at,
            "event",
            weak=bool(frame.loops) and where.const != -1,
        )
        noting.touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
    return NOTHING


def _insert_parts(frame: Frame, node: f.Expr, base: Value, value: Value, *, at_front: bool) -> None:
    shape = base.shape
    if base.place is not None and base.place[0].startswith("param:") and (value.flat() or value.all_refs()):
        frame.summary.mutations.append(
            (int(base.place[0][6:]), base.place[1:], "front" if at_front else "append", value)
        )
    parts = (
        shape.parts
        if isinstance(shape, Items)
        else ((True, base),)
        if base is not NOTHING and not isinstance(shape, External)
        else ()
    )
    kind = shape.kind if isinstance(shape, Items) else "list"
    item = (False, frame.traced(value, node.at, "inserted"))
    made = (item, *parts) if at_front else (*parts[:1], item, *parts[1:])
    if isinstance(shape, Items) or frame.is_fresh(walk.dotted(node)) or at_front:
        refs = base.refs if isinstance(shape, Items) else ()
        frame.rebind(
            node,
            base.but(
                shape=Items(kind, made[:MAX_PARTS]),
                refs=refs,
                _flat=None,
                _refs=None,
                changes=base.changes if isinstance(shape, Items) else (),
            ),
        )


def replayed(frame: Frame, target: f.Expr, kind: str, value: Any, at: f.At, name: str) -> None:
    """What a called function does to a list or dict that it was given, done here."""
    before = evaluation.evaluate(frame, target)
    if isinstance(before.shape, (External, Func)):
        return
    if kind == "edit":
        change: Change = value
        change = change.step(frame.step(at, f"done by `{name}`"))
        guard = change.guard or noting.rarely(frame)
        frame.rebind(target, noting.marked(before, change._replace(guard=guard)))
        if before.place is not None and before.place[0].startswith("param:"):
            frame.summary.mutations.append((int(before.place[0][6:]), before.place[1:], "edit", change))
        return
    if kind in {"append", "extend"}:
        from prefixguard.lint.calls import invoking

        if kind == "extend":
            invoking.extended(frame, target, before, value, at)
        elif not binding.appended(frame, target, before, value, at):
            parts = (
                before.shape.parts
                if isinstance(before.shape, Items)
                else ((True, before),)
                if before is not NOTHING
                else ()
            )
            listed = before.shape.kind if isinstance(before.shape, Items) else "list"
            frame.rebind(
                target,
                before.but(shape=Items(listed, (*parts, (False, value))[:MAX_PARTS]), _flat=None, _refs=None),
            )
    elif kind == "front":
        _insert_parts(frame, target, before, value, at_front=True)
    elif kind.startswith("set:") and (value.flat() or value.all_refs()):
        frame.put(target, before, kind[4:], value)
    elif kind == "set" and value.flat():
        frame.rebind(target, value)
