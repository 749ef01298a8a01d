"""Binds values: to names, attributes, elements and parts of patterns.

Part of the third step of the linter; what is bound to a prompt's name is a sink, what is
bound to a message of a list an edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import members, picking
from prefixguard.lint.history import binding, elements, marks, slices, toolset
from prefixguard.lint.sinks import naming
from prefixguard.lint.values import (
    External,
    Fields,
    Instance,
    Items,
    Value,
    join,
    session,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def store(frame: Frame, target: f.Expr, value: Value, at: f.At, op: str = "=") -> None:
    """Bind a value to a name, an attribute, an element, or the parts of a pattern."""
    if isinstance(target, f.Name):
        _name(frame, target.name, value, at)
    elif isinstance(target, f.Attr):
        _attribute(frame, target, value, at)
    elif isinstance(target, f.Index):
        _index(frame, target, value, at)
    elif isinstance(target, f.Slice):
        slices.slice_assigned(frame, target, value, at)
    elif isinstance(target, f.Seq):
        _parts(frame, target, value, at)
    elif isinstance(target, f.Spread):
        frame.store(target.value, value, at)
    elif isinstance(target, f.Map):
        for key, part in target.entries:
            name = key.value if isinstance(key, f.Lit) else walk.last_name(key)
            frame.store(part, members.attribute(frame, value, str(name), at), at)


def _name(frame: Frame, name: str, value: Value, at: f.At) -> None:
    naming.named(frame, name, value, at)
    value = binding.rebound(frame, name, (name,), value, at)
    value = elements.replaced(frame, frame.env.get(name), value, at)
    home = frame.env
    if name not in home and frame.scope is not None and frame.file.family == "typescript":
        scope: Frame | None = frame.scope
        while scope is not None:
            if name in scope.env:
                home = scope.env
                break
            scope = scope.scope
    home[name] = frame.traced(value, at, f"kept in `{name}`")
    frame.births[name] = frame.loop_ids
    prefix = name + "."
    for key in [key for key in frame.env if key.startswith(prefix)]:
        del frame.env[key]


def _attribute(frame: Frame, target: f.Attr, value: Value, at: f.At) -> None:
    key = walk.dotted(target)
    naming.named(frame, target.name, value, at, attribute=True, owner=walk.last_name(target.base))
    base = frame.value(target.base)
    if target.name in {"content", "text"} and value.flat():
        naming.spoken_anew(frame, target.name, value, at)
    place = (*base.place, target.name) if base.place is not None else None
    if place is not None and any(part.startswith("[") for part in place):
        elements.element(frame, place, target.name, value, at)
    value = binding.rebound(frame, target.name, place or (key,), value, at)
    kept = frame.traced(value, at, f"kept in `{key or target.name}`")
    if _lazily(frame, key):
        kept = session(kept, "cached")
    if place is not None and place[0] == "self" and len(place) == 2:
        known = frame.summary.writes.get(target.name)
        frame.summary.writes[target.name] = join(known, kept) if known is not None else kept
    elif place is not None and place[0].startswith("param:") and len(place) < 5:
        frame.summary.mutations.append((int(place[0][6:]), place[1:], "set", kept))
    if isinstance(base.shape, Instance):
        base.shape.fields[target.name] = kept
    elif isinstance(base.shape, Fields):
        frame.put(target.base, base, target.name, kept)
    if key and "?" not in key:
        frame.env[key] = kept
        frame.births[key] = frame.loop_ids


def _lazily(frame: Frame, key: str) -> bool:
    """Whether a guard above asks whether the attribute is still missing."""
    return (
        bool(key)
        and any(
            guard.test is not None and not guard.negated and walk.is_none_test(guard.test) == key
            for guard in frame.guards
        )
    ) or any(
        guard.test is not None
        and guard.negated
        and key in {walk.dotted(n) for n in walk.inside(guard.test) if isinstance(n, f.Attr)}
        and not walk.is_none_test(guard.test)
        for guard in frame.guards
    )


def _index(frame: Frame, target: f.Index, value: Value, at: f.At) -> None:
    base = frame.value(target.base)
    key = frame.value(target.key)
    name = key.const if isinstance(key.const, str) else None
    if name is not None:
        naming.named(frame, name, value, at, owner=walk.last_name(target.base), key=True)
        if name in {"content", "text"} and value.flat():
            naming.spoken_anew(frame, name, value, at)
    place = base.place
    if place is not None and name is not None and any(part.startswith("[") for part in place):
        if name in {"cache_control", "cachePoint"}:
            marks.breakpoint_set(frame, place, at)
        elements.element(frame, (*place, name), name, value, at)
        toolset.tool_edited(frame, (*place, name), name, value, at)
    elif name is None:
        elements.item_assigned(frame, target, base, key, value, at)
    order = tuple(change for change in key.flat() if change.order)
    if name is not None:
        frame.put(target.base, base, name, frame.traced(value, at, f"put under `{name}`"))
    else:
        frame.put(target.base, base, None, value, key if order or key.flat() else None)


def put(
    frame: Frame, node: f.Expr, base: Value, name: str | None, value: Value, key: Value | None = None
) -> None:
    """Put a value into a dict that stands at `node`: under a key, or under one not known."""
    shape = base.shape
    if not isinstance(shape, Fields):
        if base.shape is None or isinstance(base.shape, (External, Items)):
            if not value.flat() and key is None:
                if (
                    base.place is not None
                    and base.place[0].startswith("param:")
                    and name
                    and value.all_refs()
                ):
                    frame.summary.mutations.append(
                        (int(base.place[0][6:]), base.place[1:], "set:" + name, value)
                    )
                return
            shape = Fields({}, at=None)
            if base.place is not None and base.place[0].startswith("param:") and name:
                frame.summary.mutations.append((int(base.place[0][6:]), base.place[1:], "set:" + name, value))
        else:
            return
    entries = dict(shape.entries)
    keys = shape.keys
    if name is not None:
        entries[name] = (
            value
            if not _branching(
                frame,
            )
            or name not in entries
            else join(entries[name], value)
        )
        if value.flat() and name not in shape.entries:
            pass
    else:
        keys = (*keys, key)[:24] if key is not None else keys
        entries["*"] = join(entries["*"], value) if "*" in entries else value
    frame.rebind(node, base.but(shape=shape._replace(entries=entries, keys=keys), _flat=None, _refs=None))


def _branching(frame: Frame) -> bool:
    return bool(frame.guards)


def rebind(frame: Frame, node: f.Expr, value: Value) -> None:
    """Replace what stands at an expression by its changed self: no assignment, so no sink."""
    if isinstance(node, f.Name):
        home = frame.env
        if node.name not in home:
            scope = frame.scope
            while scope is not None:
                if node.name in scope.env:
                    home = scope.env
                    break
                scope = scope.scope
            else:
                if frame.fid[1] >= 0 and node.name in frame.flow.module(frame.file.index):
                    home = frame.flow.module(frame.file.index)
        home[node.name] = value
    elif isinstance(node, f.Attr):
        key = walk.dotted(node)
        if key and "?" not in key:
            frame.env[key] = value
        base = frame.value(node.base)
        if base.place == ("self",):
            known = frame.summary.writes.get(node.name)
            frame.summary.writes[node.name] = join(known, value) if known is not None else value
        elif isinstance(base.shape, Fields):
            entries = dict(base.shape.entries)
            entries[node.name] = value
            frame.rebind(node.base, base.but(shape=base.shape._replace(entries=entries)))
    elif isinstance(node, f.Index) and isinstance(node.key, f.Lit) and isinstance(node.key.value, str):
        base = frame.value(node.base)
        if isinstance(base.shape, Fields):
            entries = dict(base.shape.entries)
            entries[node.key.value] = value
            frame.rebind(node.base, base.but(shape=base.shape._replace(entries=entries)))


def _parts(frame: Frame, target: f.Seq, value: Value, at: f.At) -> None:
    shape = value.shape
    if (
        isinstance(shape, Items)
        and len(shape.parts) == len(target.items)
        and not any(s for s, _ in shape.parts)
    ):
        for item, (_, part) in zip(target.items, shape.parts, strict=True):
            frame.store(item, part, at)
        return
    part = picking.element(frame, value, at)
    for item in target.items:
        frame.store(item, part if not isinstance(item, f.Spread) else value, at)
