"""Elements of lists, dicts and sets: by index, by key, or whichever a loop comes to.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import evaluation, members
from prefixguard.lint.history import noting, slices
from prefixguard.lint.tables import LIFETIMES
from prefixguard.lint.values import (
    NOTHING,
    Change,
    Either,
    External,
    Fields,
    Func,
    Instance,
    Items,
    Klass,
    ModuleRef,
    Value,
    Words,
    join,
    merge_refs,
    mixed,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def index(frame: Frame, node: f.Index) -> Value:
    base = evaluation.evaluate(frame, node.base)
    key = evaluation.evaluate(frame, node.key)
    if isinstance(key.const, str):
        full = walk.dotted(node.base)
        known = frame.env.get(f"{full}.{key.const}") if full and not isinstance(base.shape, Fields) else None
        if known is not None:
            return known
        return members.attribute(frame, base, key.const, node.at, walk.last_name(node.base))
    if isinstance(key.const, int) and not isinstance(key.const, bool):
        marker = "[0]" if key.const == 0 else "[-1]" if key.const < 0 else "[]"
        shape = base.shape
        if isinstance(shape, Items) and shape.kind != "set":
            parts = shape.parts
            known = None
            if (0 <= key.const < len(parts) and not any(s for s, _ in parts[: key.const + 1])) or (
                key.const < 0 and -key.const <= len(parts) and not any(s for s, _ in parts[key.const :])
            ):
                known = parts[key.const][1]
            if known is not None:
                return known if base.place is None else known.but(place=(*base.place, marker))
        return _element(frame, base, marker, node.at)
    marker = "[-1]" if noting.is_last(frame, node.key, node.base) else "[]"
    found = _element(frame, base, marker, node.at)
    # What is looked up under an id or a time does not hold it;
    # what is picked by chance or in no order does differ.
    order = tuple(c for c in key.flat() if not c.edit and (c.order or c.code in {"PG110", "PG105"}))
    if order:
        found = Value(unique((*found.flat(), *order)), merge_refs(found.all_refs(), key.all_refs()))
        return frame.traced(found, node.at, "looked up by it")
    return found


def element(frame: Frame, value: Value, at: f.At) -> Value:
    """Any element of it, as a loop sees it."""
    return _element(frame, value, "[]", at)


def _element(frame: Frame, value: Value, marker: str, at: f.At) -> Value:
    shape = value.shape
    place = value.elements
    if place is None and value.place is not None and len(value.place) < 7:
        place = (*value.place, marker)
    elif place is not None and marker != "[]":
        place = (*place[:-1], marker)
    changes = tuple(change for change in value.changes if not change.edit)
    if isinstance(shape, Items):
        found = NOTHING
        for spread, part in shape.parts[:12]:
            found = join(found, _element(frame, part, marker, at) if spread else part)
        if shape.kind == "set":
            changes = (*changes, unordered(frame, at))
        if value.refs and shape.kind != "set":
            refs = tuple((r[0], r[1], (*r[2], "[]")) for r in value.refs if len(r[2]) < 4)
            found = join(found, Value((), refs, place=place))
        if changes:
            found = found.but(changes=unique((*found.changes, *changes)), _flat=None)
        if place is not None and (found.place is None or value.elements is not None):
            found = found.but(place=place)
        return found
    if isinstance(shape, Fields):
        keyed = mixed(shape.keys)
        # Which entry it is cannot be seen: it may be any of those that change.
        inner = mixed(part for part in shape.entries.values() if part.flat())
        weaker = tuple(c._replace(confidence=0) for c in inner.flat() if not c.edit)
        return Value(unique((*changes, *keyed.flat(), *weaker)), keyed.all_refs())
    if isinstance(shape, Either):
        found = NOTHING
        for option in shape.options:
            found = join(found, _element(frame, option, marker, at))
        return found
    if isinstance(shape, (Words, External, Func, Klass, ModuleRef, Instance)):
        return Value(changes) if changes else NOTHING
    refs = tuple((r[0], r[1], (*r[2], "[]")) for r in value.refs if len(r[2]) < 4)
    return Value(changes, refs, place=place)


def unordered(frame: Frame, at: f.At) -> Change:
    """A set, written or walked here."""
    return frame.change("PG209", "a set in no fixed order", at, LIFETIMES.index("process"), order=True)


def slice_(frame: Frame, node: f.Slice) -> Value:
    base = evaluation.evaluate(frame, node.base)
    return slices.sliced(frame, node, base)
