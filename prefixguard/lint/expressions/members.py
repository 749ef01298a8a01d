"""Names and attributes: what they hold, and what their words alone say.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import clocks, walk
from prefixguard.lint import facts as f
from prefixguard.lint.calls import applying, sourcing
from prefixguard.lint.expressions import evaluation
from prefixguard.lint.tables import LIFETIMES, TURN
from prefixguard.lint.values import (
    NOTHING,
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
    transform,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def name(frame: Frame, node: f.Name) -> Value:
    value = frame.lookup(node.name)
    if value is None:
        source = frame.knowledge.source(node.name)
        if (
            source is not None
            and source.names
            and not source.set
            and source.lifetime == "process"
            and "." in node.name
        ):
            return sourcing.sourced(frame, source, node.at)
        return Value(shape=External(node.name))
    if value.place is None and isinstance(value.shape, (Items, Fields)):
        return value.but(place=("local:" + node.name,))
    if any(change.loop_bound for change in value.changes):
        # A counter is found where it is used, not where its loop begins.
        return value.but(
            changes=tuple(
                c._replace(at=node.at) if c.loop_bound and not c.trace else c for c in value.changes
            ),
            _flat=None,
        )
    bare = value.shape is None or (isinstance(value.shape, Instance) and not value.shape.fields)
    if bare and value.place is not None and value.const is None and value.refs:
        return stated(frame, value, node.name, "", node.at)
    return value


def stated(frame: Frame, value: Value, name: str, owner: str, at: f.At) -> Value:
    """An unknown value whose name says that it changes."""
    state = frame.knowledge.state(name, owner)
    if state is None or any(change.code == state.code for change in value.changes):
        return value
    what = f"{state.what} (`{owner + '.' if owner else ''}{name}`)"
    change = frame.change(state.code, what, at, LIFETIMES.index(state.lifetime), confidence=0)
    return value.but(changes=unique((*value.changes, change)))


def attr(frame: Frame, node: f.Attr, given: Value | None = None) -> Value:
    """`base.name`. given: the base's value when it is known, so that chains of calls are read once."""
    key = walk.dotted(node)
    known = frame.env.get(key) if key else None
    if known is None and key and frame.scope is not None:
        scope: Frame | None = frame.scope
        while known is None and scope is not None:
            known = scope.env.get(key)
            scope = scope.scope
    if known is not None:
        if known.place is None and isinstance(known.shape, (Items, Fields)):
            base = given if given is not None else evaluation.evaluate(frame, node.base)
            if base.place is not None:
                return known.but(place=(*base.place, node.name))
        return known
    base = given if given is not None else evaluation.evaluate(frame, node.base)
    value = attribute(frame, base, node.name, node.at, walk.last_name(node.base))
    if (
        frame.owner is not None
        and base.place == ("self",)
        and frame.flow.classes.counts(frame.owner, node.name)
    ):
        change = frame.change("PG105", f"the counter `{key}`", node.at, TURN, confidence=1)
        value = Value(unique((*value.changes, change)), value.refs, place=value.place)
    return value


def attribute(frame: Frame, base: Value, name: str, at: f.At, owner: str = "") -> Value:
    """`base.name`, or `base["name"]`."""
    shape = base.shape
    place = (*base.place, name) if base.place is not None and len(base.place) < 7 else None
    flow = frame.flow
    if isinstance(shape, External):
        dotted = f"{shape.name}.{name}"
        source = frame.knowledge.source(dotted)
        if (
            source is not None
            and source.lifetime in {"process", "host"}
            and "()" not in dotted
            and frame.file.family == "typescript"
        ):
            return sourcing.sourced(frame, source, at)
        return Value(shape=External(dotted), place=place)
    if isinstance(shape, ModuleRef):
        found = flow.exported(flow.project.files[shape.file], name)
        if found is not None:
            return found
        folder = flow.project.files[shape.file]
        submodule = flow.project.resolve(folder, name, 1) if folder.family == "python" else None
        return Value(shape=ModuleRef(submodule.index)) if submodule is not None else NOTHING
    if isinstance(shape, Fields):
        found = shape.entries.get(name)
        if found is not None:
            return found if found.place is not None or place is None else found.but(place=place)
        if "*" in shape.entries and not shape.name:
            keyed = mixed(shape.keys)
            return shape.entries["*"] if not keyed.flat() else join(shape.entries["*"], keyed)
        inherited = [attribute(frame, part, name, at, owner) for part in shape.spread]
        inherited = [part for part in inherited if part is not NOTHING]
        if inherited:
            return inherited[0]
        refs = tuple((r[0], r[1], (*r[2], name)) for r in base.refs if len(r[2]) < 4)
        return Value(refs=refs, place=place) if refs or place else NOTHING
    if isinstance(shape, (Instance, Klass)) or (base.place == ("self",) and frame.owner is not None):
        found = member(frame, base, name, at)
        weak = tuple(change for change in base.changes if change.confidence == 0)
        if weak and (found is None or not isinstance(found.shape, Func)):
            found = (found or NOTHING).but(changes=unique((found or NOTHING).changes + weak), _flat=None)
        if found is not None:
            if found.const is None and (
                found.shape is None or isinstance(found.shape, (Items, Fields, Either))
            ):
                return stated(frame, found, name, owner, at)
            return found
    if isinstance(shape, Either):
        parts = [attribute(frame, option, name, at, owner) for option in shape.options]
        found = NOTHING
        for part in parts:
            found = join(found, part)
        return found
    if isinstance(shape, Func):
        return NOTHING
    refs = tuple((r[0], r[1], (*r[2], name)) for r in base.refs if len(r[2]) < 4)
    changes = (
        tuple(change for change in base.flat() if not change.edit)
        if shape is None or isinstance(shape, Words)
        else ()
    )
    if changes and name in frame.knowledge.day_attributes:
        changes = tuple(clocks.coarse(change) for change in changes)
    value = Value(changes, refs, place=place, origin=name)
    if not changes:
        value = stated(frame, value, name, owner, at)
    return value


def member(frame: Frame, base: Value, name: str, at: f.At) -> Value | None:
    """A field, getter or method of an object of a class of the project."""
    flow = frame.flow
    shape = base.shape
    if isinstance(shape, (Instance, Klass)):
        owner = shape.owner
        if isinstance(shape, Instance) and name in shape.fields:
            from prefixguard.lint.classes import stored

            return transform(shape.fields[name], stored)
    else:
        assert frame.owner is not None
        owner = frame.owner
    fid = flow.classes.method(owner, name)
    if fid is not None:
        if flow.function(fid).kind == "getter":
            return applying.apply(frame, fid, base, [], {}, at, f"`{name}` is read")
        return Value(shape=Func(fid, base))
    found = flow.classes.attribute(owner, name)
    place = (*base.place, name) if base.place is not None else None
    refs = tuple((r[0], r[1], (*r[2], name)) for r in base.refs if len(r[2]) < 4)
    if found is NOTHING and not refs and place is None:
        return None
    if isinstance(shape, Instance) and not isinstance(found.shape, (Func, Klass)) and found.all_refs():
        pass
    return Value(
        found.changes,
        merge_refs(found.refs, refs),
        found.shape,
        found.const,
        place,
        found.elements,
        found.size,
        name,
    )
