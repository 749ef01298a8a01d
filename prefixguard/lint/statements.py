"""Reads statements: assignments, branches, loops, definitions, imports.

Part of the third step of the linter; called by `frame` for each statement of a body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import operators, picking
from prefixguard.lint.history import binding, by_name, marks, slices
from prefixguard.lint.sinks import frameworks, naming, varying
from prefixguard.lint.summary import Guard, Loop
from prefixguard.lint.tables import TURN
from prefixguard.lint.values import (
    NOTHING,
    Deferred,
    Either,
    Func,
    Items,
    Klass,
    Value,
    join,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def _assign(frame: Frame, node: f.Assign) -> None:
    if node.op == "declare":
        return
    value = frame.value(node.value)
    if isinstance(node.value, f.Call):
        by_name.assigned(frame, node, value)
    if node.op != "=":
        target = node.targets[0]
        before = frame.value(target)
        if isinstance(target, f.Name) and value.flat():
            # What is added is judged by itself: a long text holds more than is kept of it.
            naming.named(frame, target.name, value, node.at)
        value = operators.augmented(frame, node, before, value)
        if value is before:
            return
    if (
        node.annotation.lower().startswith(("set[", "frozenset["))
        and isinstance(value.shape, Items)
        and value.shape.kind != "set"
    ):
        value = value.but(shape=Items("set", value.shape.parts))
    if node.op == "=" and value.flat() and frame.is_list_name(walk.last_name(node.targets[0])):
        naming.seeded(frame, value, node.at)
    for target in node.targets:
        if isinstance(target, f.Name):
            frame.definitions[target.name] = node.value
        frame.store(target, value, node.at, node.op)


def _do(frame: Frame, node: f.Do) -> None:
    frame.value(node.value)
    if isinstance(node.value, f.Call):
        by_name.done(frame, node.value)


def _return(frame: Frame, node: f.Return) -> None:
    if node.value is None:
        return
    value = frame.traced(frame.value(node.value), node.at, "returned")
    frame.summary.returns = join(frame.summary.returns, value)


def _if(frame: Frame, node: f.If) -> None:
    frame.value(node.test)
    varying.decided(frame, node.test)
    varying.tools_decided(frame, node.test)
    before = dict(frame.env)
    frame.guards.append(Guard(node.test, "if"))
    frame.run(node.then)
    frame.guards.pop()
    after = dict(frame.env)
    if not node.other and walk.leaves(node.then):
        _reset(frame, before)
        return
    _reset(frame, before)
    frame.guards.append(Guard(node.test, "if", negated=True))
    frame.run(node.other)
    frame.guards.pop()
    if walk.leaves(node.then):
        return
    if node.other and walk.leaves(node.other):
        _reset(frame, after)
        return
    varies = varying.varies(frame, node.test)
    merged = frame.env
    for name, value in after.items():
        other = merged.get(name)
        if other is None:
            merged[name] = value
        elif other is not value:
            made = join(value, other)
            if varies and isinstance(made.shape, Either):
                where = _assigned_at(node, name) or node.at
                made = made.but(shape=made.shape._replace(varies=True, at=where, file=frame.file.index))
            merged[name] = made


def _reset(frame: Frame, env: dict[str, Value]) -> None:
    # The dict itself is shared with closures and, for a module, with importers.
    if env is not frame.env:
        kept = dict(env)
        frame.env.clear()
        frame.env.update(kept)


def _loop(frame: Frame, node: f.Loop) -> None:
    source = frame.value(node.source) if node.source is not None else NOTHING
    talking = walk.talks(node.body, frame.knowledge, endless=node.target is None)
    over = (
        node.source is not None and node.target is not None and binding.iterates(frame, node.source, source)
    )
    loop = Loop(frame.flow.next_loop(), talking, node.at, over)
    counted = walk.counters([*node.body, *node.step])
    if node.target is not None and isinstance(node.source, f.Call):
        function = walk.last_name(node.source.func)
        target = node.target
        if function == "range":
            counted |= walk.names(target)
            frame.indexes |= walk.names(target)
        elif function in {"enumerate", "entries"} and isinstance(target, f.Seq) and target.items:
            counted |= walk.names(target.items[0])
            frame.indexes |= walk.names(target.items[0])
    frame.indexes |= counted
    before = dict(frame.env)
    frame.loops.append(loop)
    if node.target is not None:
        part = picking.element(frame, source, node.source.at if node.source else node.at)
        frame.store(node.target, part, node.at)
    for name in counted:
        change = frame.change("PG105", f"the counter `{name}`", node.at, TURN, loop_bound=loop.id)
        known = frame.env.get(name, NOTHING)
        frame.env[name] = Value(unique((*known.changes, change)), known.refs, place=known.place)
    frame.guards.append(Guard(node.source if node.target is None else None, "while"))
    frame.run(node.body)
    frame.run(node.step)
    if node.target is not None and not isinstance(node.source, f.Call):
        marks.given_out(frame, node.source, node.body)
    frame.guards.pop()
    frame.loops.pop()
    for name, value in before.items():
        now = frame.env.get(name)
        if now is not None and now is not value:
            frame.env[name] = join(now, value)


def _try(frame: Frame, node: f.Try) -> None:
    frame.run(node.body)
    before = dict(frame.env)
    ends = [dict(frame.env)]
    for handler in node.handlers:
        _reset(frame, dict(before))
        frame.guards.append(Guard(None, "handler"))
        frame.run(handler)
        frame.guards.pop()
        if not walk.leaves(handler):
            ends.append(dict(frame.env))
    merged = ends[0]
    for end in ends[1:]:
        for name, value in end.items():
            merged[name] = join(merged[name], value) if name in merged else value
    _reset(frame, merged)
    frame.run(node.final)


def _delete(frame: Frame, node: f.Delete) -> None:
    for target in node.targets:
        if isinstance(target, (f.Slice, f.Index)):
            slices.deleted(frame, target, node.at)


def _define(frame: Frame, node: f.Define) -> None:
    fid = (frame.file.index, node.index)
    function = frame.flow.function(fid)
    value = Value(shape=Func(fid, None, frame if frame.fid[1] >= 0 else None))
    frame.env[node.name] = value
    if frame.fid[1] >= 0:
        frame.nested.append((fid, frame))
    frameworks.decorated(frame, function, fid)


def _define_class(frame: Frame, node: f.DefineClass) -> None:
    frame.env[node.name] = Value(shape=Klass((frame.file.index, node.index)))
    facts = frame.flow.classes.klass((frame.file.index, node.index))
    for statement in facts.body:
        if isinstance(statement, f.Define):
            fid = (frame.file.index, statement.index)
            frameworks.decorated(frame, frame.flow.function(fid), fid)
        elif isinstance(statement, f.Assign) and statement.op == "=":
            for target in statement.targets:
                if isinstance(target, f.Name):
                    value = frame.value(statement.value)
                    naming.named(frame, target.name, value, statement.at, attribute=True, owner=facts.name)


def _import(frame: Frame, node: f.Import) -> None:
    if node.name == "*" and frame.file.family == "python":
        target = frame.flow.project.resolve(frame.file, node.module, node.level)
        if target is not None and target is not frame.file:
            for name, value in list(frame.flow.module(target.index).items()):
                if not name.startswith("_"):
                    frame.env.setdefault(name, value)
        return
    value = Value(shape=Deferred(frame.file.index, node))
    name = node.alias or node.name or node.module.split(".")[0]
    if name and name != "*":
        frame.env[name] = value


def _assigned_at(node: f.If, name: str) -> f.At | None:
    for item in walk.inside(node.then):
        if isinstance(item, f.Assign) and any(walk.dotted(target) == name for target in item.targets):
            return item.at
    return None


READERS: dict[type[f.Fact], Any] = {
    f.Assign: _assign,
    f.Do: _do,
    f.Return: _return,
    f.If: _if,
    f.Loop: _loop,
    f.Try: _try,
    f.Delete: _delete,
    f.Define: _define,
    f.DefineClass: _define_class,
    f.Import: _import,
}
