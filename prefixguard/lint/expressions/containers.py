"""Lists, dicts and comprehensions.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import evaluation, picking
from prefixguard.lint.history import binding, splitting
from prefixguard.lint.sinks import frameworks, naming
from prefixguard.lint.summary import Loop
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Change,
    Fields,
    Items,
    Value,
    join,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def sequence(frame: Frame, node: f.Seq) -> Value:
    parts: list[tuple[bool, Value]] = []
    for item in node.items:
        if isinstance(item, f.Spread):
            value = evaluation.evaluate(frame, item.value)
            shape = value.shape
            if (
                isinstance(shape, Items)
                and shape.kind != "set"
                and not value.changes
                and len(parts) + len(shape.parts) <= MAX_PARTS
            ):
                parts.extend(shape.parts)
            elif isinstance(shape, Items) and shape.kind == "set":
                parts.append((True, picking.element(frame, value, item.at)))
            else:
                parts.append((True, value))
        else:
            parts.append((False, evaluation.evaluate(frame, item)))
    made = Value(shape=Items(node.kind, tuple(parts[:MAX_PARTS])))
    return binding.assembled(frame, node, made)


def mapping(frame: Frame, node: f.Map) -> Value:
    entries: dict[str, Value] = {}
    spread: list[Value] = []
    keys: list[Value] = []
    for key, item in node.entries:
        if key is None:
            value = evaluation.evaluate(frame, item)
            if isinstance(value.shape, Fields) and not value.changes:
                entries.update(value.shape.entries)
                spread.extend(value.shape.spread)
                keys.extend(value.shape.keys)
            else:
                spread.append(value)
            continue
        key_value = evaluation.evaluate(frame, key)
        if isinstance(item, f.Function) and isinstance(key_value.const, str):
            frameworks.hooked(frame, key_value.const, item, node)
        value = evaluation.evaluate(frame, item)
        if isinstance(key_value.const, (str, int)):
            entries[str(key_value.const)] = value
            if key_value.const in _IDS and {"role", "type"} & _keys_of(node) and value.flat():
                value = transform(value, _minted)
                entries[str(key_value.const)] = value
            if key_value.const in _MEDIA and any(
                change.loop_bound or change.code == "PG105" for change in value.flat()
            ):
                value = transform(value, _encoded)
            if value.flat():
                entries[str(key_value.const)] = frame.traced(value, item.at, f"put under `{key_value.const}`")
        else:
            entries["*"] = join(entries["*"], value) if "*" in entries else value
            if key_value.flat():
                keys.append(key_value)
    made = Value(shape=Fields(entries, tuple(spread), "", node.at, frame.file.index, tuple(keys)))
    made.size = sum(value.size for value in entries.values())
    naming.built(frame, node, made)
    return made


_MEDIA = {"data", "image_url", "url", "inline_data", "inlineData", "image"}


def _encoded(change: Change) -> Change:
    if change.code == "PG105":
        return change._replace(code="PG305", what=f"a medium encoded anew by {change.what}")
    return change


def _minted(change: Change) -> Change:
    return change._replace(code="PG206", what="an id minted anew") if change.code == "PG104" else change


def _keys_of(node: f.Map) -> set[object]:
    return {key.value for key, _ in node.entries if isinstance(key, f.Lit)}


_IDS = {"id", "call_id", "tool_call_id", "message_id", "item_id", "toolCallId", "callId", "messageId"}


def comprehension(frame: Frame, node: f.Comp) -> Value:
    from prefixguard.lint.summary import Guard

    kept = dict(frame.env)
    loop = Loop(frame.flow.next_loop(), False, node.at)
    frame.loops.append(loop)
    sources: list[Value] = []
    indexes = set(frame.indexes)
    pushed = 0
    for clause in node.clauses:
        source = evaluation.evaluate(frame, clause.source)
        sources.append(source)
        if walk.is_counting(clause.source):
            target = clause.target
            first = target.items[0] if isinstance(target, f.Seq) and target.items else target
            frame.indexes |= walk.names(first)
        frame.store(clause.target, picking.element(frame, source, clause.source.at), clause.source.at)
        for test in clause.tests:
            evaluation.evaluate(frame, test)
            frame.guards.append(Guard(test, "filter"))
            pushed += 1
    value = evaluation.evaluate(frame, node.element)
    key = evaluation.evaluate(frame, node.key) if node.key is not None else None
    if pushed:
        del frame.guards[-pushed:]
    frame.loops.pop()
    frame.env.clear()
    frame.env.update(kept)
    whole = _same_entries(frame, node)
    if whole is not None:
        return whole
    if node.kind == "dict":
        entries = {"*": value}
        made = Value(
            shape=Fields(entries, (), "", node.at, frame.file.index, (key,) if key is not None else ())
        )
    else:
        kind = "list" if node.kind == "generator" else node.kind
        made = Value(shape=Items(kind, ((True, Value(shape=Items("list", ((False, value),)))),)))
        made = made.but(shape=Items(kind, ((True, _many(value)),)))
        if value.place is not None and "[]" in value.place:
            made.elements = value.place
    made = splitting.mapped(frame, node, sources[0] if sources else NOTHING, value, made)
    frame.indexes = indexes
    return frame.traced(made, node.at, "collected")


def _same_entries(frame: Frame, node: f.Comp) -> Value | None:
    """`{k: v for k, v in d.items() if v is not None}`: the dict itself, as far as is known."""
    if (
        node.kind != "dict"
        or len(node.clauses) != 1
        or not isinstance(node.key, f.Name)
        or not isinstance(node.element, f.Name)
    ):
        return None
    clause = node.clauses[0]
    target, source = clause.target, clause.source
    if not isinstance(target, f.Seq) or len(target.items) != 2 or not isinstance(source, f.Call):
        return None
    names = [item.name if isinstance(item, f.Name) else "" for item in target.items]
    if (
        names != [node.key.name, node.element.name]
        or not isinstance(source.func, f.Attr)
        or source.func.name != "items"
    ):
        return None
    return evaluation.evaluate(frame, source.func.base)


def _many(value: Value) -> Value:
    """Some number of such values, as the spread part of a list."""
    if value.shape is None and value.elements is None and value.place is not None and value.place[-1] == "[]":
        # The elements of a list, unchanged: the list itself.
        refs = tuple((r[0], r[1], r[2][:-1]) if r[2] and r[2][-1] == "[]" else r for r in value.refs)
        return value.but(place=value.place[:-1], refs=refs)
    return Value(shape=Items("many", ((False, value),)))
