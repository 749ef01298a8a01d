"""The summary of a function with the arguments of a call: its result, its sinks, its edits.

Part of the third step of the linter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint.expressions import members, picking
from prefixguard.lint.history import removal
from prefixguard.lint.known import order
from prefixguard.lint.sinks import judging
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Change,
    Fields,
    FunctionId,
    Instance,
    Items,
    Ref,
    Value,
    mixed,
    session,
    substitute,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def apply(
    frame: Frame,
    fid: FunctionId,
    bound: Value | None,
    positional: list[Value],
    named: dict[str, Value],
    at: f.At,
    note: str,
    scope: Frame | None = None,
    nodes: dict[int | str, f.Expr] | None = None,
) -> Value:
    """Use the summary of a function: its result, its sinks and its edits, with these arguments."""
    flow = frame.flow
    summary = flow.summary(fid, scope)
    function = flow.function(fid)
    arguments, expressions_of = matched(frame, function, bound, positional, named, nodes or {})
    if summary is None:
        return mixed([*positional, *named.values()])
    lookup = resolver(frame, fid, arguments, bound, at)
    loops = frame.loop_ids
    step = frame.step(at, note)

    def moved(change: Change) -> Change:
        return change._replace(loops=loops).step(step)

    returned = substitute(transform(summary.returns, moved), lookup)
    alone = bool(summary.pending) and not frame.talking and _alone(frame, function, arguments)
    for pending in summary.pending:
        refs = pending.value.all_refs()
        if any(ref[0] == fid and ref[1] in arguments for ref in refs):
            judging.replayed(
                frame, pending, substitute(pending.value, lookup), at, function.name, one_shot=alone
            )
    for index, path, kind, value in summary.mutations:
        target = expressions_of.get(index)
        left = path
        if index == 0 and target is None and bound is not None and bound.place == ("self",) and path:
            target = f.Attr(at, f.Name(at, "this" if frame.file.family == "typescript" else "self"), path[0])
            left = path[1:]
        if target is not None:
            for name in left:
                if name.startswith("["):
                    break
                target = f.Attr(at, target, name)
            removal.replayed(
                frame,
                target,
                kind,
                value if not isinstance(value, Value) else substitute(transform(value, moved), lookup),
                at,
                function.name,
            )
    if bound is not None and isinstance(bound.shape, Instance) and summary.writes:
        for name, value in summary.writes.items():
            bound.shape.fields.setdefault(name, substitute(transform(value, moved), lookup))
    return returned


def _alone(frame: Frame, function: f.FunctionFacts, arguments: dict[int, Value]) -> bool:
    """Whether a function is given a list of messages that is made for this call, without any history."""
    from prefixguard.lint.request import turns

    offset = 1 if function.owner >= 0 and not function.static and frame.file.family == "typescript" else 0
    for index, param in enumerate(function.params, offset):
        value = arguments.get(index)
        if value is None or not frame.is_list_name(param.name) or not isinstance(value.shape, Items):
            continue
        stored = value.place is not None and not value.place[0].startswith("local:")
        if not stored and not turns.has_history(frame, value):
            return True
    return False


def matched(
    frame: Frame,
    function: f.FunctionFacts,
    bound: Value | None,
    positional: list[Value],
    named: dict[str, Value],
    nodes: dict[int | str, f.Expr],
) -> tuple[dict[int, Value], dict[int, f.Expr]]:
    """Arguments by the position of their parameter."""
    arguments: dict[int, Value] = {}
    where: dict[int, f.Expr] = {}
    method = function.owner >= 0 and not function.static
    typescript = frame.flow.project.files[frame.file.index].family == "typescript"
    offset = 1 if method and typescript else 0
    params = list(enumerate(function.params, offset))
    if method:
        arguments[0] = bound if bound is not None else NOTHING
        if not typescript:
            params = params[1:]
    position = 0
    for index, param in params:
        if param.star == 1:
            rest = positional[position:]
            if rest:
                arguments[index] = Value(
                    shape=Items("list", tuple((False, value) for value in rest[:MAX_PARTS]))
                )
            position = len(positional)
        elif param.star == 2:
            known = {p.name for p in function.params}
            extra = {name: value for name, value in named.items() if name not in known}
            if extra:
                arguments[index] = Value(shape=Fields(extra))
        elif param.star == 3:
            position = len(positional)
        elif position < len(positional):
            arguments[index] = positional[position]
            if position in nodes:
                where[index] = nodes[position]
            position += 1
        elif param.name in named:
            arguments[index] = named[param.name]
            if param.name in nodes:
                where[index] = nodes[param.name]
    for name, value in named.items():
        for index, param in params:
            if param.name == name and index not in arguments:
                arguments[index] = value
                if name in nodes:
                    where[index] = nodes[name]
    return arguments, where


def resolver(
    frame: Frame, fid: FunctionId, arguments: dict[int, Value], bound: Value | None, at: f.At
) -> Callable[[Ref], Value | None]:
    """How references of a called function are resolved: its parameters, and what its object was made with."""
    cached: dict[Ref, Value | None] = {}
    constructor: FunctionId | None = None
    instance: Instance | None = None
    if bound is not None and isinstance(bound.shape, Instance):
        instance = bound.shape
        constructor = frame.flow.classes.constructor(instance.owner)

    def lookup(ref: Ref) -> Value | None:
        if ref not in cached:
            cached[ref] = _find(ref)
        return cached[ref]

    def _find(ref: Ref) -> Value | None:
        if ref[0] == fid:
            value = arguments.get(ref[1], NOTHING)
        elif (
            constructor is not None
            and ref[0] == constructor
            and instance is not None
            and ref[1] < len(instance.args)
        ):
            value = session(instance.args[ref[1]], "constructor")
        else:
            return None
        for name in ref[2]:
            if value is NOTHING:
                break
            if name == order.SORTED:
                value = order.unordered_gone(value)
            elif name.startswith("["):
                value = picking.element(frame, value, at)
            elif value.place == ("self",) and value.shape is None:
                # The caller's own object: its fields are known to the callee already.
                value = Value(
                    refs=tuple((r[0], r[1], (*r[2], name)) for r in value.refs if len(r[2]) < 4),
                    place=(*value.place, name),
                )
            else:
                value = members.attribute(frame, value, name, at)
        return value

    return lookup
